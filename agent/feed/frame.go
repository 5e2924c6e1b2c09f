package feed

import (
	"encoding/json"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/limit"
	"perch/plain"
)

// The kinds of frames that a viewer may subscribe to. Those of the RFC are what a skin
// gets that asks for nothing else; the others are extensions, for viewers that name them.
const (
	KindState  = "agent_state"
	KindTool   = "tool_status"
	KindFace   = "emotion"
	KindNotice = "notification"
	KindStep   = "notification_changed"

	KindGesture = "gesture"
	KindLook    = "look_at"
	KindMood    = "mood"
	KindSaid    = "said"
)

// State is what a session shows: a frame of kind agent_state.
type State struct {
	Type    string       `json:"type"`
	TS      int64        `json:"ts"` // seconds since 1970
	State   agent.Shown  `json:"state"`
	Session string       `json:"session_id"`
	Robot   device.ID    `json:"robot,omitempty"`
	Detail  *StateDetail `json:"detail,omitempty"`
}

// StateDetail is more on working and juggling.
type StateDetail struct {
	Tool      string `json:"tool_name,omitempty"` // the one that began last
	SubAgents int    `json:"subagent_count"`      // other agents at work for this one
}

// Tool is what a tool does: a frame of kind tool_status.
type Tool struct {
	Type    string    `json:"type"`
	TS      int64     `json:"ts"`
	Session string    `json:"session_id"`
	Robot   device.ID `json:"robot,omitempty"`
	ID      string    `json:"tool_id"`
	Name    string    `json:"tool_name"`
	Status  string    `json:"status"` // running, completed or error
	Content string    `json:"content,omitempty"`
}

// Face is the face of a session: a frame of kind emotion.
type Face struct {
	Type      string    `json:"type"`
	TS        int64     `json:"ts"`
	Session   string    `json:"session_id"`
	Robot     device.ID `json:"robot,omitempty"`
	Tag       string    `json:"tag"`
	Intensity float64   `json:"intensity"` // over 0 to 1
}

// Notice is text to show: a frame of kind notification. It must not be taken for a prompt.
type Notice struct {
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

// Step is what has become of a notification: a frame of kind notification_changed.
type Step struct {
	Type  string `json:"type"`
	TS    int64  `json:"ts"`
	ID    string `json:"id"`
	State string `json:"state"`
}

// Gesture is one that the agent makes: a frame of kind gesture.
type Gesture struct {
	Type     string    `json:"type"`
	TS       int64     `json:"ts"`
	Session  string    `json:"session_id,omitempty"`
	Robot    device.ID `json:"robot,omitempty"`
	Name     string    `json:"name"`
	Duration int64     `json:"duration_ms,omitempty"` // left out for the gesture's own
	By       string    `json:"by"`
}

// Look is where the agent looks: a frame of kind look_at.
type Look struct {
	Type    string    `json:"type"`
	TS      int64     `json:"ts"`
	Session string    `json:"session_id,omitempty"`
	Robot   device.ID `json:"robot,omitempty"`
	Target  string    `json:"target"`
	By      string    `json:"by"`
}

// Mood is what the agent feels: a frame of kind mood.
type Mood struct {
	Type    string    `json:"type"`
	TS      int64     `json:"ts"`
	Session string    `json:"session_id,omitempty"`
	Robot   device.ID `json:"robot,omitempty"`
	event.Mood
}

// Said is a sentence that the agent says, when its sound begins: a frame of kind said.
type Said struct {
	Type    string    `json:"type"`
	TS      int64     `json:"ts"`
	Session string    `json:"session_id,omitempty"`
	Robot   device.ID `json:"robot,omitempty"`
	Text    string    `json:"text"`
}

// Frame is one of them as it is sent. It is made and encoded once, and shared by all
// the viewers it is for.
type Frame struct {
	Kind    string // empty where it answers the viewer itself
	Session string
	Robot   device.ID
	Body    any    // State, Tool, Face, Notice, Step, Gesture, Look, Mood or Said; nil where it is an answer
	Data    []byte // Body as JSON

	key    string // what a later frame of the same key makes stale
	low    bool   // a notification that may be given up
	notice string // the id of the notification, where it counts as shown once it is sent
}

// NewAnswer is a frame for one viewer alone. A later one of the same key takes its place
// where too much waits.
func NewAnswer(key string, body any) *Frame { return &Frame{key: key, Data: encode(body)} }

// NewFrame is a frame of nobody's, for a viewer that makes its own.
func NewFrame(kind string, body any) *Frame { return newFrame(kind, "", "", "", body) }

// newFrame is a frame of an event of a session, a robot, or of neither.
func newFrame(kind, session string, robot device.ID, key string, body any) *Frame {
	return &Frame{Kind: kind, Session: session, Robot: robot, Body: body, Data: encode(body), key: key}
}

// encode writes what this package made itself, which can always be written.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// ShownTo is a state for viewers that take all ten, or else only the
// RFC's seven (contract: docs/skins.md).
func ShownTo(all bool, s agent.Shown) agent.Shown {
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

func newTool(e event.Envelope, t event.ToolStatus) *Frame {
	return newFrame(KindTool, e.Session, e.Robot, "t "+e.Session+" "+t.ID, Tool{
		Type: KindTool, TS: e.At.Unix(), Session: e.Session, Robot: e.Robot,
		ID: plain.Clip(t.ID, limit.Name), Name: plain.Clip(t.Name, limit.Name), Status: t.SkinStatus(),
		Content: plain.Clip(t.Detail, limit.Line),
	})
}

func newNotice(n Notice) *Frame {
	n.Type = KindNotice
	made := newFrame(KindNotice, n.Session, n.Robot, "", n)
	made.low = n.Urgency == notice.UrgencyLow
	if n.ID != "" {
		made.key = "n " + n.ID
	}
	if n.Robot == "" {
		made.notice = n.ID // a robot's counts once the robot has spoken it
	}
	return made
}

func newStep(at time.Time, n event.NotificationChanged) *Frame {
	return newFrame(KindStep, "", "", "c "+n.ID, Step{Type: KindStep, TS: at.Unix(), ID: n.ID, State: n.State})
}

func newGesture(e event.Envelope, g event.Gesture) *Frame {
	return newFrame(KindGesture, e.Session, e.Robot, "g "+placeOf(e), Gesture{Type: KindGesture,
		TS: e.At.Unix(), Session: e.Session, Robot: e.Robot, Name: plain.Clip(g.Name, limit.Name), Duration: g.Duration, By: g.By})
}

func newLook(e event.Envelope, l event.LookAt) *Frame {
	return newFrame(KindLook, e.Session, e.Robot, "l "+placeOf(e), Look{Type: KindLook,
		TS: e.At.Unix(), Session: e.Session, Robot: e.Robot, Target: l.Target, By: l.By})
}

func newMood(e event.Envelope, m event.Mood) *Frame {
	return newFrame(KindMood, e.Session, e.Robot, "m "+placeOf(e), Mood{Type: KindMood,
		TS: e.At.Unix(), Session: e.Session, Robot: e.Robot, Mood: m})
}

func newSaid(e event.Envelope, s event.Said) *Frame {
	return newFrame(KindSaid, e.Session, e.Robot, "w "+placeOf(e), Said{Type: KindSaid,
		TS: e.At.Unix(), Session: e.Session, Robot: e.Robot, Text: plain.Clip(s.Text, limit.Text)})
}

// placeOf is whose mood an event is of: a robot's, or a session's without one; empty is
// the household's character.
func placeOf(e event.Envelope) string {
	if e.Robot != "" {
		return string(e.Robot)
	}
	return e.Session
}
