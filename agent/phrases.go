package agent

import "perch/language"

// Phrases returns the appliance's own sentence for a language (BCP 47; empty is the
// household's) and a name, such as "cut_off". An emoji may come first. A nil Phrases
// uses the catalogue.
type Phrases func(tag, name string) string

// Of returns one sentence.
func (p Phrases) Of(tag, name string) string {
	if p == nil {
		return new(language.Catalogue).In(tag).Message("phrases." + name)
	}
	return p(tag, name)
}
