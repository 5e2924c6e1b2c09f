package sphinx

import "strings"

// phones are those of the en-us model, noises left out.
const phones = "AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH"

// phoneLoop is a grammar of any sound at all, with its dictionary: words that
// are single phones, as many as it takes. How well it fits says what the best
// possible sentence would have scored, and so how far a command is from what
// was said.
func phoneLoop() (grammar string, words []pronunciation) {
	var names []string
	for p := range strings.FieldsSeq(phones) {
		words = append(words, pronunciation{"p_" + p, p})
		names = append(names, "p_"+p)
	}
	grammar = "#JSGF V1.0;\ngrammar phones;\npublic <loop> = (" + strings.Join(names, " | ") + ")+;\n"
	return grammar, words
}
