package sphinx

import "strings"

// Rule is a rule of a grammar: a sentence, or a part of sentences.
type Rule struct {
	Name string // lower-case letters, digits, '_' and '-'
	// Body is a JSGF expansion (JSpeech Grammar Format, section 4): words,
	// <rules>, (groups), [optional parts] and alternatives with |, as in
	// "set the volume to <number> [percent]". Words are lower case.
	Body   string
	Source string // file and line, such as "en.yaml:12", for messages
}

// Grammar is the set of sentences that an engine recognizes.
type Grammar struct {
	Top []string // names of the rules that are whole utterances
	// Answer holds the names of the rules that replace Top if an utterance answers a
	// question (voice.Options.YesNo). If the short words of answers were in Top,
	// they would be recognized in other sentences. If Answer is empty, Top is used for
	// answers, too.
	Answer []string
	Rules  []Rule
	// Optional holds the names of rules that are ignored if they are faulty.
	Optional []string
}

// jsgf returns the grammar in JSGF; the rules named in top are whole utterances. g must have
// no faults.
func (g Grammar) jsgf(top []string) string {
	var b strings.Builder
	b.WriteString("#JSGF V1.0;\ngrammar perch;\n")
	// No rule of g has the name UTTERANCE, because names of rules are lower case.
	b.WriteString("public <UTTERANCE> = <" + strings.Join(top, "> | <") + ">;\n")
	for _, r := range g.Rules {
		b.WriteString("<" + r.Name + "> = " + r.Body + ";\n")
	}
	return b.String()
}
