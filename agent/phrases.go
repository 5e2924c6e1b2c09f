package agent

import "perch/language"

// Phrases is a function that returns a fixed sentence of Perch, which a robot says without
// asking a brain. tag is a language (BCP 47; "" means the configured language), and name is
// the name of the sentence, such as "cut_off". The sentence may begin with an emoji. A nil
// Phrases is valid: its method Of returns the sentences of package language.
type Phrases func(tag, name string) string

// Of returns the sentence for a language tag and name.
func (p Phrases) Of(tag, name string) string {
	if p == nil {
		return new(language.Catalogue).In(tag).Message("phrases." + name)
	}
	return p(tag, name)
}
