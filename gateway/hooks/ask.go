package hooks

import (
	"context"
	"errors"
	"path"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/language"
	"perch/limit"
	"perch/plain"
	"perch/remote"
)

// Maximum lengths of a title, in bytes.
const (
	maxRead  = 2560 // before API keys and other secrets are replaced (remote.Redact)
	maxAloud = 160  // when a robot speaks it
)

// question returns the spoken question for a permission.
func question(words *language.Words, w permissionRequest) string {
	kind, title := describe(w.Tool, w.Input)
	switch kind {
	case "edit":
		kind = "edit_file"
	case "execute", "read", "fetch":
	default:
		kind, title = "other", w.Tool
	}
	asked := agent.Permission(words, kind, remote.Redact(plain.Clip(title, maxRead), maxRead), maxAloud, len(title) > maxRead)
	if folder := agent.SpokenTitle(path.Base(line(w.CWD, limit.Line))); folder != "" && folder != "." && folder != "/" {
		return words.Message("ask.session_in", "folder", plain.Clip(folder, limit.Word), "question", asked)
	}
	return words.Message("ask.session", "question", asked)
}

// errLate is the cancellation cause of a permission's context after the deadline of its question.
var errLate = errors.New("no answer in time")

// maxTries is how many times robots ask a question that nobody answers clearly.
const maxTries = 2

// askAloud has a robot ask for a permission. While no robot can ask, it waits for the next robot to connect. It
// returns after a yes or no, after maxTries, when the question has expired, and when ctx ends or the bus is closed.
func (a *API) askAloud(ctx context.Context, h *permission) {
	reader := a.o.Bus.Read()
	q, repeated := h.question, false
	for tries := 0; tries < maxTries && ctx.Err() == nil; {
		if id, found := a.robotToAsk(); found {
			q.Robot, q.Asked, q.Text = id, time.Now(), question(a.words(id), h.request)
			if repeated {
				q.Text = a.words(id).Message("ask.again", "question", q.Text)
			}
			answer, err := a.o.Asker.Ask(ctx, id, q)
			v, understood := a.judge(answer)
			switch {
			case err != nil:
				if ctx.Err() == nil {
					a.o.Log.Debug("a robot could not ask for a permission", "robot", id, "err", err)
				}
			case understood:
				a.mu.Lock()
				defer a.mu.Unlock()
				h.answer(v)
				return
			case answer.Outcome == agent.AnswerGiven:
				repeated = true
				tries++
				continue
			case answer.Outcome == agent.AnswerClosed: // somebody has silenced the robot; a closed channel is an error
				tries++
			default:
				return
			}
		}
		if !waitForRobot(ctx, reader) {
			return
		}
	}
}

// judge returns the verdict that an answer means. understood is false if the answer is neither yes nor no.
func (a *API) judge(answer agent.Answer) (v verdict, understood bool) {
	v.how = answer.Outcome
	switch answer.Outcome {
	case agent.AnswerTouch, agent.AnswerAllowed:
		v.allow = true
		return v, true
	case agent.AnswerDenied:
		return v, true
	case agent.AnswerGiven:
		v.allow, understood = agent.YesOrNo(&a.all, answer.Text)
		return v, understood
	}
	return v, false
}

// robotToAsk returns the robot that asks: the first robot that MayAnswer accepts. Only one robot asks, because several
// would speak at the same time.
func (a *API) robotToAsk() (id device.ID, found bool) {
	for _, candidate := range a.robots() {
		if a.o.MayAnswer(candidate) {
			return candidate, true
		}
	}
	return "", false
}

// waitForRobot reads r until a robot has opened its channel. It returns false if ctx ends or the bus is closed first.
func waitForRobot(ctx context.Context, r *event.Reader) bool {
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
