package skin

import (
	"encoding/json"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
)

// The kinds of frames that a skin may subscribe to. All but the last are the
// RFC's, and what a skin gets that asks for nothing else.
const (
	kindState  = "agent_state"
	kindTool   = "tool_status"
	kindFace   = "emotion"
	kindNotice = "notification"
	kindStep   = "notification_changed" // an extension, for skins that subscribe to it
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
