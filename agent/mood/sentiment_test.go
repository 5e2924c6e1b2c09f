package mood

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perch/limit"
	"perch/must"
)

// TestSentimentInSixLanguages tests a sentence of each kind in each language, and neutral ones.
func TestSentimentInSixLanguages(t *testing.T) {
	w := words(t)
	good, bad := func(s Sentiment) bool { return s.Valence > .3 }, func(s Sentiment) bool { return s.Valence < -.2 }
	lively, unsure := func(s Sentiment) bool { return s.Arousal > .5 }, func(s Sentiment) bool { return s.Uncertain > 0 }
	plain := func(s Sentiment) bool { return s == Sentiment{} }
	for _, c := range []struct {
		is   func(Sentiment) bool
		text string
	}{
		{good, "Great, it worked!"}, {bad, "There was an error."}, {lively, "How interesting, what if it is new?"}, {unsure, "I'm not certain."},
		{good, "Super, das hat geklappt!"}, {bad, "Das war leider ein Fehler."}, {lively, "Das ist spannend und neu!"}, {unsure, "Vielleicht."},
		{good, "¡Perfecto, todo bien!"}, {bad, "Hay un problema."}, {lively, "¡Qué interesante, nunca visto!"}, {unsure, "No lo sé."},
		{good, "Bravo, c'est parfait !"}, {bad, "Il y a une erreur."}, {lively, "C’est fascinant, je me demande !"}, {unsure, "Peut-être."},
		{good, "うまくいきました、おめでとう！"}, {bad, "エラーです。"}, {lively, "面白い、不思議！"}, {unsure, "たぶんそうです。"},
		{good, "太好了，成功了！"}, {bad, "出现错误了。"}, {lively, "真有趣，没想到！"}, {unsure, "也许吧。"},
		{plain, "It is ten o'clock."}, {plain, "Es ist zehn Uhr."}, {plain, ""}, {plain, "…"},
		{good, "没问题。"}, {good, "問題ありません。"}, {good, "Kein Problem."}, // the shorter entries "problem" and the like do not match within the longer ones
	} {
		if got := w.Analyse(c.text, ""); !c.is(got) {
			t.Errorf("%q is %+v", c.text, got)
		}
	}
}

// TestSentimentByItsNumbers tests the formulas of newSentiment.
func TestSentimentByItsNumbers(t *testing.T) {
	w := words(t)
	for text, want := range map[string]Sentiment{
		"one two three four five great":      {Valence: .8 * .5},
		"one two three four five error.":     {Valence: -.7 * .5}, // the full stop is ignored
		"one two three four five sorry":      {Valence: -.3 * .5},
		"one two three four five unusual":    {Arousal: .9 * .5},
		"one two three four five scanning":   {Arousal: .3 * .5},
		"one two three four five maybe":      {Uncertain: .5},
		"great":                              {Valence: .8},
		"error, sorry":                       {Valence: -1},
		"ten! ":                              {Arousal: .2},
		"ten??":                              {Arousal: .2},
		"ten!!!!!!":                          {Arousal: .5},
		"one one one one one great":          {Valence: .8}, // repeated words count once, so there are two words
		"one two three four i think hmm hmm": {Uncertain: 3. / 7},
		"hard to say one two three":          {Uncertain: .5}, // the entry "hard" does not match within "hard to say"
	} {
		got := w.Analyse(text, "en")
		if math.Abs(got.Valence-want.Valence)+math.Abs(got.Arousal-want.Arousal)+math.Abs(got.Uncertain-want.Uncertain) > 1e-9 {
			t.Errorf("%q is %+v, not %+v", text, got, want)
		}
	}
}

func TestCountWords(t *testing.T) {
	for text, want := range map[string]int{"": 0, "Well, well!": 2, "don't": 1, "太好了": 2, "こんにちは world": 4} {
		if got := CountWords(text); got != want {
			t.Errorf("%q has %d words, not %d", text, got, want)
		}
	}
}

// TestOwnersWords tests that an owner can add words and languages, and that an invalid list is
// skipped and reported.
func TestOwnersWords(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"de.txt": "# mine\ncelebration: bärig, des passt scho\n", "it.txt": "concern: errore\n",
		"fr.txt": "joie: chouette\n", "es.txt": "concern: " + strings.Repeat("x", 200), "notes.md": "?", "pt.txt": strings.Repeat("#", limit.List+1),
	} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	w, err := ReadWords(dir)
	for _, want := range []string{"fr.txt: line 1: it does not begin with a feeling", "es.txt: line 1: a word has at most 100 bytes",
		"pt.txt: the list is larger than"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, without %q", err, want)
		}
	}
	if s := w.Analyse("Des passt scho!", ""); s.Valence <= .3 {
		t.Errorf("an owner's words are %+v", s)
	}
	if s := w.Analyse("un errore", ""); s.Valence >= -.2 {
		t.Errorf("an owner's language is %+v", s)
	}
	if s := w.Analyse("C'est parfait", ""); s.Valence <= .3 {
		t.Errorf("the package's own words are gone: %+v", s)
	}
	if _, err := ReadWords(filepath.Join(dir, "none")); err != nil {
		t.Errorf("no directory: %v", err)
	}
}

// FuzzAnalyse tests that the sentiment of any text is within its ranges.
func FuzzAnalyse(f *testing.F) {
	w := words(f)
	for _, text := range []string{"", "!!!", "太好了 great", strings.Repeat("wow ", 5000), "\xff\xfe", "ー", "'-'"} {
		f.Add(text, "de-CH")
	}
	f.Fuzz(func(t *testing.T, text, language string) {
		s := w.Analyse(text, language)
		if !(math.Abs(s.Valence) <= 1 && s.Arousal >= 0 && s.Arousal <= 1 && s.Uncertain >= 0 && s.Uncertain <= 1) || CountWords(text) < 0 {
			t.Errorf("%q is %+v", text, s)
		}
	})
}
