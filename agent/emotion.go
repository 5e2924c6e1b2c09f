package agent

import (
	"cmp"
	"strings"
	"unicode/utf8"
)

// Emotion is a face, by the firmware's name for it, with the emoji that stands for
// it in a reply. Two emotions of the same name are the same face but may differ in
// their emoji.
type Emotion struct {
	Name  string `json:"name"`
	Emoji string `json:"emoji"`
}

// Faces that the code refers to by name.
var (
	// Neutral is the face of an agent without a particular emotion.
	Neutral = Emotion{"neutral", "😐"}
	// Sleepy means good night. A Stack-chan keeps this face until it restarts, so only a
	// turn that ends with Sleep sends it unchanged; all others go through On.
	Sleepy = Emotion{"sleepy", "😴"}
	// Doubtful is a face that only the Stack-chan has. No reply can select it.
	Doubtful = Emotion{"doubtful", "🤨"}
)

// Emotions returns the firmware's 21 faces. A reply may begin with the emoji of any of them.
func Emotions() []Emotion {
	return []Emotion{
		Neutral, {"happy", "😊"}, {"laughing", "😆"}, {"funny", "😂"}, {"sad", "😢"}, {"angry", "😠"}, {"crying", "😭"},
		{"loving", "😍"}, {"embarrassed", "😳"}, {"surprised", "😮"}, {"shocked", "😱"}, {"thinking", "🤔"},
		{"winking", "😉"}, {"cool", "😎"}, {"relaxed", "😌"}, {"delicious", "🤤"}, {"kissy", "😘"}, {"confident", "😏"},
		Sleepy, {"silly", "😜"}, {"confused", "🙄"},
	}
}

// OfferedEmotions returns the nine faces that a prompt offers to a model. A small set
// keeps faces predictable. A model may still use others, which renderers map to
// what they can show (see On).
func OfferedEmotions() []Emotion {
	return []Emotion{
		{"happy", "😊"}, {"laughing", "😆"}, {"sad", "😢"}, {"surprised", "😮"}, {"thinking", "🤔"},
		{"angry", "😠"}, Neutral, {"loving", "😍"}, Sleepy,
	}
}

// emotionAliases maps other emoji that models write to the names of the 21 faces. It
// includes the firmware's own list of emoji.
func emotionAliases() map[string]string {
	return map[string]string{
		"🙂": "happy", "😀": "happy", "😃": "happy", "😄": "happy", "😁": "happy", "☺": "happy",
		"🤣": "funny", "😔": "sad", "😞": "sad", "🙁": "sad", "☹": "sad", "😡": "angry", "😲": "surprised", "😯": "surprised",
		"🥰": "loving", "❤": "loving", "😶": "neutral", "😑": "neutral", "😋": "delicious", "😚": "kissy", "😕": "confused",
		"🤨": "confused", "😪": "sleepy", "🥱": "sleepy", "😛": "silly", "😝": "silly",
	}
}

// SplitEmotion cuts the emoji off the beginning of a reply. A reply without one of
// the 21 is neutral. All other emoji are removed from the text, because voices read
// them out.
func SplitEmotion(reply string) (Emotion, string) {
	reply = strings.TrimSpace(reply)
	first, size := utf8.DecodeRuneInString(reply)
	if e, found := EmotionOf(first); found {
		return e, withoutEmoji(reply[size:])
	}
	return Neutral, withoutEmoji(reply)
}

// EmotionOf returns the face that an emoji stands for.
func EmotionOf(r rune) (Emotion, bool) {
	emoji := string(r)
	for _, e := range Emotions() {
		if e.Emoji == emoji {
			return e, true
		}
	}
	name, found := emotionAliases()[emoji]
	return Emotion{name, emoji}, found
}

// Offered returns the nearest offered face, for past answers in a prompt.
func (e Emotion) Offered() Emotion {
	name := cmp.Or(nearestOffered()[e.Name], e.Name)
	for _, o := range OfferedEmotions() {
		if o.Name == name {
			return o
		}
	}
	return Neutral
}

// nearestOffered maps the twelve other faces to the nine offered ones.
func nearestOffered() map[string]string {
	return map[string]string{
		"funny": "laughing", "silly": "laughing", "crying": "sad", "shocked": "surprised", "kissy": "loving",
		"winking": "happy", "cool": "happy", "relaxed": "happy", "delicious": "happy", "confident": "happy",
		"embarrassed": "thinking", "confused": "thinking", // unsure of itself
	}
}

// withoutEmoji removes pictographs, and the characters that join and colour them.
func withoutEmoji(text string) string {
	spoken := strings.Map(func(r rune) rune {
		if IsEmoji(r) {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(spoken), " ")
}

// IsEmoji reports whether r is a pictograph, an arrow, or joins or colours one.
func IsEmoji(r rune) bool {
	return r >= 0x1F000 && r <= 0x1FAFF || r >= 0x2600 && r <= 0x27BF || r >= 0x2190 && r <= 0x21FF || r >= 0x2300 && r <= 0x23FF ||
		r >= 0x2B00 && r <= 0x2BFF || r >= 0xE0020 && r <= 0xE007F || r == 0x200B || r == 0x200D ||
		r == 0xFE0E || r == 0xFE0F || r == 0x20E3 || r == 0xFEFF || r == utf8.RuneError
}

// On returns the face as a robot's board can show it, with the reply's emoji. Most
// boards know all 21. A Stack-chan knows eight and shows any other name as neutral,
// so the others are mapped to the nearest of those. There sleepy becomes neutral:
// the firmware writes "Zzz" next to the face and stops moving until it is restarted,
// which only a good night should cause (see Sleepy).
func (e Emotion) On(board string) Emotion {
	switch {
	case isStackChan(board):
		// Other names, such as icons, are shown as neutral anyway.
		e.Name = StockWords().Word(VocabularyStackChan, e.Name)
	case e.Name == Doubtful.Name:
		e.Name = "thinking"
	}
	return e
}

// isStackChan recognizes the firmware's name of the board, "m5stack-stack-chan".
func isStackChan(board string) bool {
	board = strings.ToLower(board)
	return strings.Contains(board, "stack-chan") || strings.Contains(board, "stackchan")
}
