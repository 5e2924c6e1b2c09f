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

// Vocabulary is the name of a set of words for faces. Each program that shows faces uses
// one vocabulary.
type Vocabulary string

// The built-in vocabularies.
const (
	VocabularyXiaozhi   Vocabulary = "xiaozhi"   // the firmware's 21 names
	VocabularyRFC       Vocabulary = "rfc"       // the 16 names of AniCompanion, a program by the author of OpenAB's RFCs on avatars (see docs/skins.md)
	VocabularyLive2D    Vocabulary = "live2d"    // the 8 names of the OpenAB companion
	VocabularyVRM       Vocabulary = "vrm"       // the presets of VRM 1.0
	VocabularyVRM0      Vocabulary = "vrm0"      // the presets of VRM 0.x
	VocabularyStackChan Vocabulary = "stackchan" // the eight faces of the Stack-chan's firmware

	// VocabularyChatdollKit has the names of ChatdollKit's faces, written as in its texts:
	// "face:Joy".
	VocabularyChatdollKit Vocabulary = "chatdollkit"
	// VocabularyVerbatim uses the word that the model wrote for a face, or else the
	// firmware's name.
	VocabularyVerbatim Vocabulary = "verbatim"
)

// ErrWords is wrapped by the errors of NewWords.
var ErrWords = errors.New("not words for faces")

// maxVocabularies is the maximum number of vocabularies that can be added.
const maxVocabularies = 32

// chatdollKitPrefix precedes the names of faces in VocabularyChatdollKit.
const chatdollKitPrefix = "face:"

// stockVocabularies returns the vocabularies in the order of the columns of faceTable.
func stockVocabularies() []Vocabulary {
	return []Vocabulary{VocabularyXiaozhi, VocabularyRFC, VocabularyLive2D, VocabularyVRM, VocabularyVRM0, VocabularyStackChan, VocabularyChatdollKit}
}

// faceTable returns the words for each face: a row per face of Emotions, and a column per
// vocabulary of stockVocabularies. A word in several rows means the face of the first row,
// unless ambiguousWords contains the word.
//
// The Stack-chan has eight faces. It shows funny and silly as laughing. It shows winking,
// cool, relaxed and similar faces as happy, which has the warmest eyes. Surprised is also
// shown as happy, because models use surprised far more often for a nice surprise than for a
// fright. Shocked, thinking, confused and embarrassed are shown as doubtful, and sleepy as
// neutral (see Emotion.On).
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

// ambiguousWords maps the words of faceTable that do not mean the face of the first row that
// contains them to the face that they mean.
func ambiguousWords() map[string]string {
	return map[string]string{
		"smirk": "confident", "fun": "relaxed", "face:fun": "relaxed", "doubtful": "thinking", "excited": "laughing",
	}
}

// readOnlyWords maps further words for faces, which Words.Face accepts but Words.Word never
// returns, to the names of the faces.
func readOnlyWords() map[string]string {
	words := map[string]string{
		"disgusted": "angry", "pain": "crying", "bored": "sleepy", // words of VocabularyRFC
		"disgust": "angry", // word of VocabularyLive2D
	}
	for name, synonyms := range synonyms() {
		for word := range strings.FieldsSeq(synonyms) {
			words[word] = name
		}
	}
	return words
}

// synonyms returns words that language models write for the faces, in English and Japanese, separated by spaces.
func synonyms() map[string]string {
	return map[string]string{
		"neutral":     "calm normal serious 普通 通常 無表情 真顔",
		"happy":       "joyful smile smiling grateful cheerful glad pleased delighted hopeful 笑顔 微笑み 喜び 嬉しい うれしい 楽しい 幸せ 満足",
		"laughing":    "amused giggle giggling grin grinning chuckle thrilled ecstatic enthusiastic 笑い 笑う 大笑い 爆笑 興奮 わくわく ワクワク",
		"funny":       "面白い おもしろい",
		"sad":         "disappointed worried lonely sorry apologetic gloomy hurt 悲しい 悲しみ 寂しい さみしい 残念 落ち込み 心配 申し訳ない",
		"crying":      "cry sobbing weeping tearful 泣く 泣き 泣き顔 涙 号泣",
		"angry":       "annoyed frustrated mad furious irritated upset grumpy 怒り 怒る 怒った 不満 イライラ 不機嫌 嫌悪",
		"loving":      "affectionate adoring tender 愛 愛情 大好き 好き",
		"embarrassed": "blush blushing bashful ashamed flustered awkward 照れ 照れる 恥ずかしい",
		"surprised":   "amazed astonished startled wow 驚き 驚く 驚いた びっくり",
		"shocked":     "afraid scared terrified anxious nervous panicked 恐怖 怖い 不安 焦り 衝撃 ショック",
		"thinking":    "focused thoughtful pensive pondering wondering 考え中 考える 思考 真剣 好奇心",
		"confused":    "puzzled unsure perplexed bewildered 困惑 困る 困った 戸惑い 混乱 疑問",
		"winking":     "wink playful mischievous teasing ウインク ウィンク いたずら",
		"cool":        "クール かっこいい",
		"relaxed":     "peaceful relieved comfortable gentle 安心 穏やか 落ち着き リラックス",
		"confident":   "determined smug 自信 得意 ドヤ顔",
		"kissy":       "kiss kissing キス 投げキス",
		"delicious":   "yummy tasty hungry 美味しい おいしい",
		"sleepy":      "tired exhausted drowsy sleeping 眠い 眠たい 眠気 疲れた",
		"silly":       "goofy crazy joking おどけ ふざけ",
	}
}

// Words maps faces to their words in all vocabularies, and words to faces. It is immutable
// and safe for concurrent use.
type Words struct {
	toWord map[Vocabulary]map[string]string // inner key: name of a face; value: word
	toFace map[string]Emotion               // key: word in lower case
}

// NewWords returns the stock words together with added vocabularies, each a map from names
// of the 21 faces to words. For a stock vocabulary the map replaces single words;
// VocabularyXiaozhi and VocabularyVerbatim cannot be changed. A new vocabulary must contain
// neutral, whose word is used for the faces that it omits. If several faces have the same
// new word, the word means the first of them. An error wraps ErrWords.
func NewWords(added map[Vocabulary]map[string]string) (*Words, error) {
	w := &Words{toWord: map[Vocabulary]map[string]string{}, toFace: map[string]Emotion{}}
	for _, v := range stockVocabularies() {
		w.toWord[v] = map[string]string{}
	}
	for _, row := range faceTable() {
		for i, word := range row {
			w.toWord[stockVocabularies()[i]][row[0]] = word
		}
	}
	w.toWord[VocabularyVerbatim] = w.toWord[VocabularyXiaozhi]
	w.addStockFaces()
	if len(added) > maxVocabularies {
		return nil, fmt.Errorf("%w: %d vocabularies are more than %d", ErrWords, len(added), maxVocabularies)
	}
	for _, v := range slices.Sorted(maps.Keys(added)) {
		if err := w.add(v, added[v]); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// addStockFaces adds the stock words to toFace.
func (w *Words) addStockFaces() {
	for _, e := range Emotions() {
		w.toFace[e.Name] = e // the name of a face always means that face
	}
	for _, faces := range []map[string]string{ambiguousWords(), readOnlyWords()} {
		for word, name := range faces {
			w.toFace[word] = w.toFace[name]
		}
	}
	for _, row := range faceTable() {
		for _, word := range row {
			if word = strings.ToLower(word); w.toFace[word].Name == "" {
				w.toFace[word] = w.toFace[row[0]]
			}
		}
	}
}

// add adds a vocabulary, or replaces words of a stock one.
func (w *Words) add(v Vocabulary, words map[string]string) error {
	if err := CheckWord(string(v)); err != nil {
		return fmt.Errorf("%w: the vocabulary %.40q: %w", ErrWords, v, err)
	}
	if v == VocabularyXiaozhi || v == VocabularyVerbatim {
		return fmt.Errorf("%w: the words of %s are fixed, because the other vocabularies are mapped from them", ErrWords, v)
	}
	for name, word := range words {
		if !slices.ContainsFunc(Emotions(), func(e Emotion) bool { return e.Name == name }) {
			return fmt.Errorf("%w: %s: %.40q is not one of the 21 faces", ErrWords, v, name)
		}
		if err := CheckWord(strings.TrimPrefix(word, chatdollKitPrefix)); err != nil {
			return fmt.Errorf("%w: %s: the word %.40q: %w", ErrWords, v, word, err)
		}
	}
	stock, isStock := w.toWord[v]
	if !isStock && words[Neutral.Name] == "" {
		return fmt.Errorf("%w: %s needs a word for neutral, which is used for the faces that it omits", ErrWords, v)
	}
	toWord := map[string]string{}
	for _, e := range Emotions() {
		toWord[e.Name] = cmp.Or(words[e.Name], stock[e.Name], words[Neutral.Name])
		word := strings.ToLower(toWord[e.Name])
		if _, ok := w.toFace[word]; !ok {
			w.toFace[word] = e
		}
	}
	w.toWord[v] = toWord
	return nil
}

// CheckWord returns an error unless word consists of letters, digits, hyphens and
// underscores, and has 1 to limit.Word bytes.
func CheckWord(word string) error {
	if word == "" || len(word) > limit.Word || strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	}) {
		return fmt.Errorf("a word has 1 to %d bytes, of letters, digits, - and _", limit.Word)
	}
	return nil
}

// Word returns a vocabulary's word for the face with this name. For Doubtful it returns the
// word for thinking, and for any other name that is not one of the 21 faces, such as an icon
// of the firmware, the word for neutral. An unknown vocabulary is treated as
// VocabularyXiaozhi.
func (w *Words) Word(v Vocabulary, face string) string {
	words, ok := w.toWord[v]
	if !ok {
		words = w.toWord[VocabularyXiaozhi]
	}
	if word, ok := words[face]; ok {
		return word
	}
	if face == Doubtful.Name {
		return words["thinking"]
	}
	return words[Neutral.Name]
}

// Tag returns a vocabulary's word for a face. tag is the model's own word for the face, or "".
// For VocabularyVerbatim, Tag returns tag unless it is "". For other vocabularies, Tag prefers
// the word that equals tag, ignoring case, if that word means this face.
func (w *Words) Tag(v Vocabulary, face, tag string) string {
	if v == VocabularyVerbatim && tag != "" {
		return tag
	}
	if meant, _ := w.Face(tag); meant.Name == face {
		for _, word := range w.toWord[v] {
			if strings.EqualFold(word, tag) {
				return word
			}
		}
	}
	return w.Word(v, face)
}

// Face returns the face that a word of any vocabulary means, ignoring case.
func (w *Words) Face(word string) (face Emotion, ok bool) {
	face, ok = w.toFace[strings.ToLower(strings.TrimSpace(word))]
	return face, ok
}

// Knows reports whether there is a vocabulary with this name.
func (w *Words) Knows(v Vocabulary) bool { return w.toWord[v] != nil }

// Vocabularies returns all vocabularies, sorted by name.
func (w *Words) Vocabularies() []Vocabulary { return slices.Sorted(maps.Keys(w.toWord)) }

// StockWords returns the words without added vocabularies.
func StockWords() *Words {
	w, err := NewWords(nil)
	if err != nil {
		panic(err)
	}
	return w
}
