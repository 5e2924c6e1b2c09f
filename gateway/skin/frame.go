package skin

import (
	"encoding/json"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
)

// The kinds of frames that a skin may subscribe to. Those of the RFC are what a skin
// gets that asks for nothing else; the others are extensions, for skins that name them.
const (
	kindState  = "agent_state"
	kindTool   = "tool_status"
	kindFace   = "emotion"
	kindNotice = "notification"
	kindStep   = "notification_changed"

	kindGesture = "gesture"
	kindLook    = "look_at"
	kindMood    = "mood"
)

// stateFrame is what a session shows.
type stateFrame struct {
	Type    string       `json:"type"`
	TS      int64        `json:"ts"` // seconds since 1970
	State   agent.Shown  `json:"state"`
	Session string       `json:"session_id"`
	Robot   device.ID    `json:"robot,omitempty"`
	Detail  *stateDetail `json:"detail,omitempty"`
}

// stateDetail is more on working and juggling.
type stateDetail struct {
	Tool      string `json:"tool_name,omitempty"` // the one that began last
	SubAgents int    `json:"subagent_count"`      // other agents at work for this one
}

type toolFrame struct {
	Type    string    `json:"type"`
	TS      int64     `json:"ts"`
	Session string    `json:"session_id"`
	Robot   device.ID `json:"robot,omitempty"`
	ID      string    `json:"tool_id"`
	Name    string    `json:"tool_name"`
	Status  string    `json:"status"` // running, completed or error
	Content string    `json:"content,omitempty"`
}

type faceFrame struct {
	Type      string    `json:"type"`
	TS        int64     `json:"ts"`
	Session   string    `json:"session_id"`
	Robot     device.ID `json:"robot,omitempty"`
	Tag       string    `json:"tag"`
	Intensity float64   `json:"intensity"` // over 0 to 1
}

// noticeFrame is text to show. It must not be taken for a prompt.
type noticeFrame struct {
	Type      string    `json:"type"`
	TS        int64     `json:"ts"`
	Text      string    `json:"text"`
	Urgency   string    `json:"urgency"`
	ActionURL string    `json:"action_url,omitempty"`
	ID        string    `json:"id,omitempty"` // to acknowledge it by
	Session   string    `json:"session_id,omitempty"`
	Robot     device.ID `json:"robot,omitempty"`
	Question  string    `json:"question_id,omitempty"` // it waits for a yes or no
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Speak     bool      `json:"speak"`
}

type stepFrame struct {
	Type  string `json:"type"`
	TS    int64  `json:"ts"`
	ID    string `json:"id"`
	State string `json:"state"`
}

type gestureFrame struct {
	Type     string    `json:"type"`
	TS       int64     `json:"ts"`
	Session  string    `json:"session_id,omitempty"`
	Robot    device.ID `json:"robot,omitempty"`
	Name     string    `json:"name"`
	Duration int64     `json:"duration_ms,omitempty"` // left out for the gesture's own
	By       string    `json:"by"`
}

type lookFrame struct {
	Type    string    `json:"type"`
	TS      int64     `json:"ts"`
	Session string    `json:"session_id,omitempty"`
	Robot   device.ID `json:"robot,omitempty"`
	Target  string    `json:"target"`
	By      string    `json:"by"`
}

type moodFrame struct {
	Type    string    `json:"type"`
	TS      int64     `json:"ts"`
	Session string    `json:"session_id,omitempty"`
	Robot   device.ID `json:"robot,omitempty"`
	event.Mood
}

type pongFrame struct {
	Type string `json:"type"`
	TS   int64  `json:"ts"`
}

type errorFrame struct {
	Type    string `json:"type"`
	TS      int64  `json:"ts"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// frame is one of them as it is sent. It is encoded once, and shared by all the
// skins it is for.
type frame struct {
	kind    string
	session string
	robot   device.ID
	key     string // what a later frame of the same key makes stale
	low     bool   // a notification that may be given up
	notice  string // the id of the notification, where it counts as shown once it is sent
	data    []byte
}

// encode writes what this package made itself, which can always be written.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// shownTo is a state for skins that take all ten, or else only the
// RFC's seven (contract: docs/skins.md).
func shownTo(all bool, s agent.Shown) agent.Shown {
	if all {
		return s
	}
	switch s {
	case agent.Listening, agent.Sleeping:
		return agent.Idle
	case agent.Speaking:
		return agent.Thinking
	}
	return s
}

func newToolFrame(e event.Envelope, t event.ToolStatus) *frame {
	return &frame{kind: kindTool, session: e.Session, robot: e.Robot, key: "t " + e.Session + " " + t.ID, data: encode(toolFrame{
		Type: kindTool, TS: e.At.Unix(), Session: e.Session, Robot: e.Robot,
		ID: device.Clip(t.ID, mostToolName), Name: device.Clip(t.Name, mostToolName), Status: t.SkinStatus(),
		Content: device.Clip(t.Detail, mostDetail),
	})}
}

func newNoticeFrame(f noticeFrame) *frame {
	f.Type = kindNotice
	made := &frame{kind: kindNotice, session: f.Session, robot: f.Robot, low: f.Urgency == notice.UrgencyLow, data: encode(f)}
	if f.ID != "" {
		made.key = "n " + f.ID
	}
	if f.Robot == "" {
		made.notice = f.ID // a robot's counts once the robot has spoken it
	}
	return made
}

func newStepFrame(at time.Time, n event.NotificationChanged) *frame {
	return &frame{kind: kindStep, key: "c " + n.ID, data: encode(stepFrame{Type: kindStep, TS: at.Unix(), ID: n.ID, State: n.State})}
}

func newGestureFrame(e event.Envelope, g event.Gesture) *frame {
	return &frame{kind: kindGesture, session: e.Session, robot: e.Robot, key: "g " + placeOf(e), data: encode(gestureFrame{Type: kindGesture,
		TS: e.At.Unix(), Session: e.Session, Robot: e.Robot, Name: device.Clip(g.Name, mostToolName), Duration: g.Duration, By: g.By})}
}

func newLookFrame(e event.Envelope, l event.LookAt) *frame {
	return &frame{kind: kindLook, session: e.Session, robot: e.Robot, key: "l " + placeOf(e), data: encode(lookFrame{Type: kindLook,
		TS: e.At.Unix(), Session: e.Session, Robot: e.Robot, Target: l.Target, By: l.By})}
}

func newMoodFrame(e event.Envelope, m event.Mood) *frame {
	return &frame{kind: kindMood, session: e.Session, robot: e.Robot, key: "m " + placeOf(e), data: encode(moodFrame{Type: kindMood,
		TS: e.At.Unix(), Session: e.Session, Robot: e.Robot, Mood: m})}
}

// placeOf is whose mood an event is of: a robot's, or a session's without one; empty is
// the household's character.
func placeOf(e event.Envelope) string {
	if e.Robot != "" {
		return string(e.Robot)
	}
	return e.Session
}

func newPongFrame(at time.Time) *frame {
	return &frame{key: "pong", data: encode(pongFrame{"pong", at.Unix()})}
}

func newErrorFrame(at time.Time, w *wrong) *frame {
	return &frame{key: "error", data: encode(errorFrame{"error", at.Unix(), w.code, w.message})}
}

// The longest texts of a tool, in bytes.
const (
	mostDetail   = 1000
	mostToolName = 200
)
