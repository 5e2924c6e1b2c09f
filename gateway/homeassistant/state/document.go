// Package state holds what the mirror knows of robots and agents, and makes the documents that are
// published of them. It is pure: events and the time are passed in.
package state

import (
	"encoding/json"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/limit"
	"perch/plain"
)

// Document is the JSON document of a robot's state. Every key is always present, null if unknown.
type Document struct {
	Name        *string     `json:"name"`
	Character   *string     `json:"character"` // its id
	AgentState  agent.Shown `json:"agent_state"`
	Emotion     *string     `json:"emotion"`
	SessionID   *string     `json:"session_id"`
	Connected   bool        `json:"connected"` // it can be reached
	Talking     bool        `json:"talking"`   // its channel is open
	Transport   *string     `json:"transport"` // from its next boot on
	Face        *bool       `json:"face"`
	Identity    *string     `json:"identity"`
	Volume      *int        `json:"volume"`
	Brightness  *int        `json:"brightness"`
	Mute        bool        `json:"mute"`
	HeadYaw     *int        `json:"head_yaw"`   // degrees
	HeadPitch   *int        `json:"head_pitch"` // degrees
	LED         *Light      `json:"led"`
	Battery     *int        `json:"battery"` // per cent
	Charging    *bool       `json:"charging"`
	Signal      *string     `json:"signal"`
	Temperature *float64    `json:"temperature"` // degrees Celsius
	Booted      *time.Time  `json:"booted"`
	Firmware    *string     `json:"firmware"`
	LastHeard   *string     `json:"last_heard"`
	Gesture     *string     `json:"gesture"` // while it lasts
}

// Light is a light in Home Assistant's JSON schema.
type Light struct {
	State      *string `json:"state"` // ON or OFF
	ColorMode  string  `json:"color_mode,omitempty"`
	Color      *Colour `json:"color,omitempty"`
	Brightness *int    `json:"brightness,omitempty"` // 0-255
}

// Colour is red, green and blue, 0-255 each.
type Colour struct {
	R int `json:"r"`
	G int `json:"g"`
	B int `json:"b"`
}

// RGB returns red, green and blue as they shine, 0-255. The light has a State.
func (l Light) RGB() [3]int {
	if *l.State == "OFF" || l.Color == nil {
		return [3]int{}
	}
	full := 255
	if l.Brightness != nil {
		full = *l.Brightness
	}
	return [3]int{l.Color.R * full / 255, l.Color.G * full / 255, l.Color.B * full / 255}
}

// Readings are a robot's answers to requests for its status. Nil is unknown.
type Readings struct {
	device.Status
	HeadYaw, HeadPitch *float64 // degrees
}

// ParseAngles sets the angles of a head, if text holds them.
func (r *Readings) ParseAngles(text string) {
	var h struct{ Yaw, Pitch *float64 }
	if json.Unmarshal([]byte(text), &h) == nil {
		r.HeadYaw, r.HeadPitch = h.Yaw, h.Pitch
	}
}

// SetHead sets the angles of a head in degrees; nil leaves one as it is.
func (r *Readings) SetHead(yaw, pitch *int) {
	for to, angle := range map[**float64]*int{&r.HeadYaw: yaw, &r.HeadPitch: pitch} {
		if angle != nil {
			*to = new(float64(*angle))
		}
	}
}

// Update is the state of Home Assistant's MQTT update, which rejects unknown keys. An unknown version
// is left out, because it accepts no null there.
type Update struct {
	Installed  string `json:"installed_version,omitempty"`
	Latest     string `json:"latest_version,omitempty"`
	InProgress bool   `json:"in_progress"`
	Percentage *int   `json:"update_percentage"` // null if nothing is in progress
}

// Mood is what a robot feels. Before its first mood, mood and face are null and the feelings are 0.
type Mood struct {
	Mood *string `json:"mood"` // the dominant feeling
	Face *string `json:"face"` // the emotion that expresses it
	event.Feelings
}

// Event is a message on one of a robot's event topics.
type Event struct {
	Type    string          `json:"event_type"`
	Name    string          `json:"name,omitempty"` // of an event whose type is other
	Session string          `json:"session_id,omitempty"`
	Text    *string         `json:"text,omitempty"` // only if transcripts are shared
	ID      string          `json:"id,omitempty"`
	Answer  string          `json:"answer,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	End     string          `json:"end,omitempty"`
	Thing   string          `json:"thing,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`

	// For a diary entry: its number and hash, and the character whose diary it is.

	Seq   uint64 `json:"seq,omitempty"`
	Hash  string `json:"hash,omitempty"`
	Agent string `json:"agent,omitempty"`
}

// Tool is a tool's status in the form that skins know (docs/skins.md).
type Tool struct {
	Type    string `json:"type"`
	Session string `json:"session_id,omitempty"`
	ID      string `json:"tool_id"`
	Name    string `json:"tool_name"`
	Status  string `json:"status"` // running, completed or error
	Content string `json:"content,omitempty"`
}

// NewTool returns the document of a tool's status in a session.
func NewTool(session string, t event.ToolStatus) Tool {
	return Tool{"tool_status", session, plain.Clip(t.ID, limit.Name), plain.Clip(t.Name, limit.Name),
		t.SkinStatus(), plain.Clip(t.Detail, limit.Line)}
}

// Notification is a step in a notification's life.
type Notification struct {
	Type      string `json:"event_type"`
	ID        string `json:"id"`
	Text      string `json:"text"`
	Urgency   string `json:"urgency"`
	ActionURL string `json:"action_url"`
	Robot     string `json:"robot,omitempty"` // that did it
}

// BridgeInfo is what an appliance publishes of itself.
type BridgeInfo struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	Robots  int    `json:"robots"` // that can be reached
	// Strangers are the robots that their owner has not adopted.
	Strangers int       `json:"strangers"`
	Waiting   int       `json:"waiting"` // agents without a robot that wait for a person
	Started   time.Time `json:"started"`
	Host      string    `json:"host"`            // name on the network, "perch.local"; may be empty
	Taken     string    `json:"taken,omitempty"` // the name it was to have, if another machine has it
}

// NewRobot is the event for a robot that its owner has not adopted.
type NewRobot struct {
	Type    string    `json:"event_type"` // came, or waits to be adopted
	Robot   device.ID `json:"robot"`
	MAC     string    `json:"mac"`
	Address string    `json:"address"`
	Board   string    `json:"board"`
	Adopt   string    `json:"adopt"` // the command that adopts it
}

// optional returns a pointer to s, or nil if it is empty.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
