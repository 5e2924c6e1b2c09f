package assist

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/voice"
	"perch/voice/voicetest"
)

// spokenSound returns a finished utterance of some frames, and its bytes.
func spokenSound(frames int) (*voice.Utterance, []byte) {
	pcm := make([]int16, frames*voice.MicFrame)
	var bytes []byte
	for i := range pcm {
		pcm[i] = int16(7 * i)
		bytes = binary.LittleEndian.AppendUint16(bytes, uint16(pcm[i]))
	}
	return voicetest.Utterance(pcm), bytes
}

func TestRecognize(t *testing.T) {
	u, want := spokenSound(31)
	h := newFakeHA(t, func(p *peer, m command) {
		if m.Type != "assist_pipeline/run" || m.Start != "stt" || m.End != "stt" || m.Input.Rate != 16000 || !m.Input.NoVAD ||
			m.Pipeline != "kitchen" {
			t.Errorf("%+v", m)
		}
		p.began(m)
		if got := p.hear(t); !slices.Equal(got, want) {
			t.Errorf("%d bytes of sound, want %d", len(got), len(want))
		}
		p.event(m, "stt-end", `{"stt_output":{"text":" Turn on\nthe light. "}}`)
		p.event(m, "run-end", "null")
		p.hangUp()
	})
	r := h.recognizer(func(o *Options) { o.Pipeline = "kitchen" })
	got, err := r.Recognize(t.Context(), u, voice.Options{Language: "en"})
	if err != nil || got != (voice.Transcript{Text: "Turn on the light."}) || r.Name() != "assist" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSoundGoesWhileItIsSpoken checks that each frame is sent before the next one
// is spoken, and that an early transcript is returned only at the end of the utterance.
func TestSoundGoesWhileItIsSpoken(t *testing.T) {
	arrived := make(chan int)
	h := newFakeHA(t, func(p *peer, m command) {
		p.began(m)
		for range 5 {
			_, data, err := p.Receive()
			if err != nil {
				t.Error(err)
			}
			arrived <- len(data)
		}
		p.event(m, "stt-end", `{"stt_output":{"text":"Early."}}`)
		p.event(m, "run-end", "null")
		p.hangUp()
	})
	u := voice.NewUtterance()
	done := make(chan voice.Transcript)
	go func() {
		got, err := h.recognizer().Recognize(t.Context(), u, voice.Options{})
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	for range 5 {
		u.Write(make([]int16, voice.MicFrame))
		if n := <-arrived; n != 1+2*voice.MicFrame {
			t.Errorf("%d bytes", n)
		}
	}
	select {
	case <-done:
		t.Error("it answered before the utterance was over")
	case <-time.After(50 * time.Millisecond):
	}
	u.Finish()
	if got := <-done; got.Text != "Early." {
		t.Errorf("%+v", got)
	}
}

// TestLanguageOfTheTranscript checks that the transcript has the language that the pipeline reports,
// and none if the report is missing or invalid.
func TestLanguageOfTheTranscript(t *testing.T) {
	for start, want := range map[string]string{
		`{"engine":"stt.whisper","metadata":{"language":"de-DE","codec":"pcm"}}`: "de-DE",
		`{"metadata":{"language":7}}`:                                            "", `{"metadata":null}`: "", `null`: "", `[]`: "",
		`{"metadata":{"language":"` + strings.Repeat("de-", 1000) + `"}}`: "",
	} {
		h := newFakeHA(t, func(p *peer, m command) {
			p.began(m)
			p.event(m, "stt-start", start)
			p.hear(t)
			p.event(m, "stt-end", `{"stt_output":{"text":"Hallo"}}`)
			p.hangUp()
		})
		u, _ := spokenSound(3)
		got, err := h.recognizer().Recognize(t.Context(), u, voice.Options{})
		if err != nil || got != (voice.Transcript{Text: "Hallo", Language: want}) {
			t.Errorf("%.60s: %.60v, %v", start, got, err)
		}
	}
}

func TestUnrecognizedSpeech(t *testing.T) {
	for name, event := range map[string][2]string{
		"nothing":      {"stt-end", `{"stt_output":{"text":"  "}}`},
		"a remark":     {"stt-end", `{"stt_output":{"text":"[BLANK_AUDIO]"}}`},
		"an error":     {"error", `{"code":"stt-no-text-recognized","message":"No text recognized"}`},
		"the end only": {"run-end", "null"},
	} {
		h := newFakeHA(t, func(p *peer, m command) { p.began(m); p.hear(t); p.event(m, event[0], event[1]); p.hangUp() })
		u, _ := spokenSound(3)
		if got, err := h.recognizer().Recognize(t.Context(), u, voice.Options{}); err != nil || got != (voice.Transcript{Refused: true, Silence: name != "the end only"}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestRecognizerFailures(t *testing.T) {
	for name, test := range map[string]struct {
		script func(p *peer, m command)
		words  string
	}{
		"no pipeline": {func(p *peer, m command) {
			p.say(`{"id":1,"type":"result","success":false,"error":{"code":"pipeline-not-found","message":"%s"}}`, canary)
			p.hangUp()
		}, "has no such Assist pipeline"},
		"fails": {func(p *peer, m command) {
			p.began(m)
			p.hear(t)
			p.event(m, "error", `{"code":"stt-stream-failed","message":"x"}`)
			p.hangUp()
		}, "speech to text that failed"},
		"fails at once": {func(p *peer, m command) { p.began(m); p.event(m, "error", `{"code":"stt-stream-failed"}`); p.hangUp() },
			"speech to text that failed"},
		"cut":           {func(*peer, command) {}, "closed the connection"},
		"cut midway":    {func(p *peer, m command) { p.began(m); _, _, _ = p.Receive() }, "closed the connection"},
		"no handler":    {func(p *peer, m command) { p.event(m, "run-start", `{"runner_data":{}}`); p.hangUp() }, "does not say where to send sound"},
		"ends at once":  {func(p *peer, m command) { p.event(m, "run-end", "null"); p.hangUp() }, "before it had begun"},
		"never begins":  {func(p *peer, _ command) { p.hangUp() }, "did not answer within 100ms"},
		"never answers": {func(p *peer, m command) { p.began(m); p.hangUp() }, "did not answer within 100ms"},
		"odd text": {func(p *peer, m command) { p.began(m); p.event(m, "stt-end", `{"stt_output":{"text":7}}`); p.hangUp() },
			"more than a person can say"},
		"runs in circle": {func(p *peer, m command) {
			p.began(m)
			p.event(m, "stt-end", `{"stt_output":{"text":"`+strings.Repeat("a ", 5000)+`"}}`)
			p.hangUp()
		}, "more than a person can say"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFakeHA(t, test.script).recognizer(func(o *Options) { o.AnswerWithin = 100 * time.Millisecond })
			u, _ := spokenSound(5)
			_, err := r.Recognize(t.Context(), u, voice.Options{})
			voicetest.Sentence(t, err, test.words)
		})
	}
}

// TestEarlyEventsDoNotExtendTheDeadline checks that a call times out if the pipeline sends other
// events and never the event run-start.
func TestEarlyEventsDoNotExtendTheDeadline(t *testing.T) {
	r := newFakeHA(t, func(p *peer, m command) {
		for range 100 {
			p.event(m, "wake_word-start", "{}")
			time.Sleep(30 * time.Millisecond)
		}
	}).recognizer(func(o *Options) { o.AnswerWithin = 100 * time.Millisecond })
	u, _ := spokenSound(5)
	began := time.Now()
	_, err := r.Recognize(t.Context(), u, voice.Options{})
	voicetest.Sentence(t, err, "did not answer within 100ms")
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestFailureIsReturnedAtOnce checks that an error ends the call while the person is still speaking,
// so that the next engine can be used, and that AnswerWithin does not include the time of speaking.
func TestFailureIsReturnedAtOnce(t *testing.T) {
	h := newFakeHA(t, func(p *peer, m command) {
		p.began(m)
		_, _, _ = p.Receive()
		time.Sleep(150 * time.Millisecond) // longer than AnswerWithin
		p.event(m, "error", `{"code":"stt-stream-failed"}`)
		p.hangUp()
	})
	u := voice.NewUtterance()
	u.Write(make([]int16, voice.MicFrame))
	_, err := h.recognizer(func(o *Options) { o.AnswerWithin = 100 * time.Millisecond }).Recognize(t.Context(), u, voice.Options{})
	voicetest.Sentence(t, err, "speech to text that failed")
}

func TestCancelledRecognitionEndsAtOnce(t *testing.T) {
	begun := make(chan struct{}, 1)
	h := newFakeHA(t, func(p *peer, m command) { p.began(m); _, _, _ = p.Receive(); begun <- struct{}{}; p.hangUp() })
	u := voice.NewUtterance()
	u.Write(make([]int16, voice.MicFrame))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := h.recognizer().Recognize(ctx, u, voice.Options{}); !errors.Is(err, context.Canceled) || errors.Is(err, voice.ErrUnavailable) {
		t.Error(err)
	}
	r := h.recognizer()
	go func() { <-begun; r.Close() }()
	_, err := r.Recognize(t.Context(), u, voice.Options{})
	voicetest.Sentence(t, err, "is closed")
}

func TestCheckOfARecognizer(t *testing.T) {
	if err := newFakeHA(t, setUp(`{"stt_engine":"stt.whisper"}`)).recognizer().Check(t.Context()); err != nil {
		t.Error(err)
	}
	voicetest.Sentence(t, newFakeHA(t, setUp(`{"stt_engine":null}`)).recognizer().Check(t.Context()), "choose one under Settings")
	voicetest.Sentence(t, newFakeHA(t, setUp("")).recognizer().Check(t.Context()), "has no such Assist pipeline")
	voicetest.Sentence(t, newFakeHA(t, nil).recognizer(func(o *Options) { o.Token = "wrong" }).Check(t.Context()), "refuses the token")
}
