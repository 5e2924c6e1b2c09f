package voice

import (
	"regexp"
	"strings"

	"perch/plain"
)

// LongestTranscript bounds a transcript, in bytes. Nobody says that much in the 15 s of
// an utterance, but a recognizer that repeats itself may return it.
const LongestTranscript = 8 << 10

// remark matches what recognizers write for sound without speech: [BLANK_AUDIO], (music).
var remark = regexp.MustCompile(`\[[^\]]*\]|\([^)]*\)|\*[^*]*\*|♪`)

// Spoken returns the transcript for a recognizer's text: on one line, or refused if it
// has only remarks on the sound.
func Spoken(text string) Transcript {
	text = plain.Line(text)
	if strings.Trim(remark.ReplaceAllString(text, ""), " .!?,-。、！？…") == "" {
		return Transcript{Refused: true}
	}
	return Transcript{Text: text}
}
