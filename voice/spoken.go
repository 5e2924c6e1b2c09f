package voice

import (
	"regexp"
	"strings"

	"perch/plain"
)

// LongestTranscript bounds a transcript, in bytes: a person does not say as much in
// the 15 s of an utterance, but a recognizer that runs in circles does.
const LongestTranscript = 8 << 10

// remark is what recognizers write where no person spoke: [BLANK_AUDIO], (music).
var remark = regexp.MustCompile(`\[[^\]]*\]|\([^)]*\)|\*[^*]*\*|♪`)

// Spoken is the transcript of a recognizer's text: in one line, or refused where it
// is only remarks on the sound.
func Spoken(text string) Transcript {
	text = plain.Line(text)
	if strings.Trim(remark.ReplaceAllString(text, ""), " .!?,-。、！？…") == "" {
		return Transcript{Refused: true}
	}
	return Transcript{Text: text}
}
