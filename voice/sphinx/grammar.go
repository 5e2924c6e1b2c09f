package sphinx

import "strings"

// Rule is a named sentence or part of one.
type Rule struct {
	Name string // lower-case letters, digits, '_' and '-'
	// Body is a JSGF expansion (JSpeech Grammar Format, section 4): words,
	// <rules>, (groups), [optional parts] and alternatives with |, as in
	// "set the volume to <number> [percent]". Words are lower case.
	Body   string
	Source string // where it was written, "en.yaml:12", for messages
}

// Grammar is everything that a recognizer understands.
type Grammar struct {
	Top []string // names of the rules that a whole utterance may be
	// Answer are the names of the rules that replace Top while an utterance answers a
	// question by yes or no (voice.Options.Answer). They are separate because such short
	// words, if always listened for, would be heard in other sentences. If Answer is
	// empty, answers are recognized like everything else.
	Answer []string
	Rules  []Rule
	// Optional are the names of rules that are left out if they are faulty.
	Optional []string
}

// jsgf returns the grammar in the form that the library reads, with the rules named top
// as utterances. g has been checked.
func (g Grammar) jsgf(top []string) string {
	var b strings.Builder
	b.WriteString("#JSGF V1.0;\ngrammar perch;\n")
	// Rule names are lower case, so this one cannot collide.
	b.WriteString("public <UTTERANCE> = <" + strings.Join(top, "> | <") + ">;\n")
	for _, r := range g.Rules {
		b.WriteString("<" + r.Name + "> = " + r.Body + ";\n")
	}
	return b.String()
}
