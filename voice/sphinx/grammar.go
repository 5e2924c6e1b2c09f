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
	Top []string // names of the rules that a whole utterance may be
	// Answer are the names of the rules that an utterance may be instead of
	// those where it answers a question by yes or no (voice.Options.Answer).
	// They are kept apart because words as short as these, listened for all
	// the time, would be heard where other things are said. Where there are
	// none, answers are listened for as everything else is.
	Answer []string
	Rules  []Rule
	// Optional are the names of rules that are left out where they are at fault.
	Optional []string
}

// jsgf is what an utterance may be, one of the rules named top, in the form
// that the library reads. g has been checked.
func (g Grammar) jsgf(top []string) string {
	var b strings.Builder
	b.WriteString("#JSGF V1.0;\ngrammar perch;\n")
	// A rule's name is lower case, so this one collides with none.
	b.WriteString("public <UTTERANCE> = <" + strings.Join(top, "> | <") + ">;\n")
	for _, r := range g.Rules {
		b.WriteString("<" + r.Name + "> = " + r.Body + ";\n")
	}
	return b.String()
}
