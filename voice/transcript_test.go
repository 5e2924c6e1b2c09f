package voice_test

import (
	"context"
	"strings"
	"testing"

	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
)

func TestSpoken(t *testing.T) {
	for text, want := range map[string]string{
		" Hello.\n":             "Hello.",
		"[BLANK_AUDIO]":         "",
		"(music) *laughs* ♪":    "",
		"...":                   "",
		"(upbeat music) Hello.": "Hello.",
		"*music playing*":       "",
		"♪ la la ♪":             "la la",
		"<|en|><|NEUTRAL|><|Speech|><|woitn|>turn on the lamp":           "turn on the lamp",
		"<|nospeech|><|EMO_UNKNOWN|>":                                    "",
		"<|startoftranscript|><|ja|><|transcribe|><|notimestamps|>こんにちは": "こんにちは",
		"<|0.00|> Hello.<|2.00|>":                                        "Hello.",
		"language English<asr_text>Turn on the lamp.":                    "Turn on the lamp.",
		"language None<asr_text>":                                        "",
		"[00:00:00.000 --> 00:00:02.000]   Turn on the lamp.":            "Turn on the lamp.",
		"00:00:00,000 --> 00:00:02,000 Hello.":                           "Hello.",
		"[00:00.000 --> 00:02.000] [MUSIC]":                              "",
		"[SPEAKER_00] Hello.":                                            "Hello.",
		"（拍手）":                                                           "",
		"【音楽】 こんにちは。":                                                    "こんにちは。",
		"<unk> hello":                                                    "hello",
		"2 < 3":                                                          "2 < 3",
	} {
		if got := voice.CleanTranscript(text); got.Text != want || got.Refused != (want == "") {
			t.Errorf("%q becomes %+v, want %q", text, got, want)
		}
	}
}

// writes is a recognizer that always returns the same transcript.
type writes voice.Transcript

func (writes) Name() string { return "writes" }

func (w writes) Recognize(context.Context, *voice.Utterance, voice.Options) (voice.Transcript, error) {
	return voice.Transcript(w), nil
}

// TestInventedSentencesBeginNoTurn checks that sentences that recognizers invent for silence are refused as silence if
// the sound may have been silence, and accepted otherwise.
func TestInventedSentencesBeginNoTurn(t *testing.T) {
	quiet, loud := make([]int16, 2*voice.MicRate), make([]int16, 2*voice.MicRate)
	for i := range loud {
		quiet[i], loud[i] = int16(i%7), int16(8000*(i/40%2)-4000)
	}
	for _, c := range []struct {
		text     string
		pcm      []int16
		noSpeech float64
		refused  bool
	}{
		{"Thanks for watching!", quiet, 0, true},
		{"Thanks for watching!", loud, 0, false},
		{"Thanks for watching!", loud, 0.9, true},
		{"Untertitel der Amara.org-Community", quiet, 0, true},
		{"ご視聴ありがとうございました", quiet, 0, true},
		{"Turn on the lamp.", quiet, 0.9, false},
		{"Thank you.", quiet, 0, false},
		{"[music] Thanks for watching!", quiet, 0, true},
	} {
		u := voice.NewUtterance()
		u.Write(c.pcm)
		u.Finish()
		got, err := voice.Recognizers{writes{Text: c.text, NoSpeech: c.noSpeech}}.Recognize(t.Context(), u, voice.Options{})
		must.Succeed(t, err)
		if got.Refused != c.refused || got.Silence != c.refused {
			t.Errorf("%q, %.1f: %+v", c.text, c.noSpeech, got)
		}
	}
}

// TestSilence checks when an utterance that a recognizer refuses is silence: if the recognizer says so or says that it
// is likely, or if the sound may have been silence.
func TestSilence(t *testing.T) {
	quiet, loud := make([]int16, voice.MicRate), make([]int16, voice.MicRate)
	for i := range loud {
		loud[i] = int16(8000*(i/40%2) - 4000)
	}
	for _, c := range []struct {
		t       writes
		pcm     []int16
		silence bool
	}{
		{writes{Refused: true}, loud, false},
		{writes{Refused: true}, quiet, true},
		{writes{Refused: true, NoSpeech: 0.9}, loud, true},
		{writes{Refused: true, Silence: true}, loud, true},
		{writes{Text: "[BLANK_AUDIO]"}, loud, true},
		{writes{Text: ""}, loud, true},
	} {
		got, err := voice.Recognizers{c.t}.Recognize(t.Context(), voicetest.Utterance(c.pcm), voice.Options{})
		must.Succeed(t, err)
		if !got.Refused || got.Silence != c.silence {
			t.Errorf("%+v becomes %+v", c.t, got)
		}
	}
}

// FuzzSpoken checks that CleanTranscript returns one line for any text of a recognizer, or refuses the text.
func FuzzSpoken(f *testing.F) {
	for _, s := range []string{" Hello.\n", "[BLANK_AUDIO]", "(music) *laughs* ♪", "...", "a\xffb", "\x00", "<|en|>Hello"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		spoken := voice.CleanTranscript(s)
		got := spoken.Text
		if strings.ContainsAny(got, "\r\n\t") || got != strings.TrimSpace(got) || spoken != voice.CleanTranscript(got) || spoken.Refused != (got == "") {
			t.Errorf("%q becomes %q", s, got)
		}
	})
}
