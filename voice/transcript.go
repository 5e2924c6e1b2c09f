package voice

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"perch/plain"
)

// MaxTranscript is the maximum length of a transcript, in bytes. Nobody says that much in the
// 15 s of an utterance, but a recognizer may repeat a word endlessly.
const MaxTranscript = 8 << 10

// markup matches text of a recognizer that nobody has spoken: control tokens (<|en|>),
// elements (<asr_text>), times of subtitles, and descriptions of other sound, such as
// [BLANK_AUDIO], (music), *laughs* and ♪.
var markup = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^\s*(?:language|lang)[ :=]+\S+\s*<asr_text>|<\|[^|<>]{0,40}\|>|<[|/]?[\p{L}_][\p{L}\p{N}_ -]{0,40}[|]?>` +
		`|[\[(]?(?:\d+:)?\d+:\d+[.,]\d+\]?\s*-+>\s*\[?(?:\d+:)?\d+:\d+[.,]\d+[\])]?` +
		`|\[[^\]\d]*\]|\[[A-Z_]+\d*\]|\([^)\d]*\)|（[^）\d]*）|【[^】\d]*】|［[^］\d]*］|(?:^|\s)\*\p{L}[^*]*\p{L}\*(?:[\s.,!?]|$)|[♪♫♬]+`)
})

// CleanTranscript returns the transcript for a recognizer's text. Its text is one line without
// markup. It is refused as silence if no letter or digit is left.
func CleanTranscript(text string) Transcript {
	text = plain.Line(text)
	for range 4 { // markup may be nested
		text = plain.Line(markup().ReplaceAllString(text, " "))
	}
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
		return Transcript{Refused: true, Silence: true}
	}
	return Transcript{Text: text}
}

// FilterTranscript removes the markup from a recognizer's transcript of u. It refuses a
// sentence that recognizers invent for silence if u may have been silence. A Recognizers
// filters its transcripts itself.
func FilterTranscript(t Transcript, u *Utterance) Transcript {
	silence := t.NoSpeech >= minNoSpeech || u.maybeSilent()
	if t.Refused {
		return Transcript{Refused: true, Silence: t.Silence || silence}
	}
	cleaned := CleanTranscript(t.Text)
	if cleaned.Refused || isInvented(cleaned.Text) && silence {
		return Transcript{Refused: true, Silence: true}
	}
	cleaned.Language = t.Language
	return cleaned
}

// minNoSpeech is the minimum Transcript.NoSpeech of an utterance that may have been silence.
// Whisper itself uses the same value.
const minNoSpeech = 0.6

// inventions returns sentences that Whisper writes for silence and noise, because it learned
// from subtitles. They are in lower case and without punctuation.
func inventions() []string {
	return []string{
		"thanks for watching", "thank you for watching", "please subscribe", "like and subscribe", "subtitles by the amaraorg community",
		"untertitel der amaraorg community", "untertitel im auftrag des zdf", "untertitelung des zdf", "vielen dank fürs zuschauen",
		"ご視聴ありがとうございました", "ご視聴ありがとうございます", "最後までご視聴ありがとうございました", "チャンネル登録をお願いいたします",
		"字幕由amaraorg社区提供", "谢谢观看", "謝謝觀看", "感谢观看", "请不吝点赞 订阅 转发 打赏支持明镜与点点栏目", "字幕by索兰娅",
		"시청해 주셔서 감사합니다", "구독과 좋아요 부탁드립니다", "한글자막 by 한효정",
		"sous titres réalisés par la communauté damaraorg", "merci davoir regardé cette vidéo", "soustitrage st 501", "sous titrage st 501",
		"subtítulos realizados por la comunidad de amaraorg", "gracias por ver", "gracias por ver el video",
	}
}

// isInvented reports whether text is one of the inventions, or begins with an invention of more
// than 20 bytes.
func isInvented(text string) bool {
	normalized := strings.Map(func(r rune) rune {
		switch {
		case r == '-':
			return ' '
		case unicode.IsPunct(r):
			return -1
		}
		return unicode.ToLower(r)
	}, text)
	normalized = strings.TrimSpace(normalized)
	return slices.ContainsFunc(inventions(), func(s string) bool {
		return normalized == s || len(s) > 20 && strings.HasPrefix(normalized, s)
	})
}

// An utterance may have been silence if all of it is quieter than quietVoice, and if the
// frames that are loud enough for a voice last less than shortSpeech in total.
const (
	shortSpeech = 600 * time.Millisecond
	quietVoice  = 300 // RMS, -41 dBFS
)

// maybeSilent reports whether the utterance may have been silence.
func (u *Utterance) maybeSilent() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	voiced := 0
	for part := range slices.Chunk(u.pcm, MicFrame) {
		loud := rms(part)
		if loud >= quietVoice {
			return false
		}
		if loud >= minVoiceLevel {
			voiced++
		}
	}
	return time.Duration(voiced)*FrameDuration < shortSpeech
}

// WordErrors returns the number of words that must be replaced, inserted or removed to turn said, the words of a person,
// into heard, the words of a transcript: the Levenshtein distance in words.
func WordErrors(said, heard []string) int {
	row := make([]int, len(heard)+1)
	for i := range row {
		row[i] = i
	}
	for i, s := range said {
		before := row[0]
		row[0] = i + 1
		for j, h := range heard {
			changed := before
			if s != h {
				changed++
			}
			before, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, changed)
		}
	}
	return row[len(heard)]
}
