package engines

import (
	"context"
	"errors"

	"perch/voice"
)

// Hearing returns the recognizers, as robots use them: while an utterance is recognized, the engines that can tell when a person
// has finished judge its pauses. An utterance of a stranger is not judged.
func (e *Set) Hearing() voice.Recognizer { return judging{e.Recognizers, judges{e.All}} }

// judging is recognizers with a judge.
type judging struct {
	voice.Recognizers
	judge voice.EndJudge
}

// Recognize implements voice.Recognizer.
func (j judging) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	if !o.Stranger && !o.Deaf {
		during, cancel := context.WithCancel(ctx)
		judged := make(chan struct{})
		go func() {
			defer close(judged)
			voice.JudgeEnds(during, u, j.judge)
		}()
		defer func() {
			cancel()
			<-judged
		}()
	}
	return j.Recognizers.Recognize(ctx, u, o)
}

// judges are the recognizers and synthesizers in a list of engines.
type judges struct{ engines []*Engine }

// JudgeEnd implements voice.EndJudge. It asks the engines in order that can judge and have not failed lately.
func (j judges) JudgeEnd(ctx context.Context, u *voice.Utterance) (probability float64, err error) {
	err = errors.ErrUnsupported
	for _, n := range j.engines {
		judge, ok := n.Recognizer.(voice.EndJudge)
		if !ok {
			judge, ok = n.Synthesizer.(voice.EndJudge)
		}
		if !ok || n.Resting() != nil {
			continue
		}
		if probability, err = judge.JudgeEnd(ctx, u); err == nil || ctx.Err() != nil {
			break
		}
	}
	return probability, err
}
