package appliance

import (
	"path/filepath"

	"perch/agent/mood"
	"perch/device"
)

// newMoods makes what characters feel, while that is on, and what judges their sentences. An owner's list of words that
// cannot be read is logged, and the others are used.
func (a *Appliance) newMoods() {
	words, err := mood.ReadWords(wordsDirectory(a.Data))
	if err != nil {
		a.Log.Warn("a list of words for moods is not used; correct it and restart the appliance", "err", err)
	}
	a.sentiment = func(text string) float64 { return words.Analyse(text, a.firstLanguage()).Valence }
	a.moods = mood.New(mood.Options{Bus: a.Bus, Words: words, Off: func() bool { return a.Config().Mood == "off" },
		Language: func(id device.ID) string { return a.Characters.Of(id).Speech.Language }})
}

// wordsDirectory holds the owner's own lists.
func wordsDirectory(data string) string { return filepath.Join(data, "words") }
