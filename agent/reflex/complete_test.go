package reflex

import (
	"testing"

	"perch/must"
)

func TestUnfinished(t *testing.T) {
	for tag, texts := range map[string]map[string]bool{
		"en": {
			"set the volume to": true, "What time": true, "turn your head": true, "i would like tea and": true, "i went to the": true,
			"what time is it": false, "look left": false, "i would like tea": false, "and": false, "": false,
		},
		"de":      {"stell die lautstärke auf": true, "ich hätte gern eine": true, "das weiß ich und dann": true, "wie spät ist es": false, "was ist das": false},
		"es":      {"quiero un té con": true, "sí": false, "creo que sí": false},
		"fr":      {"je voudrais un thé parce que": true, "je voudrais un": true, "je voudrais un thé": false},
		"ja":      {"音量を": true, "五月二日から": true, "左を見て": false, "教えて": false},
		"zh-Hans": {"我想喝茶因为": true, "我想喝茶": false},
	} {
		b := must.Value(Load(tag, ""))(t)
		for text, want := range texts {
			if got := b.Unfinished(text); got != want {
				t.Errorf("%s %q: %v", tag, text, got)
			}
		}
	}
}

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
