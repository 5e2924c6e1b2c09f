package wyoming

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/must"
	"perch/remote"
	"perch/voice"
	"perch/voice/voicetest"
)

// TestEmptyEventsAreBounded checks that a call fails within a second if the server sends many events
// without content, also while the person is still speaking.
func TestEmptyEventsAreBounded(t *testing.T) {
	flood := func(name string, data any, payload ...byte) script {
		return func(p *peer, _ Event) {
			go func() { _, _ = io.Copy(io.Discard, p) }()
			for range 10_000 {
				p.event(name, data, payload)
			}
		}
	}
	f := Format{22050, 2, 1}
	for name, c := range map[string]struct {
		info   string
		script script
		use    func(ctx context.Context, e *Engine) error
	}{
		"pings to a recognizer":           {whisper, flood(TypePing, nil), hearing},
		"sound to a recognizer":           {whisper, flood(TypeAudioChunk, f, 0, 0), hearing},
		"empty text":                      {whisper, flood(TypeTranscriptChunk, Text{}), hearing},
		"pings to a synthesizer":          {piper, flood(TypePing, nil), speaking},
		"sound without a sample":          {piper, flood(TypeAudioChunk, f), speaking},
		"beginnings of sound and no more": {piper, flood(TypeAudioStart, f), speaking},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &fake{info: c.info, script: c.script}
				began := time.Now()
				voicetest.Sentence(t, c.use(t.Context(), server.piped(t, Options{})), "contain neither sound nor text")
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %s", took)
				}
				server.done.Wait()
			})
		})
	}
}

func hearing(ctx context.Context, e *Engine) error {
	u := voice.NewUtterance()
	time.AfterFunc(5*time.Second, u.Finish)
	_, err := e.Recognize(ctx, u, voice.Options{})
	return err
}

func speaking(ctx context.Context, e *Engine) error {
	return e.Synthesize(ctx, "Hello.", voice.Options{}, func([]int16) error { return nil })
}

// TestSilentServersAreGivenUp checks that a call fails within remote.Patience (10 s) if the server
// sends no response or only meaningless bytes, with or without having sent its info, also during
// concurrent calls of Warm and Check.
func TestSilentServersAreGivenUp(t *testing.T) {
	silent := func(p *peer, _ Event) { p.hangUp() }
	for name, c := range map[string]struct {
		info   string
		script script
		known  bool // whether the info was received before
	}{
		"accepts and says nothing": {script: silent},
		"a byte a second": {script: func(p *peer, _ Event) {
			for {
				p.say(" ")
				time.Sleep(time.Second)
			}
		}},
		"an event a second": {script: func(p *peer, _ Event) {
			for {
				p.event("pong", nil, nil)
				time.Sleep(time.Second)
			}
		}},
		"describes itself and is silent then":        {info: "both", script: silent},
		"is silent where it is known what it serves": {info: "both", script: silent, known: true},
	} {
		for of, use := range map[string]func(t *testing.T, e *Engine, u *voice.Utterance) error{
			"recognizer": func(t *testing.T, e *Engine, u *voice.Utterance) error {
				_, err := e.Recognize(t.Context(), u, voice.Options{})
				return err
			},
			"synthesizer": func(t *testing.T, e *Engine, _ *voice.Utterance) error {
				return e.Synthesize(t.Context(), "Hello.", voice.Options{}, func([]int16) error { return nil })
			},
		} {
			t.Run(name+"/"+of, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := &fake{script: c.script}
					if c.info != "" {
						server.info = map[string]string{"recognizer": whisper, "synthesizer": piper}[of]
					}
					e := server.piped(t, Options{})
					if c.known {
						must.Succeed(t, e.Warm(t.Context()))
					}
					began := time.Now()
					var others sync.WaitGroup
					others.Go(func() { _ = e.Warm(t.Context()) })
					others.Go(func() { _ = e.Check(t.Context()) })
					synctest.Wait()
					voicetest.Sentence(t, use(t, e, said(time.Second)), "did not answer within")
					if took := time.Since(began); took > remote.Patience {
						t.Errorf("it took %s", took)
					}
					others.Wait()
					server.done.Wait()
				})
			})
		}
	}
}
