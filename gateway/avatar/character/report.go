package character

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/action"
	"perch/agent/skill"
	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
)

// report is an action of a viewer as it comes.
type report struct {
	action.Action
	Robot   string `json:"robot"`      // a MAC address or a name
	Session string `json:"session_id"` // of the viewer's chat
}

// reported is the answer. Outcome is one of the following.
type reported struct {
	OK      bool   `json:"ok"`
	Outcome string `json:"outcome"`
	Agent   string `json:"agentId"`
}

// What came of a report.
const (
	outcomeDone   = "done"
	outcomeHeld   = "held"   // the rates of gestures, emotes and looks have it wait, joined or dropped
	outcomeQueued = "queued" // the robot speaks it when it can be reached
)

// rateLimited is the answer to a burst: this project's shape, with the fields of the
// agent system's protocol-error beside it.
type rateLimited struct {
	Wrong struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Code      string      `json:"code"`
	EventType action.Type `json:"eventType"`
	Message   string      `json:"message"`
}

func newRateLimited(kind action.Type, err error) *rateLimited {
	r := &rateLimited{Code: "rate_limited", EventType: kind, Message: err.Error()}
	r.Wrong.Code, r.Wrong.Message = r.Code, r.Message
	return r
}

// Error is the sentence.
func (r *rateLimited) Error() string { return r.Message }

// handleReport carries out or publishes a viewer's action at the place it names.
func (a *API) handleReport(ctx context.Context, r report, session string) (reported, error) {
	e, err := r.Event()
	if err != nil {
		return reported{}, err
	}
	at, err := a.placeOf(r.Robot, session)
	if err != nil {
		return reported{}, err
	}
	who := a.o.Who(at.robot, at.session)
	if r.Agent != "" && r.Agent != who && r.Agent != agent.DefaultCharacter {
		return reported{}, &httpserver.Fault{Word: "wrong_agent", HTTP: http.StatusConflict, Sentence: fmt.Sprintf(
			"the character there is %.60q, and not %.60q; leave agentId out, or name the robot or the session_id of that character", who, r.Agent)}
	}
	now, err := a.admit(at, r.Type, e)
	if err != nil {
		return reported{}, newRateLimited(r.Type, err)
	}
	if !now {
		return reported{true, outcomeHeld, who}, nil
	}
	outcome, err := a.carryOut(ctx, at, e)
	return reported{err == nil, outcome, who}, err
}

// carryOut does what is to be done with a viewer's event; most are only published.
func (a *API) carryOut(ctx context.Context, at place, e event.Event) (outcome string, err error) {
	switch e := e.(type) {
	case event.Said:
		if at.robot != "" { // which publishes what it has spoken
			queued, err := a.o.Say(ctx, at.robot, e.Text)
			if queued {
				return outcomeQueued, err
			}
			return outcomeDone, err
		}
	case event.Remembered:
		_, err := a.o.Remember(agent.Entry{Name: e.Name, Body: e.Body, Type: e.Type, Robot: at.robot, Session: at.session,
			Source: agent.SourceViewer}, time.Now())
		return outcomeDone, err
	case event.SkillStarted:
		return outcomeDone, a.perform(ctx, at, e)
	}
	a.o.Bus.Publish(at.robot, at.session, e)
	return outcomeDone, nil
}

// perform has a skill do its work, and returns when it is done. The result is published; an
// error is returned where it was not begun, or its arguments do not fit.
func (a *API) perform(ctx context.Context, at place, e event.SkillStarted) error {
	if a.o.Perform == nil {
		return &httpserver.Fault{Word: "no_skills", Sentence: "there is no such skill here", HTTP: http.StatusNotFound}
	}
	_, err := a.o.Perform(ctx, skill.Call{Agent: a.o.Who(at.robot, at.session), Robot: at.robot, Session: at.session, Skill: e.Skill, Args: e.Args,
		Now: time.Now(), Language: a.o.Language(at.robot), Untrusted: at.robot != "" && !a.o.Robots.Trusts(at.robot), Exposed: true})
	switch {
	case errors.Is(err, skill.ErrHidden):
		return &httpserver.Fault{Word: "skill_not_exposed", Sentence: err.Error(), HTTP: http.StatusForbidden}
	case errors.Is(err, skill.ErrArguments):
		return &httpserver.Fault{Word: "bad_arguments", Sentence: err.Error(), HTTP: http.StatusBadRequest}
	case errors.Is(err, skill.ErrElsewhere):
		return &httpserver.Fault{Word: "no_skill", Sentence: err.Error(), HTTP: http.StatusNotFound}
	case errors.Is(err, skill.ErrUnknown):
		return &httpserver.Fault{Word: "no_skill", HTTP: http.StatusNotFound,
			Sentence: "there is no such skill here; perch skill list shows those there are"}
	case errors.Is(err, skill.ErrBusy):
		return &httpserver.Fault{Word: "skills_busy", Sentence: "too many skills are at work; try again in a moment", HTTP: http.StatusTooManyRequests}
	case errors.Is(err, skill.ErrDenied):
		return &httpserver.Fault{Word: "not_adopted", Sentence: "this robot is not adopted by name, and may not use that skill", HTTP: http.StatusConflict}
	}
	return nil
}

// placeOf is where a viewer's event belongs: a robot that was adopted, the session of a
// viewer's chat, or neither, which is the household's character.
func (a *API) placeOf(robot, session string) (place, error) {
	if named, is := strings.CutPrefix(session, feed.OfRobot); is && robot == "" {
		robot, session = named, ""
	}
	if len(session) > limit.Session {
		return place{}, httpserver.BadBody(fmt.Sprintf("session_id has at most %d bytes", limit.Session))
	}
	if robot != "" {
		id, err := a.o.Find(robot)
		if err == nil && !a.o.Robots.Trusts(id) {
			err = &httpserver.Fault{Word: "not_adopted", HTTP: http.StatusConflict,
				Sentence: "this robot is not adopted by name; perch robot adopt ROBOT adopts it"}
		}
		return place{robot: id}, err
	}
	if session == "" {
		return place{}, nil
	}
	return place{session: agent.OfChat + feed.SafeName(strings.TrimPrefix(session, agent.OfChat))}, nil
}
