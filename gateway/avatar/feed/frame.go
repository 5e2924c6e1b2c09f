package feed

import (
	"cmp"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
)

// The kinds of frames that a viewer may subscribe to. Skins get those of the RFC by
// default; the others are extensions, for viewers that request them.
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

// State is a session's visible state: a frame of kind agent_state.
type State struct {
	Type    string       `json:"type"`
	TS      int64        `json:"ts"` // seconds since 1970
	State   agent.Shown  `json:"state"`
	Session string       `json:"session_id"`
	Robot   device.ID    `json:"robot,omitempty"`
	Detail  *StateDetail `json:"detail,omitempty"`
}

// StateDetail adds details to working and juggling.
type StateDetail struct {
	Tool      string `json:"tool_name,omitempty"` // the latest to start
	SubAgents int    `json:"subagent_count"`      // other agents at work for this one
}

// Tool is the status of a tool: a frame of kind tool_status.
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
	Intensity float64   `json:"intensity"` // above 0, at most 1
}

// Notice is text to show: a frame of kind notification. It must never be used as a prompt.
type Notice struct {
	Type      string    `json:"type"`
	TS        int64     `json:"ts"`
	Text      string    `json:"text"`
	Urgency   string    `json:"urgency"`
	ActionURL string    `json:"action_url,omitempty"`
	ID        string    `json:"id,omitempty"` // for acknowledging it
	Session   string    `json:"session_id,omitempty"`
	Robot     device.ID `json:"robot,omitempty"`
	Question  string    `json:"question_id,omitempty"` // it waits for a yes or no
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Speak     bool      `json:"speak"`
}

// Step is the new state of a notification: a frame of kind notification_changed.
type Step struct {
	Type  string `json:"type"`
	TS    int64  `json:"ts"`
	ID    string `json:"id"`
	State string `json:"state"`
}

// Gesture is a gesture of the agent: a frame of kind gesture.
type Gesture struct {
	Type     string    `json:"type"`
	TS       int64     `json:"ts"`
	Session  string    `json:"session_id,omitempty"`
	Robot    device.ID `json:"robot,omitempty"`
	Name     string    `json:"name"`
	Duration int64     `json:"duration_ms,omitempty"` // omitted for the gesture's default
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

// Mood is the agent's mood: a frame of kind mood.
type Mood struct {
	Type    string    `json:"type"`
	TS      int64     `json:"ts"`
	Session string    `json:"session_id,omitempty"`
	Robot   device.ID `json:"robot,omitempty"`
	event.Mood
}

// Said is a sentence of the agent, sent when its sound begins: a frame of kind said.
type Said struct {
	Type    string    `json:"type"`
	TS      int64     `json:"ts"`
	Session string    `json:"session_id,omitempty"`
	Robot   device.ID `json:"robot,omitempty"`
	Text    string    `json:"text"`
}

// Frame is an encoded frame. It is encoded once, and shared by all its viewers.
type Frame struct {
	Kind    string // empty for an answer to a single viewer
	Session string
	Robot   device.ID
	Body    any    // State, Tool, Face, Notice, Step, Gesture, Look, Mood or Said; nil for an answer
	Data    []byte // Body as JSON

	key    string // a later frame of the same key makes this one stale
	low    bool   // a notification of low urgency, which may be dropped
	notice string // the id of a notification that counts as shown once it is sent
}

// NewAnswer returns a frame for a single viewer. In a crowded outbox a later one of the
// same key replaces it.
func NewAnswer(key string, body any) *Frame { return &Frame{key: key, Data: httpserver.Encode(body)} }

// NewFrame returns a frame without session and robot, for a viewer that makes its own.
func NewFrame(kind string, body any) *Frame { return newFrame(kind, "", "", "", body) }

// newFrame returns a frame about a session, a robot, or neither.
func newFrame(kind, session string, robot device.ID, key string, body any) *Frame {
	return &Frame{Kind: kind, Session: session, Robot: robot, Body: body, Data: httpserver.Encode(body), key: key}
}

// ShownTo returns a state as shown to viewers of all ten states, or else reduced to the
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

// placeOf returns whose mood an event is about: a robot, or a session without one; empty
// is the household's character.
func placeOf(e event.Envelope) string {
	return cmp.Or(string(e.Robot), e.Session)
}
