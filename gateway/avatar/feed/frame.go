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

// Kinds of frames that a viewer may subscribe to.
const (
	KindState  = "agent_state"
	KindTool   = "tool_status"
	KindFace   = "emotion"
	KindNotice = "notification"

	// Kinds that the RFC does not have. Skins get them only on request.
	KindStep    = "notification_changed"
	KindGesture = "gesture"
	KindLook    = "look_at"
	KindMood    = "mood"
	KindSaid    = "said"
)

// State is the body of an agent_state frame: the visible state of a session.
type State struct {
	Type    string       `json:"type"`
	TS      int64        `json:"ts"` // seconds since 1970
	State   agent.Shown  `json:"state"`
	Session string       `json:"session_id"`
	Robot   device.ID    `json:"robot,omitempty"`
	Detail  *StateDetail `json:"detail,omitempty"`
}

// StateDetail adds details to the states working and juggling.
type StateDetail struct {
	Tool      string `json:"tool_name,omitempty"` // name of the tool that started last
	SubAgents int    `json:"subagent_count"`      // number of other agents that work for the session's agent
}

// Tool is the body of a tool_status frame: the status of a tool call.
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

// Face is the body of an emotion frame: the face of the agent in a session.
type Face struct {
	Type      string    `json:"type"`
	TS        int64     `json:"ts"`
	Session   string    `json:"session_id"`
	Robot     device.ID `json:"robot,omitempty"`
	Tag       string    `json:"tag"`
	Intensity float64   `json:"intensity"` // above 0, at most 1
}

// Notice is the body of a notification frame: a text for people. The text must never be used
// as a prompt.
type Notice struct {
	Type      string    `json:"type"`
	TS        int64     `json:"ts"`
	Text      string    `json:"text"`
	Urgency   string    `json:"urgency"`
	ActionURL string    `json:"action_url,omitempty"`
	ID        string    `json:"id,omitempty"` // for acknowledging the notification; empty if that is not possible
	Session   string    `json:"session_id,omitempty"`
	Robot     device.ID `json:"robot,omitempty"`
	Question  string    `json:"question_id,omitempty"` // ID of the question, if the text waits for a yes or no
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Speak     bool      `json:"speak"` // whether the text is meant to be spoken
}

// Step is the body of a notification_changed frame: the new state of a notification.
type Step struct {
	Type  string `json:"type"`
	TS    int64  `json:"ts"`
	ID    string `json:"id"`
	State string `json:"state"`
}

// Gesture is the body of a gesture frame: a gesture that the agent makes.
type Gesture struct {
	Type     string    `json:"type"`
	TS       int64     `json:"ts"`
	Session  string    `json:"session_id,omitempty"`
	Robot    device.ID `json:"robot,omitempty"`
	Name     string    `json:"name"`
	Duration int64     `json:"duration_ms,omitempty"` // omitted if the gesture lasts for its default time
	By       string    `json:"by"`                    // as in event.Gesture
}

// Look is the body of a look_at frame: the direction or object that the agent looks at.
type Look struct {
	Type    string    `json:"type"`
	TS      int64     `json:"ts"`
	Session string    `json:"session_id,omitempty"`
	Robot   device.ID `json:"robot,omitempty"`
	Target  string    `json:"target"`
	By      string    `json:"by"` // as in event.LookAt
}

// Mood is the body of a mood frame: the mood of the agent.
type Mood struct {
	Type    string    `json:"type"`
	TS      int64     `json:"ts"`
	Session string    `json:"session_id,omitempty"`
	Robot   device.ID `json:"robot,omitempty"`
	event.Mood
}

// Said is the body of a said frame: a sentence that the agent begins to speak.
type Said struct {
	Type    string    `json:"type"`
	TS      int64     `json:"ts"`
	Session string    `json:"session_id,omitempty"`
	Robot   device.ID `json:"robot,omitempty"`
	Text    string    `json:"text"`
}

// Frame is an encoded frame. All viewers share it, so it must not be changed.
type Frame struct {
	Kind    string    // empty for a reply to a viewer's command
	Session string    // empty for a frame that is not about a session
	Robot   device.ID // empty for a frame that is not about a robot
	Body    any       // State, Tool, Face, Notice, Step, Gesture, Look, Mood or Said; nil for a reply
	Data    []byte    // the body as JSON

	key    string // a later frame with the same key makes this one stale; empty for a frame that is never stale
	low    bool   // whether this is a notification of low urgency, which may be dropped
	notice string // ID of the notification that counts as shown once this frame is sent, or ""
}

// NewReply returns a frame that replies to a single viewer's command. In a crowded outbox it
// replaces earlier frames with the same key.
func NewReply(key string, body any) *Frame { return &Frame{key: key, Data: httpserver.Encode(body)} }

// NewFrame returns a frame without session and robot. Package relay makes such frames itself, for
// example to try out a program.
func NewFrame(kind string, body any) *Frame { return newFrame(kind, "", "", "", body) }

// newFrame returns a frame. session, robot and key may be empty.
func newFrame(kind, session string, robot device.ID, key string, body any) *Frame {
	return &Frame{Kind: kind, Session: session, Robot: robot, Body: body, Data: httpserver.Encode(body), key: key}
}

// ShownTo returns s for viewers of all ten states, and otherwise the closest of the RFC's
// seven states (see docs/skins.md).
func ShownTo(allStates bool, s agent.Shown) agent.Shown {
	if allStates {
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

func toolFrame(e event.Envelope, t event.ToolStatus) *Frame {
	return newFrame(KindTool, e.Session, e.Robot, "t "+e.Session+" "+t.ID, Tool{
		Type: KindTool, TS: e.At.Unix(), Session: e.Session, Robot: e.Robot,
		ID: plain.Clip(t.ID, limit.Name), Name: plain.Clip(t.Name, limit.Name), Status: t.SkinStatus(),
		Content: plain.Clip(t.Detail, limit.Line),
	})
}

func noticeFrame(n Notice) *Frame {
	n.Type = KindNotice
	frame := newFrame(KindNotice, n.Session, n.Robot, "", n)
	frame.low = n.Urgency == notice.UrgencyLow
	if n.ID != "" {
		frame.key = "n " + n.ID
	}
	if n.Robot == "" {
		frame.notice = n.ID // a notification for a robot counts only once the robot has spoken
	}
	return frame
}

func stepFrame(at time.Time, n event.NotificationChanged) *Frame {
	return newFrame(KindStep, "", "", "c "+n.ID, Step{Type: KindStep, TS: at.Unix(), ID: n.ID, State: n.State})
}

func gestureFrame(e event.Envelope, g event.Gesture) *Frame {
	return newFrame(KindGesture, e.Session, e.Robot, "g "+agentKey(e), Gesture{Type: KindGesture,
		TS: e.At.Unix(), Session: e.Session, Robot: e.Robot, Name: plain.Clip(g.Name, limit.Name), Duration: g.Duration, By: g.By})
}

func lookFrame(e event.Envelope, l event.LookAt) *Frame {
	return newFrame(KindLook, e.Session, e.Robot, "l "+agentKey(e), Look{Type: KindLook,
		TS: e.At.Unix(), Session: e.Session, Robot: e.Robot, Target: l.Target, By: l.By})
}

func moodFrame(e event.Envelope, m event.Mood) *Frame {
	return newFrame(KindMood, e.Session, e.Robot, "m "+agentKey(e), Mood{Type: KindMood,
		TS: e.At.Unix(), Session: e.Session, Robot: e.Robot, Mood: m})
}

func saidFrame(e event.Envelope, s event.Said) *Frame {
	return newFrame(KindSaid, e.Session, e.Robot, "w "+agentKey(e), Said{Type: KindSaid,
		TS: e.At.Unix(), Session: e.Session, Robot: e.Robot, Text: plain.Clip(s.Text, limit.Text)})
}

// agentKey returns the robot ID of an event, or the session ID if the event has no robot. It returns
// "" for an event of the default character, which has neither.
func agentKey(e event.Envelope) string {
	return cmp.Or(string(e.Robot), e.Session)
}
