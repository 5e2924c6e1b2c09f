package voice_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"perch/must"
	"perch/voice"
)

// slowRecognizer needs some time after the end of an utterance. Its text is the duration of the sound.
type slowRecognizer struct {
	needs            time.Duration
	calls, cancelled int
	err              error
}

func (r *slowRecognizer) recognize(ctx context.Context, u *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
	r.calls++
	if err := u.Wait(ctx); err != nil {
		return voice.Transcript{}, err
	}
	<-u.Finished()
	select {
	case <-time.After(r.needs):
		return voice.Transcript{Text: u.Duration().String()}, r.err
	case <-ctx.Done():
		r.cancelled++
		return voice.Transcript{}, ctx.Err()
	}
}

// TestRecognitionBeginsInAPause checks when an utterance is recognized, and of how much sound. A person says
// something, pauses, perhaps goes on and pauses again, and the utterance ends 400 ms after the pause began.
func TestRecognitionBeginsInAPause(t *testing.T) {
	broken := errors.New("broken")
	second := make([]int16, voice.MicRate)
	for name, c := range map[string]struct {
		goesOn, stranger bool
		err              error
		text             string
		after            time.Duration // from the end of the utterance to the transcript
		calls, cancelled int
	}{
		"the pause is the end":  {text: "1s", after: 100 * time.Millisecond, calls: 1},
		"the person goes on":    {goesOn: true, text: "2s", after: 100 * time.Millisecond, calls: 2, cancelled: 1},
		"a stranger":            {stranger: true, text: "1s", after: 500 * time.Millisecond, calls: 1},
		"the recognizer failed": {err: broken, text: "1s", after: 100 * time.Millisecond, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u, r := voice.NewUtterance(), &slowRecognizer{needs: 500 * time.Millisecond, err: c.err}
				u.Write(second)
				var ended time.Time
				go func() {
					time.Sleep(time.Second)
					u.SetPaused(true)
					if c.goesOn {
						time.Sleep(300 * time.Millisecond)
						u.SetPaused(false)
						u.Write(second)
						time.Sleep(time.Second)
						u.SetPaused(true)
					}
					time.Sleep(400 * time.Millisecond)
					ended = time.Now()
					u.Finish()
				}()
				got, err := voice.RecognizeEarly(t.Context(), u, voice.Options{Stranger: c.stranger}, r.recognize)
				if after := time.Since(ended); got.Text != c.text || !errors.Is(err, c.err) || after != c.after || r.calls != c.calls || r.cancelled != c.cancelled {
					t.Errorf("got %q, %v %s after the end, with %d calls, of which %d were cancelled", got.Text, err, after, r.calls, r.cancelled)
				}
			})
		})
	}
}

// TestAPausedTextTellsTheSilence checks that the text that was recognized in a pause decides how much silence ends
// the utterance.
func TestAPausedTextTellsTheSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, u, r := must.Value(voice.NewEndPointer(0))(t), voice.NewUtterance(), &slowRecognizer{needs: 200 * time.Millisecond}
		go func() { _, _ = voice.RecognizeEarly(t.Context(), u, voice.Options{}, r.recognize) }()
		pcm := join(make([]int16, voice.MicRate/2), flite(t, "slt", "what time is it"), make([]int16, 3*voice.MicRate))
		judged := 0
		for ; len(pcm) >= voice.MicFrame; pcm = pcm[voice.MicFrame:] {
			time.Sleep(voice.FrameDuration)
			u.Write(pcm[:voice.MicFrame])
			e.Expect(u, func(string) voice.Ending { judged++; return voice.Unfinished })
			if e.Feed(pcm[:voice.MicFrame]) == voice.SpeechEnded {
				break
			}
			u.SetPaused(e.Paused())
		}
		if quiet := e.Quiet(); judged != 1 || quiet != 3*voice.DefaultSilence {
			t.Errorf("judged %d times, ended after %s", judged, quiet)
		}
		u.Finish()
	})
}

// TestRecognitionInAPauseEndsWithItsContext checks that no call is left running.
func TestRecognitionInAPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, r := voice.NewUtterance(), &slowRecognizer{needs: time.Second}
		u.Write(make([]int16, voice.MicRate))
		u.SetPaused(true)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := voice.RecognizeEarly(ctx, u, voice.Options{}, r.recognize); !errors.Is(err, context.DeadlineExceeded) || r.cancelled != 1 {
			t.Errorf("%v, %d cancelled", err, r.cancelled)
		}
	})
}
