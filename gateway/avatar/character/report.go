package character

import (
	"cmp"
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

// report is the JSON of a viewer's action.
type report struct {
	action.Action
	Robot   string `json:"robot"`      // a MAC address or a name
	Session string `json:"session_id"` // of the viewer's chat
}

// reported is the answer.
type reported struct {
	OK      bool   `json:"ok"`
	Outcome string `json:"outcome"`
	Agent   string `json:"agentId"`
}

// The outcomes of a report.
const (
	outcomeDone   = "done"
	outcomeHeld   = "held"   // delayed, joined with others or dropped by the rates of gestures, emotes and looks
	outcomeQueued = "queued" // the robot speaks it when it is reachable
)

// rateLimited is the error for too many reports: Perch's shape, and the fields of the agent
// system's protocol-error.
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

// Error implements error.
func (r *rateLimited) Error() string { return r.Message }

// handleReport carries out or publishes a viewer's action at its place.
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

// carryOut carries out a viewer's event; most are only published.
func (a *API) carryOut(ctx context.Context, at place, e event.Event) (outcome string, err error) {
	switch e := e.(type) {
	case event.Said:
		if at.robot != "" { // the robot publishes what it has spoken
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

// perform performs a skill, whose result is published. It returns an error if the skill did not
// begin or its arguments are invalid.
func (a *API) perform(ctx context.Context, at place, e event.SkillStarted) error {
	if a.o.Perform == nil {
		return &httpserver.Fault{Word: "no_skills", Sentence: "there is no such skill here", HTTP: http.StatusNotFound}
	}
	_, err := a.o.Perform(ctx, skill.Call{Agent: a.o.Who(at.robot, at.session), Robot: at.robot, Session: at.session, Skill: e.Skill, Args: e.Args,
		Now: time.Now(), Language: a.o.Language(at.robot), Untrusted: at.robot != "" && !a.o.Robots.Trusts(at.robot), Exposed: true})
	for _, known := range []struct {
		err            error
		word, sentence string // an empty sentence means the error's own
		status         int
	}{
		{skill.ErrHidden, "skill_not_exposed", "", http.StatusForbidden},
		{skill.ErrArguments, "bad_arguments", "", http.StatusBadRequest},
		{skill.ErrElsewhere, "no_skill", "", http.StatusNotFound},
		{skill.ErrUnknown, "no_skill", "there is no such skill here; perch skill list shows those there are", http.StatusNotFound},
		{skill.ErrBusy, "skills_busy", "too many skills are at work; try again in a moment", http.StatusTooManyRequests},
		{skill.ErrDenied, "not_adopted", "this robot is not adopted by name, and may not use that skill", http.StatusConflict},
	} {
		if errors.Is(err, known.err) {
			return &httpserver.Fault{Word: known.word, Sentence: cmp.Or(known.sentence, err.Error()), HTTP: known.status}
		}
	}
	return nil
}

// placeOf returns the place of a viewer's event: an adopted robot, the session of a viewer's
// chat, or neither for the household's character.
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
