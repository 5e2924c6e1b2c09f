package reflex_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perch/agent/reflex"
	"perch/must"
)

// load reads the English book with an owner's file of this text.
func load(t *testing.T, text string) (*reflex.Book, error) {
	t.Helper()
	own := filepath.Join(t.TempDir(), "own.yaml")
	must.Succeed(t, os.WriteFile(own, []byte(text), 0o600))
	return reflex.Load("en", own)
}

func TestTheGrammarOfAnswers(t *testing.T) {
	b := must.Value(load(t, "answers:\n  yes: [\"aye [aye]\"]\n  no:\n    - by no means"))(t)
	names, kinds := map[string]bool{}, map[string]int{}
	for _, r := range b.Rules() {
		names[r.Name] = true
	}
	for _, r := range b.Answers() {
		if names[r.Name] {
			t.Errorf("two rules are called %q", r.Name)
		}
		names[r.Name] = true
		kinds[strings.TrimRight(r.Name, "0123456789")]++
		if file, _, _ := strings.Cut(r.Source, ":"); !r.Top || file != "en.yaml" && file != "own.yaml" {
			t.Errorf("%+v is no utterance, or from nowhere", r)
		}
	}
	if len(kinds) != 3 || kinds["yes"] < 10 || kinds["no"] < 10 || kinds["neither"] < 10 {
		t.Errorf("answers %v", kinds)
	}
	for _, want := range []reflex.Rule{
		{Body: "aye [aye]", Source: "own.yaml:2"}, {Body: "by no means", Source: "own.yaml:4"},
		{Body: "(stop | cancel) [(it | that)]", Source: "en.yaml:"},
	} {
		if !slices.ContainsFunc(b.Answers(), func(r reflex.Rule) bool { return r.Body == want.Body && strings.HasPrefix(r.Source, want.Source) }) {
			t.Errorf("no %q of %s", want.Body, want.Source)
		}
	}
}

// TestAnswersAreNotSentences checks that words such as "yes" match no intent: they have a meaning only
// after a question.
func TestAnswersAreNotSentences(t *testing.T) {
	b := book(t)
	for _, text := range []string{"yes", "yes please", "okay", "go ahead", "do it", "no", "no thanks", "don't", "never mind", "maybe"} {
		if b.Understands(text) {
			t.Errorf("%q is a sentence of the brain", text)
		}
	}
	for _, r := range b.Rules() {
		for _, w := range strings.FieldsFunc(r.Body, func(r rune) bool { return strings.ContainsRune(" ()[]|", r) }) {
			if slices.Contains([]string{"yes", "no", "okay", "don't"}, w) {
				t.Errorf("%s: the recognizer listens for %q all the time", r.Source, w)
			}
		}
	}
}

func TestFaultsInAnswers(t *testing.T) {
	for text, want := range map[string]string{
		"answers:\n  yes: [\"aye (aye\"]":          `own.yaml:2: sentence "aye (aye": a ")" is missing`,
		"answers:\n  no:\n    - nay\n    - [a, b]": "line 4: a sentence must be a text",
		"answers:\n  no: [\"[nay]\"]":              `own.yaml:2: sentence "[nay]": a sentence of no words`,
		"answers:\n\n  yes: [\"in {number}\"]":     `own.yaml:3: answer "yes": it has a slot {number}, but answers must consist of words only`,
		"answers: {maybe: [x]}":                    "line 1: field maybe not found",
		"answers: [yes, no]":                       "line 1: cannot unmarshal",
		"answers: {yes: [\"10 4\"]}\nintents: {a: {sentences: [\"(\"], answer: z}}": `own.yaml:2: sentence "("`,
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngave  %v\nwant  %s", text, err, want)
		}
	}
}
