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
// set keeps faces predictable.
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
	for _, e := range Emotions() {
		if rest, found := strings.CutPrefix(reply, e.Emoji); found {
			return e, withoutEmoji(rest)
		}
	}
	for emoji, name := range emotionAliases() {
		if rest, found := strings.CutPrefix(reply, emoji); found {
			return Emotion{name, emoji}, withoutEmoji(rest)
		}
	}
	return Neutral, withoutEmoji(reply)
}

// withoutEmoji drops pictographs and what joins and colours them.
func withoutEmoji(text string) string {
	spoken := strings.Map(func(r rune) rune {
		switch {
		case r >= 0x1F000 && r <= 0x1FAFF, r >= 0x2600 && r <= 0x27BF, r == 0x200D, r == 0xFE0F, r == utf8.RuneError:
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(spoken), " ")
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
		name, known := stackChanFaces()[e.Name]
		if !known {
			name = Neutral.Name // an icon of other boards, say: it would be shown so anyway
		}
		e.Name = name
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

// stackChanFaces is what a Stack-chan shows for each face.
func stackChanFaces() map[string]string {
	return map[string]string{
		"neutral": "neutral", "happy": "happy", "laughing": "laughing", "angry": "angry", "sad": "sad", "crying": "crying",
		"doubtful": "doubtful",
		"sleepy":   "neutral", // see On

		"funny": "laughing", // both laugh
		"silly": "laughing", // so does who jokes

		"loving":    "happy", // the eyes of happy are the warmest there are
		"kissy":     "happy",
		"winking":   "happy", // a wink is friendly
		"cool":      "happy", // pleased with itself, as is confident
		"confident": "happy",
		"relaxed":   "happy", // content, with closed eyes
		"delicious": "happy", // looks forward to something good
		"surprised": "happy", // models write it for "oh, how nice" far more than for a fright

		"shocked":     "doubtful", // a fright is no pleasure, and no anger either
		"embarrassed": "doubtful", // unsure of itself
		"thinking":    "doubtful", // not sure yet
		"confused":    "doubtful",
	}
}
