package agent

import "perch/language"

// Phrases returns a sentence that the robot says on behalf of the appliance, for a language
// tag (BCP 47; "" means the household's language) and a name such as "cut_off". The sentence
// may begin with an emoji. A nil Phrases returns the sentences of the catalogue.
type Phrases func(tag, name string) string

// Of returns the sentence for a language tag and name.
func (p Phrases) Of(tag, name string) string {
	if p == nil {
		return new(language.Catalogue).In(tag).Message("phrases." + name)
	}
	return p(tag, name)
}
