package sphinx

import "strings"

// phones are the phones of the en-us model, except noises.
const phones = "AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH"

// phoneLoop returns a grammar of all sequences of phones, and its words. Each word is one
// phone. Any speech fits this grammar well, so the score of the grammar shows how well a perfect
// sentence would fit.
func phoneLoop() (grammar string, words []pronunciation) {
	var names []string
	for p := range strings.FieldsSeq(phones) {
		words = append(words, pronunciation{"p_" + p, p})
		names = append(names, "p_"+p)
	}
	grammar = "#JSGF V1.0;\ngrammar phones;\npublic <loop> = (" + strings.Join(names, " | ") + ")+;\n"
	return grammar, words
}
