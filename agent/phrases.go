package agent

import "perch/language"

// Phrases are the appliance's own sentences, by language (BCP 47; empty is the
// household's) and name, such as "cut_off". An emoji may come first. Nil are those of
// the catalogue.
type Phrases func(tag, name string) string

// Of is one of them.
func (p Phrases) Of(tag, name string) string {
	if p == nil {
		return new(language.Catalogue).In(tag).Say("phrases." + name)
	}
	return p(tag, name)
}
