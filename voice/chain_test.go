package voice_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/must"
	"perch/voice"
)

// named is a synthesizer that records each call in asked, and fails.
type named struct {
	name  string
	asked *[]string
}

func (n named) Name() string { return n.name }

func (n named) Synthesize(_ context.Context, text string, o voice.Options, _ func([]int16) error) error {
	*n.asked = append(*n.asked, fmt.Sprintf("%s %s %q %s", n.name, text, o.Voice, o.Language))
	return voice.ErrUnavailable
}

// TestVoiceNameIsForTheFirstEngineOnly checks that only the first engine gets Options.Voice, because other engines have
// other names of voices.
func TestVoiceNameIsForTheFirstEngineOnly(t *testing.T) {
	var asked []string
	chain := voice.Synthesizers{named{"first", &asked}, named{"second", &asked}}
	if err := chain.Synthesize(t.Context(), "hi", voice.Options{Voice: "af_heart", Language: "de"}, nil); err == nil {
		t.Error("nobody speaks, and nobody says so")
	}
	if got := fmt.Sprint(asked); got != `[first hi "af_heart" de second hi "" de]` {
		t.Errorf("asked was %s", got)
	}
}

// deaf is a recognizer that fails the test if it is called.
type deaf struct{ t *testing.T }

func (deaf) Name() string { return "deaf" }

func (d deaf) Recognize(context.Context, *voice.Utterance, voice.Options) (voice.Transcript, error) {
	d.t.Error("an engine is asked to recognize")
	return voice.Transcript{Text: "hello"}, nil
}

// TestMuteAndDeaf checks that no engine is called with the options Mute and Deaf. With Mute, the sound is silence for
// the time of reading. With Deaf, the utterance is refused once it is finished.
func TestMuteAndDeaf(t *testing.T) {
	var asked []string
	for text, want := range map[string]time.Duration{"Hi.": time.Second, strings.Repeat("é", 50): 5 * time.Second} {
		var made []int16
		must.Succeed(t, voice.Synthesizers{named{"first", &asked}}.Synthesize(t.Context(), text, voice.Options{Mute: true},
			func(pcm []int16) error { made = append(made, pcm...); return nil }))
		got := time.Duration(len(made)) * time.Second / voice.SpeakerRate
		if slices.ContainsFunc(made, func(s int16) bool { return s != 0 }) || got > want || got < want-voice.FrameDuration || len(asked) > 0 {
			t.Errorf("%s: %s of sound, asked %q", text, got, asked)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		u := voice.NewUtterance()
		go func() {
			time.Sleep(time.Minute)
			u.Finish()
		}()
		began := time.Now()
		got, err := voice.Recognizers{deaf{t}}.Recognize(t.Context(), u, voice.Options{Deaf: true})
		if took := time.Since(began); err != nil || !got.Refused || got.Text != "" || took != time.Minute {
			t.Errorf("%+v, %v after %s", got, err, took)
		}
	})
}

// crowded is a recognizer that is busy until an utterance waits patiently; then it returns err.
type crowded struct{ err error }

func (crowded) Name() string { return "crowded" }

func (c crowded) Recognize(_ context.Context, _ *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	if !o.Patient {
		return voice.Transcript{}, voice.ErrBusy
	}
	return voice.Transcript{Text: "hello"}, c.err
}

// TestPatience checks that busy is called if all engines fail and one of them is busy, and that the engines are then
// called with the option Patient.
func TestPatience(t *testing.T) {
	for name, c := range map[string]struct {
		engines voice.Recognizers
		busy    int
		err     error
	}{
		"the only engine":          {voice.Recognizers{crowded{}}, 1, nil},
		"the next has failed":      {voice.Recognizers{crowded{}, failing{}}, 1, nil},
		"busy for too long":        {voice.Recognizers{crowded{voice.ErrBusy}}, 1, voice.ErrBusy},
		"no engine is busy":        {voice.Recognizers{failing{}}, 0, voice.ErrUnavailable},
		"the next is not busy":     {voice.Recognizers{crowded{}, greeter{}}, 0, nil},
		"the first one has failed": {voice.Recognizers{failing{}, crowded{}}, 1, nil},
	} {
		times := 0
		got, err := voice.RecognizePatiently(t.Context(), c.engines, voice.NewUtterance(), voice.Options{}, func() { times++ })
		if !errors.Is(err, c.err) || err == nil && got.Text != "hello" || times != c.busy {
			t.Errorf("%s: %+v, %v; busy %d times", name, got, err, times)
		}
	}
}

// greeter is a recognizer that recognizes "hello".
type greeter struct{}

func (greeter) Name() string { return "greeter" }

func (greeter) Recognize(context.Context, *voice.Utterance, voice.Options) (voice.Transcript, error) {
	return voice.Transcript{Text: "hello"}, nil
}

// failing is a recognizer that fails.
type failing struct{}

func (failing) Name() string { return "failing" }

func (failing) Recognize(context.Context, *voice.Utterance, voice.Options) (voice.Transcript, error) {
	return voice.Transcript{}, voice.ErrUnavailable
}

// reader is a synthesizer that reads texts in one language, and appends the language to read.
type reader struct {
	language string
	err      error // returned for a text in another language
	read     *[]string
}

func (reader) Name() string { return "reader" }

func (r reader) Synthesize(_ context.Context, text string, o voice.Options, out func([]int16) error) error {
	if o.Language != r.language || r.language == "en" && strings.ContainsRune(text, 'オ') {
		return r.err
	}
	*r.read = append(*r.read, r.language)
	return out(make([]int16, 1))
}

// TestATextInAnotherScript checks how Synthesizers divides a text that no engine can read in the language of the call.
// The error is ErrText if a piece cannot be read, unless nothing was read and another engine failed.
func TestATextInAnotherScript(t *testing.T) {
	var read []string
	english, japanese := reader{"en", voice.ErrText, &read}, reader{"ja", voice.ErrLanguage, &read}
	away := named{"away", new([]string)}
	for _, c := range []struct {
		engines voice.Synthesizers
		text    string
		read    string
		err     error
	}{
		{voice.Synthesizers{english, japanese}, "The oven is hot!", "[en]", nil},
		{voice.Synthesizers{english, japanese}, "オーブンが熱いです", "[ja]", nil},
		{voice.Synthesizers{english, japanese}, "The oven (オーブン) is hot!", "[en ja en]", nil},
		{voice.Synthesizers{english}, "The oven (オーブン) is hot!", "[en en]", voice.ErrText},
		{voice.Synthesizers{english}, "オーブンが熱いです", "[]", voice.ErrText},
		{voice.Synthesizers{away, english}, "オーブンが熱いです", "[]", voice.ErrUnavailable},
		{voice.Synthesizers{away, english}, "The oven (オーブン) is hot!", "[en en]", voice.ErrText},
		{voice.Synthesizers{japanese}, "The oven is hot!", "[]", voice.ErrLanguage},
	} {
		read = nil
		err := c.engines.Synthesize(t.Context(), c.text, voice.Options{Language: "en"}, func([]int16) error { return nil })
		if fmt.Sprint(read) != c.read || !errors.Is(err, c.err) || errors.Is(err, voice.ErrText) != (c.err == voice.ErrText) {
			t.Errorf("%s by %d engines: read in %v, %v", c.text, len(c.engines), read, err)
		}
	}
}
