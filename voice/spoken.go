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

// LongestTranscript bounds a transcript, in bytes. Nobody says that much in the 15 s of
// an utterance, but a recognizer that repeats itself may return it.
const LongestTranscript = 8 << 10

// markup matches what recognizers write beside words: control tokens (<|en|>), elements
// (<asr_text>), times of subtitles, and remarks on sound without speech, such as [BLANK_AUDIO],
// (music), *laughs* and ♪.
var markup = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^\s*(?:language|lang)[ :=]+\S+\s*<asr_text>|<\|[^|<>]{0,40}\|>|<[|/]?[\p{L}_][\p{L}\p{N}_ -]{0,40}[|]?>` +
		`|[\[(]?(?:\d+:)?\d+:\d+[.,]\d+\]?\s*-+>\s*\[?(?:\d+:)?\d+:\d+[.,]\d+[\])]?` +
		`|\[[^\]\d]*\]|\[[A-Z_]+\d*\]|\([^)\d]*\)|（[^）\d]*）|【[^】\d]*】|［[^］\d]*］|(?:^|\s)\*\p{L}[^*]*\p{L}\*(?:[\s.,!?]|$)|[♪♫♬]+`)
})

// Spoken returns the transcript for a recognizer's text: on one line and without markup, or
// refused if nothing else is left.
func Spoken(text string) Transcript {
	text = plain.Line(text)
	for range 4 { // marks may be within others
		text = plain.Line(markup().ReplaceAllString(text, " "))
	}
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
		return Transcript{Refused: true}
	}
	return Transcript{Text: text}
}

// clean returns what a recognizer has recognized in an utterance, without markup. A sentence that
// recognizers invent for silence is refused if the sound may have been silence.
func clean(t Transcript, u *Utterance) Transcript {
	if t.Refused {
		return Transcript{Refused: true}
	}
	cleaned := Spoken(t.Text)
	if cleaned.Refused || invented(cleaned.Text) && (t.NoSpeech >= likelySilence || u.silent()) {
		return Transcript{Refused: true}
	}
	cleaned.Language = t.Language
	return cleaned
}

// likelySilence is Whisper's own limit of no_speech_prob.
const likelySilence = 0.6

// inventions are sentences of the subtitles that Whisper learned from, in lower case and without
// punctuation. It writes them for silence and noise.
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

func invented(text string) bool {
	words := strings.Map(func(r rune) rune {
		switch {
		case r == '-':
			return ' '
		case unicode.IsPunct(r):
			return -1
		}
		return unicode.ToLower(r)
	}, text)
	words = strings.TrimSpace(words)
	return slices.ContainsFunc(inventions(), func(s string) bool {
		return words == s || len(s) > 20 && strings.HasPrefix(words, s)
	})
}

// What may have been silence: sound that is shorter than shortSpeech, and quieter than quietVoice throughout.
const (
	shortSpeech = 600 * time.Millisecond
	quietVoice  = 300 // RMS, -41 dBFS
)

// silent reports whether the utterance may have no speech in it.
func (u *Utterance) silent() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	voiced := 0
	for part := range slices.Chunk(u.pcm, MicFrame) {
		loud := rms(part)
		if loud >= quietVoice {
			return false
		}
		if loud >= lowestVoice {
			voiced++
		}
	}
	return time.Duration(voiced)*FrameDuration < shortSpeech
}
