package agent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Vocabulary names a set of words for faces. Renderers know one, and each its
// own.
type Vocabulary string

// The vocabularies that are known without being told.
const (
	VocabularyXiaozhi   Vocabulary = "xiaozhi"   // the firmware's 21, which all others are told from
	VocabularyRFC       Vocabulary = "rfc"       // the 16 of AniCompanion, the client its author wrote beside the RFC
	VocabularyLive2D    Vocabulary = "live2d"    // the 8 of the OpenAB companion
	VocabularyVRM       Vocabulary = "vrm"       // the presets of VRM 1.0
	VocabularyVRM0      Vocabulary = "vrm0"      // those of VRM 0.x
	VocabularyStackChan Vocabulary = "stackchan" // the eight faces of the stock robot

	// VocabularyChatdollKit are the faces of ChatdollKit's models, in the form it
	// looks for them in a text.
	VocabularyChatdollKit Vocabulary = "chatdollkit"
	// VocabularyVerbatim is the model's own: each face is called what it wrote. A
	// face that it did not write as a word is called as the firmware does.
	VocabularyVerbatim Vocabulary = "verbatim"
)

// ErrWords is wrapped by NewWords for what cannot be added.
var ErrWords = errors.New("not words for faces")

// What may be added, and how long a word may be, in bytes.
const (
	mostVocabularies = 32
	mostWord         = 64
)

// faceWords is one row of the table: what a face is called elsewhere, in the
// order of stockVocabularies.
type faceWords struct {
	name                              string
	rfc, live2d, vrm, vrm0, stackchan string
	chatdollkit                       string
}

// ofChatdollKit begins each of ChatdollKit's words.
const ofChatdollKit = "face:"

// stockVocabularies are the columns of faceTable.
func stockVocabularies() []Vocabulary {
	return []Vocabulary{VocabularyXiaozhi, VocabularyRFC, VocabularyLive2D, VocabularyVRM, VocabularyVRM0, VocabularyStackChan, VocabularyChatdollKit}
}

func (f faceWords) columns() []string {
	return []string{f.name, f.rfc, f.live2d, f.vrm, f.vrm0, f.stackchan, ofChatdollKit + f.chatdollkit}
}

// faceTable is the one table of faces, in the order of Emotions. A word that
// stands in more than one row belongs to the first in which it is marked as
// its home, which readHome says where that is not the first of all.
//
// For the stock robot: whoever jokes laughs; a wink, pride and contentment
// are friendly, and its eyes of happy are the warmest there are. Models write
// surprise for "oh, how nice" far more than for a fright. A fright is no
// pleasure and no anger either, and who is unsure of itself is doubtful.
// Sleepy is not among what is shown; see Emotion.On.
func faceTable() []faceWords {
	return []faceWords{
		{"neutral", "neutral", "neutral", "neutral", "neutral", "neutral", "Neutral"},
		{"happy", "happy", "joy", "happy", "joy", "happy", "Joy"},
		{"laughing", "laugh", "joy", "happy", "joy", "laughing", "Joy"},
		{"funny", "laugh", "joy", "happy", "joy", "laughing", "Joy"},
		{"sad", "sad", "sadness", "sad", "sorrow", "sad", "Sorrow"},
		{"angry", "angry", "anger", "angry", "angry", "angry", "Angry"},
		{"crying", "sad", "sadness", "sad", "sorrow", "crying", "Sorrow"},
		{"loving", "love", "joy", "happy", "joy", "happy", "Joy"},
		{"embarrassed", "shy", "neutral", "neutral", "neutral", "doubtful", "Neutral"},
		{"surprised", "surprised", "surprise", "surprised", "joy", "happy", "Surprised"},
		{"shocked", "surprised", "fear", "surprised", "sorrow", "doubtful", "Surprised"},
		{"thinking", "curious", "neutral", "neutral", "neutral", "doubtful", "Neutral"},
		{"winking", "smirk", "smirk", "relaxed", "fun", "happy", "Fun"},
		{"cool", "proud", "smirk", "relaxed", "fun", "happy", "Fun"},
		{"relaxed", "happy", "joy", "relaxed", "fun", "happy", "Fun"},
		{"delicious", "excited", "joy", "happy", "joy", "happy", "Joy"},
		{"kissy", "love", "joy", "happy", "joy", "happy", "Joy"},
		{"confident", "smirk", "smirk", "relaxed", "fun", "happy", "Fun"},
		{"sleepy", "sleepy", "neutral", "relaxed", "neutral", "neutral", "Neutral"},
		{"silly", "laugh", "joy", "happy", "joy", "laughing", "Fun"},
		{"confused", "curious", "neutral", "neutral", "neutral", "doubtful", "Neutral"},
	}
}

// readHome says whose a word is where the first row that has it is not meant.
func readHome() map[string]string {
	return map[string]string{
		"smirk": "confident", "fun": "relaxed", "face:fun": "relaxed", "doubtful": "thinking",
	}
}

// readOnly are words that others write for faces and that are never written
// here: there is a nearer one, or none that is a face of its own.
func readOnly() map[string]string {
	return map[string]string{
		"disgusted": "angry", "pain": "crying", "bored": "sleepy", // of the 16
		"disgust": "angry", // of the 8

		"joyful": "happy", "smile": "happy", "smiling": "happy", "grateful": "happy",
		"calm": "neutral", "normal": "neutral", "serious": "neutral", "amused": "laughing",
		"disappointed": "sad", "worried": "sad", "amazed": "surprised", "afraid": "shocked", "scared": "shocked",
		"annoyed": "angry", "frustrated": "angry", "affectionate": "loving", "focused": "thinking", "tired": "sleepy",
	}
}

// Words is the one table between the 21 faces and what they are called
// elsewhere, with what its owner has added. It does not change, and may be
// used from any goroutine.
type Words struct {
	written map[Vocabulary]map[string]string // by a face's name
	read    map[string]Emotion               // by a word, in lower case
}

// NewWords returns the table with vocabularies added to it: each has words by
// the names of the 21 faces. In a stock vocabulary they take the place of its
// own; in a new one a face that is left out is called as neutral is, and
// neutral is needed. A word that nobody knew yet is read as the first face it
// was given to. NewWords wraps ErrWords for what cannot be added.
func NewWords(added map[Vocabulary]map[string]string) (*Words, error) {
	w := &Words{written: map[Vocabulary]map[string]string{}, read: map[string]Emotion{}}
	for _, v := range stockVocabularies() {
		w.written[v] = map[string]string{}
	}
	for _, row := range faceTable() {
		for i, word := range row.columns() {
			w.written[stockVocabularies()[i]][row.name] = word
		}
	}
	w.written[VocabularyVerbatim] = w.written[VocabularyXiaozhi]
	w.learn()
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

// learn notes how the stock words are read.
func (w *Words) learn() {
	for _, e := range Emotions() {
		w.read[e.Name] = e // a face's own name is that face, whatever else it is called
	}
	for _, some := range []map[string]string{readHome(), readOnly()} {
		for word, name := range some {
			w.read[word] = w.read[name]
		}
	}
	for _, row := range faceTable() {
		for _, word := range row.columns() {
			if word = strings.ToLower(word); w.read[word].Name == "" {
				w.read[word] = w.read[row.name]
			}
		}
	}
}

func (w *Words) add(v Vocabulary, words map[string]string) error {
	if err := CheckWord(string(v)); err != nil {
		return fmt.Errorf("%w: the vocabulary %.40q: %w", ErrWords, v, err)
	}
	if v == VocabularyXiaozhi || v == VocabularyVerbatim {
		return fmt.Errorf("%w: %s is what the others are told from, and stays as it is", ErrWords, v)
	}
	for name, word := range words {
		if !slices.ContainsFunc(Emotions(), func(e Emotion) bool { return e.Name == name }) {
			return fmt.Errorf("%w: %s: %.40q is none of the 21 faces", ErrWords, v, name)
		}
		if err := CheckWord(strings.TrimPrefix(word, ofChatdollKit)); err != nil {
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

// CheckWord lets through what can stand in a tag: letters, digits, and what
// joins them.
func CheckWord(word string) error {
	if word == "" || len(word) > mostWord || strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	}) {
		return fmt.Errorf("a word has 1 to %d bytes, of letters, digits, - and _", mostWord)
	}
	return nil
}

// Word is what a vocabulary calls a face. A face that is none of the 21, an
// icon of the firmware's say, is called as neutral is; so is every face where
// the vocabulary is unknown, in the firmware's words.
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

// Tag is what a vocabulary calls a face that a model wrote a tag for, or none.
func (w *Words) Tag(v Vocabulary, face, tag string) string {
	if v == VocabularyVerbatim && tag != "" {
		return tag
	}
	return w.Word(v, face)
}

// Face is the face that a word of any vocabulary stands for, in whatever case.
func (w *Words) Face(word string) (Emotion, bool) {
	e, known := w.read[strings.ToLower(strings.TrimSpace(word))]
	return e, known
}

// Knows reports whether there is a vocabulary of that name.
func (w *Words) Knows(v Vocabulary) bool { return w.written[v] != nil }

// Vocabularies are all there are, in order.
func (w *Words) Vocabularies() []Vocabulary { return slices.Sorted(maps.Keys(w.written)) }

// StockWords is the table as it is. Nothing was added that could be wrong.
func StockWords() *Words {
	w, err := NewWords(nil)
	if err != nil {
		panic(err)
	}
	return w
}
