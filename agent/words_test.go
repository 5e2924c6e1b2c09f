package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perch/agent"
	"perch/must"
)

// vocabularies lists the words of each vocabulary, from the documents and sources of the
// programs that use it.
var vocabularies = map[agent.Vocabulary]string{
	agent.VocabularyXiaozhi:   firmwareEmotions,
	agent.VocabularyRFC:       "neutral happy sad angry surprised curious excited shy love smirk sleepy proud disgusted pain laugh bored",
	agent.VocabularyLive2D:    "joy sadness anger surprise fear disgust smirk neutral",
	agent.VocabularyVRM:       "happy angry sad relaxed surprised neutral",
	agent.VocabularyVRM0:      "joy angry sorrow fun neutral",
	agent.VocabularyStackChan: "neutral happy laughing angry sad crying sleepy doubtful",
	agent.VocabularyVerbatim:  firmwareEmotions, // for faces without a word of the model

	agent.VocabularyChatdollKit: "face:Neutral face:Joy face:Angry face:Sorrow face:Fun face:Surprised",
}

// readOnly lists the words in vocabularies that Words.Word returns for no face.
var readOnly = strings.Fields("disgusted pain bored disgust")

func newWords(t testing.TB, added map[agent.Vocabulary]map[string]string) *agent.Words {
	t.Helper()
	w := must.Value(agent.NewWords(added))(t)
	return w
}

// TestWordsMapBothWays tests that each face has a word of each vocabulary, that each word
// means a face, and that mapping a word to its face and back gives the same word.
func TestWordsMapBothWays(t *testing.T) {
	w := newWords(t, nil)
	for v, listed := range vocabularies {
		known := strings.Fields(listed)
		written := map[string]bool{}
		for _, e := range agent.Emotions() {
			word := w.Word(v, e.Name)
			if written[word] = true; !slices.Contains(known, word) {
				t.Errorf("%s: %s is called %s, which is none of its words", v, e.Name, word)
			}
			if read, ok := w.Face(word); !ok || w.Tag(v, read.Name, word) != word {
				t.Errorf("%s: %s is called %s, which is read as %s and called %s then", v, e.Name, word, read.Name, w.Word(v, read.Name))
			}
		}
		for _, word := range known {
			read, ok := w.Face(strings.ToUpper(word))
			if !ok || !slices.Contains(agent.Emotions(), read) {
				t.Errorf("%s: %s is read as %v", v, word, read)
			}
			if again := w.Tag(v, read.Name, word); again != word && !slices.Contains(readOnly, word) &&
				!(v == agent.VocabularyStackChan && word == "sleepy") {
				t.Errorf("%s: %s is read as %s, which is called %s", v, word, read.Name, again)
			}
			if slices.Contains(readOnly, word) && written[word] {
				t.Errorf("%s: %s is written", v, word)
			}
		}
		if w.Word(v, agent.Doubtful.Name) != w.Word(v, "thinking") || w.Word(v, "cloud_off") != w.Word(v, "neutral") {
			t.Errorf("%s has words for what is no face", v)
		}
	}
	if got := w.Vocabularies(); len(got) != len(vocabularies) || w.Knows("klingon") || w.Word("klingon", "happy") != "happy" {
		t.Errorf("vocabularies %v", got)
	}
}

// TestTheMeaningOfWords tests which faces words mean.
func TestTheMeaningOfWords(t *testing.T) {
	w := newWords(t, nil)
	for face, words := range map[string]string{
		"neutral": "neutral calm 普通", "happy": "happy joy JOY smile 笑顔", "sad": "sad sadness sorrow", "angry": "angry anger disgust disgusted annoyed",
		"surprised": "surprised surprise 驚き", "thinking": "curious focused doubtful", "delicious": "delicious おいしい", "embarrassed": "shy", "loving": "love",
		"confident": "smirk", "sleepy": "sleepy bored tired", "cool": "proud", "crying": "pain", "laughing": "laugh excited EXCITED giggle 興奮", "shocked": "fear scared",
		"relaxed": "relaxed fun",
	} {
		for word := range strings.FieldsSeq(words) {
			if read, ok := w.Face(word); !ok || read.Name != face {
				t.Errorf("%s is read as %s, not %s", word, read.Name, face)
			}
		}
	}
	if e, ok := w.Face("tuesday"); ok {
		t.Errorf("it is %v", e)
	}
}

// TestAddedWords tests that the words of an added vocabulary map to faces and back, and do not
// change the meaning of stock words.
func TestAddedWords(t *testing.T) {
	stock := newWords(t, nil)
	words := []string{"f01", "f02", "Grin", "tsundere", "joy", "sad", "happy", "ハート", "x-y_z"}
	rapid.Check(t, func(t *rapid.T) {
		own := map[string]string{"neutral": "plain"}
		for _, e := range agent.Emotions()[1:] {
			if rapid.Bool().Draw(t, "named") {
				own[e.Name] = rapid.SampledFrom(words).Draw(t, "word")
			}
		}
		w := must.Value(agent.NewWords(map[agent.Vocabulary]map[string]string{"mine": own}))(t)
		for _, e := range agent.Emotions() {
			word := w.Word("mine", e.Name)
			if want := own[e.Name]; want != "" && word != want || want == "" && word != "plain" {
				t.Fatalf("%s is called %s", e.Name, word)
			}
			read, ok := w.Face(word)
			before, stockWord := stock.Face(word)
			switch {
			case !ok:
				t.Fatalf("%s cannot be read", word)
			case stockWord && read != before:
				t.Fatalf("%s is read as %s, and was as %s", word, read.Name, before.Name)
			case !stockWord && !strings.EqualFold(w.Word("mine", read.Name), word):
				t.Fatalf("%s is read as %s, which is called %s", word, read.Name, w.Word("mine", read.Name))
			}
		}
	})
}

func TestInvalidWords(t *testing.T) {
	many := map[agent.Vocabulary]map[string]string{}
	for i := range 33 {
		many[agent.Vocabulary(strings.Repeat("v", i+1))] = map[string]string{"neutral": "n"}
	}
	for name, added := range map[string]map[agent.Vocabulary]map[string]string{
		"no such face":      {"mine": {"neutral": "n", "hungry": "h"}},
		"no neutral":        {"mine": {"happy": "h"}},
		"a bracket":         {"mine": {"neutral": "n]"}},
		"an empty word":     {"mine": {"neutral": "n", "happy": ""}},
		"a long word":       {"mine": {"neutral": strings.Repeat("x", 65)}},
		"no name":           {"": {"neutral": "n"}},
		"the firmware's 21": {agent.VocabularyXiaozhi: {"happy": "joy"}},
		"the model's own":   {agent.VocabularyVerbatim: {"happy": "joy"}},
		"another tag":       {"mine": {"neutral": "anim:wave"}},
		"half a word":       {"mine": {"neutral": "face:"}},
		"two of them":       {"mine": {"neutral": "face:face:Joy"}},
		"too many":          many,
	} {
		if _, err := agent.NewWords(added); !errors.Is(err, agent.ErrWords) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := newWords(t, map[agent.Vocabulary]map[string]string{agent.VocabularyRFC: {"crying": "pain"}})
	if w.Word(agent.VocabularyRFC, "crying") != "pain" || w.Word(agent.VocabularyRFC, "sad") != "sad" {
		t.Error("a stock vocabulary's word did not take its place")
	}
}

// TestFaceAsAWord tests an added vocabulary whose words have the form face:Joy, which
// ChatdollKit reads.
func TestFaceAsAWord(t *testing.T) {
	w := newWords(t, map[agent.Vocabulary]map[string]string{"mine": {"neutral": "face:Plain", "happy": "face:Joy", "loving": "face:Heart"}})
	for face, want := range map[string]string{"happy": "face:Joy", "loving": "face:Heart", "sad": "face:Plain"} {
		if got := w.Word("mine", face); got != want {
			t.Errorf("%s is called %s", face, got)
		}
	}
	if e, ok := w.Face("face:heart"); !ok || e.Name != "loving" {
		t.Errorf("it is read as %v", e)
	}
	if got := w.Tag(agent.VocabularyVerbatim, "happy", "Grin"); got != "Grin" || w.Tag("mine", "happy", "Grin") != "face:Joy" ||
		w.Tag(agent.VocabularyVerbatim, "cool", "") != "cool" {
		t.Errorf("a model's own word is %s", got)
	}
}
