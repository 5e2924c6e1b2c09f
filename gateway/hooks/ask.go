package hooks

import (
	"context"
	"errors"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/language"
)

// errLate ends a permission without an answer in time.
var errLate = errors.New("no answer in time")

// mostTries is how often a question is put to people before it is left to
// the people who answer elsewhere.
const mostTries = 2

// askAloud has one robot ask for a permission. Where none is here it waits for
// one to open its channel. It returns once there is an answer, ctx is over, or
// no answer could be understood.
func (d *API) askAloud(ctx context.Context, h *held) {
	reader := d.o.Bus.Read()
	q, again := h.question, false
	for tries := 0; tries < mostTries && ctx.Err() == nil; {
		id, here := d.asking()
		if !here {
			if !opens(ctx, reader) {
				return
			}
			continue
		}
		q.Robot, q.Asked, q.Text = id, time.Now(), h.aloud(d.words(id), again)
		a, err := d.o.Asker.Ask(ctx, id, q)
		if err != nil {
			if ctx.Err() == nil {
				d.o.Log.Debug("a robot could not ask for a permission", "robot", id, "err", err)
			}
			if !opens(ctx, reader) {
				return
			}
			continue
		}
		if v, understood := d.judged(a); understood {
			d.mu.Lock()
			defer d.mu.Unlock()
			h.answer(v)
			return
		}
		switch a.Outcome {
		case agent.AnswerGiven:
			again = true
		case agent.AnswerClosed: // the robot was made quiet, or its channel has closed
			if !opens(ctx, reader) {
				return
			}
		default:
			return
		}
		tries++
	}
}

// aloud is the question as a robot asks it, in its language, the second time with why.
func (h *held) aloud(words *language.Words, again bool) string {
	text := question(words, h.wish)
	if again {
		text = words.Message("ask.again", "question", text)
	}
	return text
}

// judged is what an answer means, and whether it means anything.
func (d *API) judged(a agent.Answer) (v verdict, understood bool) {
	v.how = a.Outcome
	switch a.Outcome {
	case agent.AnswerTouch, agent.AnswerAllowed:
		v.allow = true
		return v, true
	case agent.AnswerDenied:
		return v, true
	case agent.AnswerGiven:
		v.allow, understood = agent.YesOrNo(&d.all, a.Text)
		return v, understood
	}
	return v, false
}

// asking is the robot that asks: the first that may be answered with yes.
// Only one does, for they would talk at once.
func (d *API) asking() (id device.ID, here bool) {
	for _, candidate := range d.robots() {
		if d.o.MayAnswer(candidate) {
			return candidate, true
		}
	}
	return "", false
}

// opens waits for a robot to open its channel.
func opens(ctx context.Context, r *event.Reader) bool {
	for {
		e, err := r.Next(ctx)
		if err != nil {
			return false
		}
		if _, opened := e.Event.(event.RobotOnline); opened {
			return true
		}
	}
}
