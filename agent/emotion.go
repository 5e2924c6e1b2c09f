package agent

import (
	"strings"
	"unicode/utf8"
)

// Emotion is a face, by the name the firmware knows it by, and the emoji that
// stands for it in a reply.
type Emotion struct {
	Name  string `json:"name"`
	Emoji string `json:"emoji"`
}

// Neutral is the face of an agent that feels nothing in particular.
var Neutral = Emotion{"neutral", "😐"}

// The emoji a reply may begin with. A small set keeps faces predictable.
func emotions() []Emotion {
	return []Emotion{
		{"happy", "😊"}, {"laughing", "😆"}, {"sad", "😢"}, {"surprised", "😮"}, {"thinking", "🤔"},
		{"angry", "😠"}, Neutral, {"loving", "😍"}, {"sleepy", "😴"},
	}
}

// SplitEmotion takes the emoji off the beginning of a reply. A reply without
// one of the nine is neutral, and its text is left as it is but for other
// emoji, which no voice should read out.
func SplitEmotion(reply string) (Emotion, string) {
	reply = strings.TrimSpace(reply)
	for _, e := range emotions() {
		if rest, found := strings.CutPrefix(reply, e.Emoji); found {
			return e, withoutEmoji(rest)
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
