package sphinx

import "strings"

// Rule is a part of a sentence, or a whole one, with a name.
type Rule struct {
	Name string // lower-case letters, digits, '_' and '-'
	// Body is a JSGF expansion (JSpeech Grammar Format, section 4): words,
	// <rules>, (groups), [optional parts] and alternatives with |, as in
	// "set the volume to <number> [percent]". Words are lower case.
	Body   string
	Source string // where it was written, "en.yaml:12", for messages
}

// Grammar is all that a recognizer understands.
type Grammar struct {
	Top   []string // names of the rules that a whole utterance may be
	Rules []Rule
}

// jsgf is g in the form that the library reads. g has been checked.
func (g Grammar) jsgf() string {
	var b strings.Builder
	b.WriteString("#JSGF V1.0;\ngrammar perch;\n")
	// A rule's name is lower case, so this one collides with none.
	b.WriteString("public <UTTERANCE> = <" + strings.Join(g.Top, "> | <") + ">;\n")
	for _, r := range g.Rules {
		b.WriteString("<" + r.Name + "> = " + r.Body + ";\n")
	}
	return b.String()
}
