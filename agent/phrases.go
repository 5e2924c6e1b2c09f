package agent

import "perch/language"

// Phrases is a function that returns a sentence that the robot says on behalf of the
// appliance. tag is a language (BCP 47; "" means the household's), and name is the name of
// the sentence, such as "cut_off". The sentence may begin with an emoji. For a nil Phrases,
// the method Of uses the sentences of package language.
type Phrases func(tag, name string) string

// Of returns the sentence for a language tag and name.
func (p Phrases) Of(tag, name string) string {
	if p == nil {
		return new(language.Catalogue).In(tag).Message("phrases." + name)
	}
	return p(tag, name)
}
