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
	"perch/plain"
)

// report is the JSON of an action that a viewer reports or requests.
type report struct {
	action.Action
	Robot   string `json:"robot"`      // MAC address or name; may be empty
	Session string `json:"session_id"` // session ID of the viewer's chat; may be empty
}

// reportResponse is the response to a report.
type reportResponse struct {
	OK      bool   `json:"ok"`
	Outcome string `json:"outcome"`
	Agent   string `json:"agentId"`
}

// Values of reportResponse.Outcome.
const (
	outcomeDone   = "done"
	outcomeHeld   = "held"   // the action was delayed, merged with others or dropped, because of the rate limits of gestures, emotes and looks
	outcomeQueued = "queued" // the robot speaks the text once it connects
	outcomeNoted  = "noted"  // the event of a gesture was published, but the robot is not connected and does not make the gesture
)

// rateLimited is the error for too many reports. It has the fields of Perch's errors, and also the
// fields of an error message of the three.ws agent system.
type rateLimited struct {
	Fault struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Code      string      `json:"code"`
	EventType action.Type `json:"eventType"`
	Message   string      `json:"message"`
}

func newRateLimited(kind action.Type, err error) *rateLimited {
	r := &rateLimited{Code: "rate_limited", EventType: kind, Message: err.Error()}
	r.Fault.Code, r.Fault.Message = r.Code, r.Message
	return r
}

// Error implements error.
func (r *rateLimited) Error() string { return r.Message }

// handleReport carries out an action, or publishes the action's event. session is the session ID of
// the viewer's chat, or "".
func (a *API) handleReport(ctx context.Context, r report, session string) (reportResponse, error) {
	e, err := r.Event()
	if err != nil {
		return reportResponse{}, err
	}
	at, err := a.findPlace(r.Robot, session)
	if err != nil {
		return reportResponse{}, err
	}
	character := a.o.Who(at.robot, at.session)
	if r.Agent != "" && r.Agent != character && r.Agent != agent.DefaultCharacter {
		return reportResponse{}, &httpserver.Fault{Word: "wrong_agent", HTTP: http.StatusConflict, Sentence: fmt.Sprintf(
			"the character of this robot or session is %.60q, not %.60q; omit agentId, or send the robot or session_id of that character", character, r.Agent)}
	}
	publish, err := a.admit(at, r.Type, e)
	if err != nil {
		return reportResponse{}, newRateLimited(r.Type, err)
	}
	if !publish {
		return reportResponse{true, outcomeHeld, character}, nil
	}
	outcome, err := a.carryOut(ctx, at, e)
	return reportResponse{err == nil, outcome, character}, err
}

// carryOut carries out the action of an event. It makes the robot speak, stores a fact, or performs a
// skill and then handles the skill's result like a request to speak it. For any other action, and for
// speech without a robot, it publishes the event.
func (a *API) carryOut(ctx context.Context, at place, e event.Event) (outcome string, err error) {
	switch e := e.(type) {
	case event.Said:
		if at.robot != "" { // the event is published when the robot speaks the text
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
		said, err := a.perform(ctx, at, e)
		if said == "" || err != nil {
			return outcomeDone, err
		}
		return a.carryOut(ctx, at, event.Said{Text: said, By: event.ByViewer})
	}
	a.o.Bus.Publish(at.robot, at.session, e)
	if _, ok := e.(event.Gesture); ok && at.robot != "" && !a.o.Board.Robot(at.robot).Online {
		return outcomeNoted, nil
	}
	return outcomeDone, nil
}

// perform performs a skill, and returns the text to speak afterwards, which may be empty. It returns an
// error if the skill does not exist or may not be performed here, if too many skills are running, or if
// the arguments are invalid. Some of these errors are also published. Other failures of a skill are
// only published.
func (a *API) perform(ctx context.Context, at place, e event.SkillStarted) (said string, err error) {
	if a.o.Perform == nil {
		return "", &httpserver.Fault{Word: "no_skills", Sentence: "there is no such skill here", HTTP: http.StatusNotFound}
	}
	r, err := a.o.Perform(ctx, skill.Call{Agent: a.o.Who(at.robot, at.session), Robot: at.robot, Session: at.session, Skill: e.Skill, Args: e.Args,
		Now: time.Now(), Language: a.o.Language(at.robot), Untrusted: at.robot != "" && !a.o.Robots.Trusts(at.robot), Exposed: true})
	for _, known := range []struct {
		err            error
		word, sentence string // sentence is empty to use the text of err
		status         int
	}{
		{skill.ErrHidden, "skill_not_exposed", "", http.StatusForbidden},
		{skill.ErrArguments, "bad_arguments", "", http.StatusBadRequest},
		{skill.ErrElsewhere, "no_skill", "", http.StatusNotFound},
		{skill.ErrUnknown, "no_skill", "there is no such skill here; perch skill list lists the skills", http.StatusNotFound},
		{skill.ErrBusy, "skills_busy", "too many skills are running; try again in a moment", http.StatusTooManyRequests},
		{skill.ErrDenied, "not_adopted", "this robot is not adopted by name, and may not use that skill", http.StatusConflict},
	} {
		if errors.Is(err, known.err) {
			return "", &httpserver.Fault{Word: known.word, Sentence: cmp.Or(known.sentence, err.Error()), HTTP: known.status}
		}
	}
	if err != nil {
		return "", nil // the error is published
	}
	return plain.Clip(agent.Speakable(r.Spoken()), limit.Text), nil
}

// findPlace returns the place for a viewer's event: an adopted robot, the session of the viewer's
// chat or, if robot and session are empty, the zero place.
func (a *API) findPlace(robot, session string) (place, error) {
	if name, ok := strings.CutPrefix(session, feed.RobotPrefix); ok && robot == "" {
		robot, session = name, ""
	}
	if len(session) > limit.Session {
		return place{}, httpserver.BadBody(fmt.Sprintf("session_id must have at most %d bytes", limit.Session))
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
	return place{session: agent.ChatPrefix + feed.SafeName(strings.TrimPrefix(session, agent.ChatPrefix))}, nil
}
