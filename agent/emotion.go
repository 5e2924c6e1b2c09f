package agent

import (
	"cmp"
	"strings"
	"unicode/utf8"
)

// Emotion is a face of a robot. Emotions with the same name are the same face, even if
// their emoji differ.
type Emotion struct {
	Name  string `json:"name"`  // the firmware's name of the face
	Emoji string `json:"emoji"` // the emoji with which a reply selects the face
}

// Faces that the code refers to by name.
var (
	// Neutral is the face of an agent without a particular emotion.
	Neutral = Emotion{"neutral", "😐"}
	// Sleepy means good night. A Stack-chan that shows this face keeps it until the robot is
	// restarted, so Emotion.On never returns Sleepy for a Stack-chan.
	Sleepy = Emotion{"sleepy", "😴"}
	// Doubtful is a face that only the Stack-chan has. Replies cannot select it, but
	// Emotion.On replaces some faces by it on a Stack-chan.
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

// OfferedEmotions returns the nine faces that a prompt offers to a model. The list is short
// so that a model's choice is predictable. Models may use the other faces too.
func OfferedEmotions() []Emotion {
	return []Emotion{
		{"happy", "😊"}, {"laughing", "😆"}, {"sad", "😢"}, {"surprised", "😮"}, {"thinking", "🤔"},
		{"angry", "😠"}, Neutral, {"loving", "😍"}, Sleepy,
	}
}

// emotionAliases maps further emoji to the names of the 21 faces: emoji that models often
// write, and those of the firmware's list that differ from the emoji of Emotions.
func emotionAliases() map[string]string {
	return map[string]string{
		"🙂": "happy", "😀": "happy", "😃": "happy", "😄": "happy", "😁": "happy", "☺": "happy",
		"🤣": "funny", "😔": "sad", "😞": "sad", "🙁": "sad", "☹": "sad", "😡": "angry", "😲": "surprised", "😯": "surprised",
		"🥰": "loving", "❤": "loving", "😶": "neutral", "😑": "neutral", "😋": "delicious", "😚": "kissy", "😕": "confused",
		"🤨": "confused", "😪": "sleepy", "🥱": "sleepy", "😛": "silly", "😝": "silly",
	}
}

// SplitEmotion returns the face of the emoji at the beginning of a reply, or Neutral, and
// the text of the reply without any emoji, because voices read emoji out.
func SplitEmotion(reply string) (Emotion, string) {
	reply = strings.TrimSpace(reply)
	first, size := utf8.DecodeRuneInString(reply)
	if e, ok := EmotionOf(first); ok {
		return e, withoutEmoji(reply[size:])
	}
	return Neutral, withoutEmoji(reply)
}

// EmotionOf returns the face of an emoji; ok is false if r is not the emoji of a face.
func EmotionOf(r rune) (face Emotion, ok bool) {
	emoji := string(r)
	for _, e := range Emotions() {
		if e.Emoji == emoji {
			return e, true
		}
	}
	name, ok := emotionAliases()[emoji]
	return Emotion{name, emoji}, ok
}

// Offered returns the face of OfferedEmotions that is most similar to e. Prompts show it in
// place of e in past replies.
func (e Emotion) Offered() Emotion {
	name := cmp.Or(nearestOffered()[e.Name], e.Name)
	for _, o := range OfferedEmotions() {
		if o.Name == name {
			return o
		}
	}
	return Neutral
}

// nearestOffered maps the names of the other twelve faces to the name of the most similar
// offered face.
func nearestOffered() map[string]string {
	return map[string]string{
		"funny": "laughing", "silly": "laughing", "crying": "sad", "shocked": "surprised", "kissy": "loving",
		"winking": "happy", "cool": "happy", "relaxed": "happy", "delicious": "happy", "confident": "happy",
		"embarrassed": "thinking", "confused": "thinking",
	}
}

// withoutEmoji returns a text without its emoji (see IsEmoji), and with one space between
// words.
func withoutEmoji(text string) string {
	text = strings.Map(func(r rune) rune {
		if IsEmoji(r) {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// IsEmoji reports whether r is a pictograph, symbol or arrow, a character that joins or
// modifies pictographs, a zero-width space, a byte order mark, or utf8.RuneError.
func IsEmoji(r rune) bool {
	return r >= 0x1F000 && r <= 0x1FAFF || r >= 0x2600 && r <= 0x27BF || r >= 0x2190 && r <= 0x21FF || r >= 0x2300 && r <= 0x23FF ||
		r >= 0x2B00 && r <= 0x2BFF || r >= 0xE0020 && r <= 0xE007F || r == 0x200B || r == 0x200D ||
		r == 0xFE0E || r == 0xFE0F || r == 0x20E3 || r == 0xFEFF || r == utf8.RuneError
}

// On returns the most similar face that a robot with this board can show; the emoji is
// unchanged. Most boards have all 21 faces. A Stack-chan has eight, and shows any other
// name as neutral. Sleepy becomes neutral on a Stack-chan: its firmware would write "Zzz"
// next to the face, and the robot would not move until it is restarted.
func (e Emotion) On(board string) Emotion {
	switch {
	case isStackChan(board):
		// Names other than Doubtful and the 21 faces, such as icons, become neutral.
		e.Name = StockWords().Word(VocabularyStackChan, e.Name)
	case e.Name == Doubtful.Name:
		e.Name = "thinking"
	}
	return e
}

// isStackChan reports whether board, the firmware's name of a robot's board, is a
// Stack-chan, such as "m5stack-stack-chan".
func isStackChan(board string) bool {
	board = strings.ToLower(board)
	return strings.Contains(board, "stack-chan") || strings.Contains(board, "stackchan")
}
