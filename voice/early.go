package voice

import "context"

// RecognizeEarly recognizes u with a recognizer that does most of its work after the end of an utterance. When
// the person pauses, RecognizeEarly passes the sound so far to recognize as a finished utterance. If the person
// says no more, the result of that call is the transcript of u. If the person goes on, the call is cancelled,
// and recognize is called again at the next pause, or with u itself if u ends without one. The text of each call becomes
// the partial text of u. For a stranger's utterance, recognize is called only once, with u itself.
func RecognizeEarly(ctx context.Context, u *Utterance, o Options, recognize func(context.Context, *Utterance, Options) (Transcript, error)) (Transcript, error) {
	for !o.Stranger {
		sound, err := u.awaitPause(ctx)
		if err != nil {
			return Transcript{}, err
		}
		if sound == nil {
			break
		}
		if t, ended, err := recognizePaused(ctx, u, sound, o, recognize); ended {
			return t, err
		}
		if ctx.Err() != nil {
			return Transcript{}, ctx.Err()
		}
	}
	return recognize(ctx, u, o)
}

// recognizePaused recognizes sound, the beginning of u, while the person pauses. ended is false if the person
// goes on.
func recognizePaused(ctx context.Context, u, sound *Utterance, o Options, recognize func(context.Context, *Utterance, Options) (Transcript, error)) (t Transcript, ended bool, err error) {
	ended = u.whilePaused(ctx, func(ctx context.Context) {
		t, err = recognize(ctx, sound, o)
		if err == nil && !t.Refused {
			u.setPausedText(t.Text, len(sound.pcm))
		}
	})
	return t, ended, err
}

// EndJudge is an engine that can tell from the sound of speech whether the person has finished.
type EndJudge interface {
	// JudgeEnd returns the probability that nothing follows the finished utterance u, 0 to 1. It returns ctx's error if
	// ctx ends first.
	JudgeEnd(ctx context.Context, u *Utterance) (probability float64, err error)
}

// JudgeEnds asks a judge at each pause of u, and records its answer for the time of this pause; see EndPointer.Expect.
// Without an answer, only the words and the silence count. It returns when u is finished or ctx ends. A call of the judge ends
// when the person goes on.
func JudgeEnds(ctx context.Context, u *Utterance, judge EndJudge) {
	for {
		sound, err := u.awaitPause(ctx)
		if sound == nil || err != nil {
			return
		}
		u.whilePaused(ctx, func(ctx context.Context) {
			if probability, err := judge.JudgeEnd(ctx, sound); err == nil {
				u.SetEndProbability(probability)
			}
		})
	}
}

// whilePaused calls do while the person pauses. If the person goes on, the context of do ends. whilePaused returns when do has
// returned and the pause is over, and reports whether u is finished and the person has not gone on.
func (u *Utterance) whilePaused(ctx context.Context, do func(context.Context)) (ended bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(ctx)
	}()
	if ended = u.awaitEnd(ctx); !ended {
		cancel()
	}
	<-done
	return ended
}

// awaitPause waits until the person pauses, and returns the sound so far as a finished utterance. It returns
// nil if u is finished.
func (u *Utterance) awaitPause(ctx context.Context) (sound *Utterance, err error) {
	err = u.await(ctx, func() bool {
		if u.paused && !u.finished {
			sound = NewUtterance()
			sound.pcm = u.pcm[:len(u.pcm):len(u.pcm)]
			sound.Finish()
		}
		return u.paused || u.finished
	})
	return sound, err
}

// awaitEnd waits until the person goes on or u is finished, and reports whether u is finished and the person
// has not gone on. It returns false if ctx ends first.
func (u *Utterance) awaitEnd(ctx context.Context) (ended bool) {
	err := u.await(ctx, func() bool {
		ended = u.paused && u.finished
		return !u.paused || u.finished
	})
	return ended && err == nil
}

// setPausedText records text as the partial text after a number of samples. They end with a pause, so the text is
// recorded as unchanged for unchangedFor, and Expect can judge it at once.
func (u *Utterance) setPausedText(text string, samples int) {
	u.SetPartial(text, samples-int(unchangedFor.Seconds()*MicRate))
	u.SetPartial(text, samples)
}
