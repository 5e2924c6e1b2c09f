package reflex

import (
	"testing"

	"perch/must"
)

func TestComplete(t *testing.T) {
	b := must.Value(Load("en", ""))(t)
	for text, want := range map[string]bool{
		"what time is it":                      true,
		"What time is it?":                     true,
		"set the volume to forty percent":      true,
		"set the volume to forty":              false, // "two" may follow
		"volume 40%":                           true,
		"turn the volume up":                   true,
		"speak louder":                         true, // "please" may follow, with the same meaning
		"help":                                 true, // "me please" may follow, with the same meaning
		"set the":                              false,
		"":                                     false,
		"tell me about cats":                   false,
		"remember that my keys are in the car": true,
	} {
		if got := b.Complete(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	for text, want := range map[string]bool{
		"yes": true, "no": true, "never mind": true, "you may": false, "go": false, "of course": false, "not": false, "perhaps": true, "": false,
		"what time is it": false, "okay": true,
	} {
		if got := b.CompleteAnswer(text); got != want {
			t.Errorf("the answer %q: %v", text, got)
		}
	}
}
