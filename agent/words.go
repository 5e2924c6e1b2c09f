package agent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"perch/limit"
)

// Vocabulary names a set of words for faces, as one renderer knows them.
type Vocabulary string

// The built-in vocabularies.
const (
	VocabularyXiaozhi   Vocabulary = "xiaozhi"   // the firmware's 21 names, which all others are mapped from
	VocabularyRFC       Vocabulary = "rfc"       // the 16 of AniCompanion, the client of the RFC's author
	VocabularyLive2D    Vocabulary = "live2d"    // the 8 of the OpenAB companion
	VocabularyVRM       Vocabulary = "vrm"       // the presets of VRM 1.0
	VocabularyVRM0      Vocabulary = "vrm0"      // the presets of VRM 0.x
	VocabularyStackChan Vocabulary = "stackchan" // the eight faces of the stock robot

	// VocabularyChatdollKit is the faces of ChatdollKit's models, as found in a text.
	VocabularyChatdollKit Vocabulary = "chatdollkit"
	// VocabularyVerbatim is the model's own words: a face has the name that the model
	// wrote, or the firmware's name if it wrote none.
	VocabularyVerbatim Vocabulary = "verbatim"
)

// ErrWords is wrapped by NewWords for words that cannot be added.
var ErrWords = errors.New("not words for faces")

// mostVocabularies bounds the vocabularies that may be added.
const mostVocabularies = 32

const chatdollKitPrefix = "face:"

// stockVocabularies returns the columns of faceTable.
func stockVocabularies() []Vocabulary {
	return []Vocabulary{VocabularyXiaozhi, VocabularyRFC, VocabularyLive2D, VocabularyVRM, VocabularyVRM0, VocabularyStackChan, VocabularyChatdollKit}
}

// faceTable returns the words for each face, in the order of Emotions and of
// stockVocabularies. A word in several rows means the first of them, unless
// ambiguousWords says otherwise.
//
// The stock robot has eight faces. Joking is shown as laughing. A wink, pride and
// contentment are shown as happy, whose eyes are the warmest. Models write surprise
// for "oh, how nice" far more often than for a fright, so it is happy too. A fright
// and unsureness are doubtful. Sleepy is not shown; see Emotion.On.
func faceTable() [][]string {
	return [][]string{
		{"neutral", "neutral", "neutral", "neutral", "neutral", "neutral", "face:Neutral"},
		{"happy", "happy", "joy", "happy", "joy", "happy", "face:Joy"},
		{"laughing", "laugh", "joy", "happy", "joy", "laughing", "face:Joy"},
		{"funny", "laugh", "joy", "happy", "joy", "laughing", "face:Joy"},
		{"sad", "sad", "sadness", "sad", "sorrow", "sad", "face:Sorrow"},
		{"angry", "angry", "anger", "angry", "angry", "angry", "face:Angry"},
		{"crying", "sad", "sadness", "sad", "sorrow", "crying", "face:Sorrow"},
		{"loving", "love", "joy", "happy", "joy", "happy", "face:Joy"},
		{"embarrassed", "shy", "neutral", "neutral", "neutral", "doubtful", "face:Neutral"},
		{"surprised", "surprised", "surprise", "surprised", "joy", "happy", "face:Surprised"},
		{"shocked", "surprised", "fear", "surprised", "sorrow", "doubtful", "face:Surprised"},
		{"thinking", "curious", "neutral", "neutral", "neutral", "doubtful", "face:Neutral"},
		{"winking", "smirk", "smirk", "relaxed", "fun", "happy", "face:Fun"},
		{"cool", "proud", "smirk", "relaxed", "fun", "happy", "face:Fun"},
		{"relaxed", "happy", "joy", "relaxed", "fun", "happy", "face:Fun"},
		{"delicious", "excited", "joy", "happy", "joy", "happy", "face:Joy"},
		{"kissy", "love", "joy", "happy", "joy", "happy", "face:Joy"},
		{"confident", "smirk", "smirk", "relaxed", "fun", "happy", "face:Fun"},
		{"sleepy", "sleepy", "neutral", "relaxed", "neutral", "neutral", "face:Neutral"},
		{"silly", "laugh", "joy", "happy", "joy", "laughing", "face:Fun"},
		{"confused", "curious", "neutral", "neutral", "neutral", "doubtful", "face:Neutral"},
	}
}

// ambiguousWords maps words that do not mean the first row that has them.
func ambiguousWords() map[string]string {
	return map[string]string{
		"smirk": "confident", "fun": "relaxed", "face:fun": "relaxed", "doubtful": "thinking",
	}
}

// readOnlyWords maps words that others use for faces. They are accepted but never
// written, because there is a nearer word or no such face.
func readOnlyWords() map[string]string {
	return map[string]string{
		"disgusted": "angry", "pain": "crying", "bored": "sleepy", // of the 16
		"disgust": "angry", // of the 8

		"joyful": "happy", "smile": "happy", "smiling": "happy", "grateful": "happy",
		"calm": "neutral", "normal": "neutral", "serious": "neutral", "amused": "laughing",
		"disappointed": "sad", "worried": "sad", "amazed": "surprised", "afraid": "shocked", "scared": "shocked",
		"annoyed": "angry", "frustrated": "angry", "affectionate": "loving", "focused": "thinking", "tired": "sleepy",
	}
}

// Words maps between the 21 faces and their names in all vocabularies. It is
// immutable and safe for concurrent use.
type Words struct {
	written map[Vocabulary]map[string]string // by a face's name
	read    map[string]Emotion               // by a word, in lower case
}

// NewWords returns the stock words and additional vocabularies, which map the names of
// the 21 faces to words. In a stock vocabulary they replace the stock words. In a new
// one neutral is required and stands for the faces that are left out. A new word means
// the first face that has it. Errors wrap ErrWords.
func NewWords(added map[Vocabulary]map[string]string) (*Words, error) {
	w := &Words{written: map[Vocabulary]map[string]string{}, read: map[string]Emotion{}}
	for _, v := range stockVocabularies() {
		w.written[v] = map[string]string{}
	}
	for _, row := range faceTable() {
		for i, word := range row {
			w.written[stockVocabularies()[i]][row[0]] = word
		}
	}
	w.written[VocabularyVerbatim] = w.written[VocabularyXiaozhi]
	w.readStock()
	if len(added) > mostVocabularies {
		return nil, fmt.Errorf("%w: %d vocabularies are more than %d", ErrWords, len(added), mostVocabularies)
	}
	for _, v := range slices.Sorted(maps.Keys(added)) {
		if err := w.add(v, added[v]); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// readStock sets the faces of the stock words.
func (w *Words) readStock() {
	for _, e := range Emotions() {
		w.read[e.Name] = e // a face's own name always means that face
	}
	for _, some := range []map[string]string{ambiguousWords(), readOnlyWords()} {
		for word, name := range some {
			w.read[word] = w.read[name]
		}
	}
	for _, row := range faceTable() {
		for _, word := range row {
			if word = strings.ToLower(word); w.read[word].Name == "" {
				w.read[word] = w.read[row[0]]
			}
		}
	}
}

func (w *Words) add(v Vocabulary, words map[string]string) error {
	if err := CheckWord(string(v)); err != nil {
		return fmt.Errorf("%w: the vocabulary %.40q: %w", ErrWords, v, err)
	}
	if v == VocabularyXiaozhi || v == VocabularyVerbatim {
		return fmt.Errorf("%w: %s is what the others are mapped from, and stays as it is", ErrWords, v)
	}
	for name, word := range words {
		if !slices.ContainsFunc(Emotions(), func(e Emotion) bool { return e.Name == name }) {
			return fmt.Errorf("%w: %s: %.40q is none of the 21 faces", ErrWords, v, name)
		}
		if err := CheckWord(strings.TrimPrefix(word, chatdollKitPrefix)); err != nil {
			return fmt.Errorf("%w: %s: the word %.40q: %w", ErrWords, v, word, err)
		}
	}
	stock, known := w.written[v]
	if !known && words[Neutral.Name] == "" {
		return fmt.Errorf("%w: %s needs a word for neutral, which stands for all it leaves out", ErrWords, v)
	}
	written := map[string]string{}
	for _, e := range Emotions() {
		written[e.Name] = cmp.Or(words[e.Name], stock[e.Name], words[Neutral.Name])
		word := strings.ToLower(written[e.Name])
		if _, known := w.read[word]; !known {
			w.read[word] = e
		}
	}
	w.written[v] = written
	return nil
}

// CheckWord accepts letters, digits, hyphens and underscores, as in tags.
func CheckWord(word string) error {
	if word == "" || len(word) > limit.Word || strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	}) {
		return fmt.Errorf("a word has 1 to %d bytes, of letters, digits, - and _", limit.Word)
	}
	return nil
}

// Word returns a vocabulary's word for a face. Any face besides the 21, such as an icon
// of the firmware, has the word of neutral. An unknown vocabulary is treated as the
// firmware's.
func (w *Words) Word(v Vocabulary, face string) string {
	words, known := w.written[v]
	if !known {
		words = w.written[VocabularyXiaozhi]
	}
	if word, known := words[face]; known {
		return word
	}
	if face == Doubtful.Name {
		return words["thinking"]
	}
	return words[Neutral.Name]
}

// Tag returns a vocabulary's word for a face that a model wrote a tag for, or "".
func (w *Words) Tag(v Vocabulary, face, tag string) string {
	if v == VocabularyVerbatim && tag != "" {
		return tag
	}
	return w.Word(v, face)
}

// Face returns the face of a word of any vocabulary, ignoring case.
func (w *Words) Face(word string) (Emotion, bool) {
	e, known := w.read[strings.ToLower(strings.TrimSpace(word))]
	return e, known
}

// Knows reports whether there is a vocabulary of that name.
func (w *Words) Knows(v Vocabulary) bool { return w.written[v] != nil }

// Vocabularies lists all vocabularies, in order.
func (w *Words) Vocabularies() []Vocabulary { return slices.Sorted(maps.Keys(w.written)) }

// StockWords returns the words without additions.
func StockWords() *Words {
	w, err := NewWords(nil)
	if err != nil {
		panic(err)
	}
	return w
}
