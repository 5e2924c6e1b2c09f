package agent

import (
	"strings"
	"unicode/utf8"
)

// Emotion is a face, by the name the firmware knows it by, and the emoji that
// stands for it in a reply. Faces are the same where their names are: a reply
// keeps the emoji it came with.
type Emotion struct {
	Name  string `json:"name"`
	Emoji string `json:"emoji"`
}

// Faces with a part of their own.
var (
	// Neutral is the face of an agent that feels nothing in particular.
	Neutral = Emotion{"neutral", "😐"}
	// Sleepy is good night. On a Stack-chan it is for good, so a turn that
	// ends with Sleep sends it as it is, and everything else through On.
	Sleepy = Emotion{"sleepy", "😴"}
	// Doubtful is a face of the Stack-chan's own. It may stand in a frame, but
	// no reply can ask for it.
	Doubtful = Emotion{"doubtful", "🤨"}
)

// Emotions are the 21 the firmware knows, each with its emoji. A reply may
// begin with any of them.
func Emotions() []Emotion {
	return []Emotion{
		Neutral, {"happy", "😊"}, {"laughing", "😆"}, {"funny", "😂"}, {"sad", "😢"}, {"angry", "😠"}, {"crying", "😭"},
		{"loving", "😍"}, {"embarrassed", "😳"}, {"surprised", "😮"}, {"shocked", "😱"}, {"thinking", "🤔"},
		{"winking", "😉"}, {"cool", "😎"}, {"relaxed", "😌"}, {"delicious", "🤤"}, {"kissy", "😘"}, {"confident", "😏"},
		Sleepy, {"silly", "😜"}, {"confused", "🙄"},
	}
}

// OfferedEmotions are the nine of which a prompt lets a model choose. A small
// set keeps faces predictable. A model that wears another all the same wears
// it: what can be shown of it is for whoever shows it (see On).
func OfferedEmotions() []Emotion {
	return []Emotion{
		{"happy", "😊"}, {"laughing", "😆"}, {"sad", "😢"}, {"surprised", "😮"}, {"thinking", "🤔"},
		{"angry", "😠"}, Neutral, {"loving", "😍"}, Sleepy,
	}
}

// emotionAliases are emoji that models write in place of the 21, by the name
// of the face that is meant. The firmware's own list of emoji is among them.
func emotionAliases() map[string]string {
	return map[string]string{
		"🙂": "happy", "😀": "happy", "😃": "happy", "😄": "happy", "😁": "happy", "☺": "happy",
		"🤣": "funny", "😔": "sad", "😞": "sad", "🙁": "sad", "☹": "sad", "😡": "angry", "😲": "surprised", "😯": "surprised",
		"🥰": "loving", "❤": "loving", "😶": "neutral", "😑": "neutral", "😋": "delicious", "😚": "kissy", "😕": "confused",
		"🤨": "confused", "😪": "sleepy", "🥱": "sleepy", "😛": "silly", "😝": "silly",
	}
}

// SplitEmotion takes the emoji off the beginning of a reply. A reply that
// begins with none of the 21 is neutral. No other emoji is left in the text,
// for no voice should read it out.
func SplitEmotion(reply string) (Emotion, string) {
	reply = strings.TrimSpace(reply)
	first, size := utf8.DecodeRuneInString(reply)
	if e, found := EmotionOf(first); found {
		return e, withoutEmoji(reply[size:])
	}
	return Neutral, withoutEmoji(reply)
}

// EmotionOf is the face an emoji stands for.
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

// Offered is the one of the nine that is nearest to a face. In what it has said
// before, a model is shown those alone.
func (e Emotion) Offered() Emotion {
	name := e.Name
	if nearest, found := nearestOffered()[name]; found {
		name = nearest
	}
	for _, o := range OfferedEmotions() {
		if o.Name == name {
			return o
		}
	}
	return Neutral
}

// nearestOffered brings the twelve that are not offered to the nine that are.
func nearestOffered() map[string]string {
	return map[string]string{
		"funny": "laughing", "silly": "laughing", "crying": "sad", "shocked": "surprised", "kissy": "loving",
		"winking": "happy", "cool": "happy", "relaxed": "happy", "delicious": "happy", "confident": "happy",
		"embarrassed": "thinking", "confused": "thinking", // unsure of itself
	}
}

// withoutEmoji drops pictographs and what joins and colours them.
func withoutEmoji(text string) string {
	spoken := strings.Map(func(r rune) rune {
		if IsEmoji(r) {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(spoken), " ")
}

// IsEmoji holds for pictographs, arrows, and what joins and colours them.
func IsEmoji(r rune) bool {
	switch {
	case r >= 0x1F000 && r <= 0x1FAFF, r >= 0x2600 && r <= 0x27BF, r >= 0x2190 && r <= 0x21FF, r >= 0x2300 && r <= 0x23FF,
		r >= 0x2B00 && r <= 0x2BFF, r >= 0xE0020 && r <= 0xE007F, r == 0x200B, r == 0x200D,
		r == 0xFE0E, r == 0xFE0F, r == 0x20E3, r == 0xFEFF, r == utf8.RuneError:
		return true
	}
	return false
}

// On is the face as a board can show it, with the emoji of the reply. Most
// boards know all 21; a Stack-chan knows eight, and looks neutral at any
// other name, so those are brought to the nearest it has. On it, sleepy is
// brought to neutral: its firmware writes "Zzz" beside the face and stops
// moving until it is restarted, whatever face comes next, which only a robot
// that was told good night should do (see Sleepy).
func (e Emotion) On(board string) Emotion {
	switch {
	case isStackChan(board):
		// An icon of other boards, say, would be shown as neutral anyway.
		e.Name = StockWords().Word(VocabularyStackChan, e.Name)
	case e.Name == Doubtful.Name:
		e.Name = "thinking"
	}
	return e
}

// isStackChan goes by the firmware's name of the board, "m5stack-stack-chan".
func isStackChan(board string) bool {
	board = strings.ToLower(board)
	return strings.Contains(board, "stack-chan") || strings.Contains(board, "stackchan")
}
