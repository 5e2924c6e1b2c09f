package voice_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"perch/must"
	"perch/voice"
)

// endJudge is a voice.EndJudge that needs some time.
type endJudge struct {
	needs            time.Duration
	probability      float64
	err              error
	calls, cancelled int
}

func (j *endJudge) JudgeEnd(ctx context.Context, u *voice.Utterance) (float64, error) {
	j.calls++
	select {
	case <-u.Finished(): // otherwise the judge would wait for more
	case <-ctx.Done():
	}
	select {
	case <-time.After(j.needs):
		return j.probability, j.err
	case <-ctx.Done():
		j.cancelled++
		return 0, ctx.Err()
	}
}

// TestTheSoundTellsTheSilence checks how much silence ends an utterance that a judge has judged in a pause, alone and with
// words.
func TestTheSoundTellsTheSilence(t *testing.T) {
	const soon = 100 * time.Millisecond
	for name, c := range map[string]struct {
		judge endJudge
		words voice.Ending
		quiet time.Duration
	}{
		"finished":                              {endJudge{needs: soon, probability: 1}, voice.UnknownEnding, 380 * time.Millisecond}, // as soon as the judge has answered
		"undecided":                             {endJudge{needs: soon, probability: 0.5}, voice.UnknownEnding, 600 * time.Millisecond},
		"going on":                              {endJudge{needs: soon, probability: 0}, voice.UnknownEnding, 1200 * time.Millisecond},
		"going on, but a whole sentence":        {endJudge{needs: soon, probability: 0}, voice.Whole, 1020 * time.Millisecond},
		"finished, and a whole sentence":        {endJudge{needs: soon, probability: 1}, voice.Whole, 500 * time.Millisecond},
		"finished, but an unfinished sentence":  {endJudge{needs: soon, probability: 1}, voice.Unfinished, 1800 * time.Millisecond},
		"going on, and an unfinished sentence":  {endJudge{needs: soon, probability: 0}, voice.Unfinished, 1800 * time.Millisecond},
		"the judge fails":                       {endJudge{needs: soon, err: errors.New("ended")}, voice.UnknownEnding, 600 * time.Millisecond},
		"the judge fails with a whole sentence": {endJudge{needs: soon, err: errors.New("ended")}, voice.Whole, 500 * time.Millisecond},
		"the judge is too slow":                 {endJudge{needs: time.Minute, probability: 1}, voice.UnknownEnding, 600 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, u := must.Value(voice.NewEndPointer(0))(t), voice.NewUtterance()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go voice.JudgeEnds(ctx, u, &c.judge)
				at, text := 0, ""
				for pcm := turn(t); len(pcm) >= voice.MicFrame; pcm = pcm[voice.MicFrame:] {
					time.Sleep(voice.FrameDuration)
					u.Write(pcm[:voice.MicFrame])
					at += voice.MicFrame
					if c.words != voice.UnknownEnding {
						text = "words"
					}
					u.SetPartial(text, at)
					e.Expect(u, func(string) voice.Ending { return c.words })
					if e.Feed(pcm[:voice.MicFrame]) == voice.SpeechEnded {
						break
					}
					u.SetPaused(e.Paused())
				}
				if quiet := e.Quiet(); quiet < c.quiet-20*time.Millisecond || quiet > c.quiet+voice.FrameDuration {
					t.Errorf("ended after %s, want %s and a packet at most", quiet, c.quiet)
				}
				u.Finish()
			})
		})
	}
}

// turn returns a sentence with silence before and after it.
func turn(t *testing.T) []int16 {
	return join(make([]int16, voice.MicRate/2), flite(t, "slt", "what time is it"), make([]int16, 3*voice.MicRate))
}

// TestEachPauseIsJudged checks that the call of the judge ends when the person goes on, and that an answer counts for its
// pause alone.
func TestEachPauseIsJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, j := voice.NewUtterance(), &endJudge{needs: 300 * time.Millisecond, probability: 0.25}
		judged := make(chan struct{})
		go func() {
			defer close(judged)
			voice.JudgeEnds(t.Context(), u, j)
		}()
		for _, pause := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond} {
			u.Write(make([]int16, voice.MicRate))
			u.SetPaused(true)
			time.Sleep(pause)
			if known := !math.IsNaN(u.EndProbability()); known != (pause > j.needs) {
				t.Errorf("%s: the probability is known: %v", pause, known)
			}
			u.SetPaused(false)
			synctest.Wait()
			if !math.IsNaN(u.EndProbability()) {
				t.Error("the probability is known while the person speaks")
			}
		}
		u.Finish()
		<-judged
		if j.calls != 2 || j.cancelled != 1 {
			t.Errorf("%d calls, %d cancelled", j.calls, j.cancelled)
		}
	})
}
