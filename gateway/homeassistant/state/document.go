// Package state holds the state of robots and agents as Home Assistant sees it, and makes the JSON documents that
// publish this state. The package does no I/O and reads no clock: events and the time are arguments.
package state

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/limit"
	"perch/plain"
)

// Document is the JSON document with the state of a robot. Every key but music is always present. A nil pointer becomes null,
// which means that the value is unknown or not set.
type Document struct {
	Name        *string     `json:"name"`
	Character   *string     `json:"character"` // ID of the character
	Brain       string      `json:"brain"`     // name of the brain (a program that answers) that is asked first, or discovery.DefaultOption
	Voice       *string     `json:"voice"`     // null for the default voice of the appliance
	Language    string      `json:"language"`  // BCP 47 tag, or discovery.DefaultOption
	AgentState  agent.Shown `json:"agent_state"`
	Emotion     *string     `json:"emotion"`
	SessionID   *string     `json:"session_id"` // null while Talking is false
	Connected   bool        `json:"connected"`  // the robot can be reached
	Talking     bool        `json:"talking"`    // the channel for conversations is open
	Transport   *string     `json:"transport"`  // "websocket" or "mqtt"; a change takes effect when the robot boots next
	Face        *bool       `json:"face"`       // whether the robot sees a face
	Identity    *string     `json:"identity"`   // the person that the robot has recognized
	Volume      *int        `json:"volume"`     // per cent
	Brightness  *int        `json:"brightness"` // per cent
	Mute        bool        `json:"mute"`       // the appliance drops the sound of the robot's microphone
	HeadYaw     *int        `json:"head_yaw"`   // degrees
	HeadPitch   *int        `json:"head_pitch"` // degrees
	LED         *Light      `json:"led"`
	Battery     *int        `json:"battery"` // per cent
	Charging    *bool       `json:"charging"`
	Signal      *string     `json:"signal"`          // strength of the Wi-Fi signal; see discovery.signals
	Temperature *float64    `json:"temperature"`     // degrees Celsius
	Booted      *time.Time  `json:"booted"`          // time of the last check-in
	Firmware    *string     `json:"firmware"`        // version
	LastHeard   *string     `json:"last_heard"`      // the text that was heard last
	Gesture     *string     `json:"gesture"`         // name of the present gesture
	Music       string      `json:"music,omitempty"` // name of the music, or discovery.MusicOff; missing if the owner has no music
}

// Light is the state of a light in Home Assistant's JSON schema.
type Light struct {
	State      *string `json:"state"` // "ON" or "OFF"; null if unknown
	ColorMode  string  `json:"color_mode,omitempty"`
	Color      *Colour `json:"color,omitempty"`
	Brightness *int    `json:"brightness,omitempty"` // 0 to 255
}

// Colour is a colour of red, green and blue, each from 0 to 255.
type Colour struct {
	R int `json:"r"`
	G int `json:"g"`
	B int `json:"b"`
}

// NewLight returns the state of a light with the given levels of red, green and blue, from 0 to 255. The brightness of
// the light is the largest level, and its colour is scaled to full brightness. If all levels are 0, the light is off.
func NewLight(rgb [3]int) Light {
	full := slices.Max(rgb[:])
	if full == 0 {
		return Light{State: new("OFF")}
	}
	return Light{State: new("ON"), ColorMode: "rgb", Brightness: &full,
		Color: &Colour{R: rgb[0] * 255 / full, G: rgb[1] * 255 / full, B: rgb[2] * 255 / full}}
}

// Over returns the light with the colour and brightness that it lacks from current, or else white and 255. A light that is
// off has neither. State must not be nil; current may be.
func (l Light) Over(current *Light) Light {
	if *l.State == "OFF" {
		return l
	}
	if current == nil {
		current = &Light{}
	}
	l.Color = cmp.Or(l.Color, current.Color, &Colour{R: 255, G: 255, B: 255})
	l.Brightness = cmp.Or(l.Brightness, current.Brightness, new(255))
	return l
}

// RGB returns the levels of red, green and blue, from 0 to 255: the colour multiplied by the brightness. They are 0 if
// the light is off or has no colour. State must not be nil.
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

// Readings are the latest values of a robot that were read from the robot, reported by the robot, or set by a command.
// A nil pointer or an empty text means that the value is unknown.
type Readings struct {
	device.Status
	HeadYaw, HeadPitch *float64 // degrees
}

// ParseAngles sets the angles of the head from the result of a tool, a JSON object with the keys "yaw" and "pitch". An
// angle that is missing from the object becomes unknown. ParseAngles ignores a text that it cannot decode.
func (r *Readings) ParseAngles(text string) {
	var h struct{ Yaw, Pitch *float64 }
	if json.Unmarshal([]byte(text), &h) == nil {
		r.HeadYaw, r.HeadPitch = h.Yaw, h.Pitch
	}
}

// SetLevel sets the volume, if what is "volume", or else the brightness. value is in per cent.
func (r *Readings) SetLevel(what string, value int) {
	if what == "volume" {
		r.Volume = &value
	} else {
		r.Brightness = &value
	}
}

// SetHead sets the angles of the head in degrees. Nil leaves an angle unchanged.
func (r *Readings) SetHead(yaw, pitch *int) {
	for field, angle := range map[**float64]*int{&r.HeadYaw: yaw, &r.HeadPitch: pitch} {
		if angle != nil {
			*field = new(float64(*angle))
		}
	}
}

// Update is the state of a firmware update entity. Home Assistant rejects unknown keys, and null for a version, so
// an unknown version is omitted.
type Update struct {
	Installed  string `json:"installed_version,omitempty"`
	Latest     string `json:"latest_version,omitempty"`
	InProgress bool   `json:"in_progress"`
	Percentage *int   `json:"update_percentage"` // null if no update is in progress
}

// Mood is the mood of a robot. Before the first mood event, Mood and Face are nil and the feelings are 0.
type Mood struct {
	Mood *string `json:"mood"` // the dominant feeling; nil if discovery.Moods does not contain it
	Face *string `json:"face"` // name of the emotion that expresses the mood
	event.Feelings
}

// Event is an event on a topic of a robot or of the bridge.
type Event struct {
	Type string `json:"event_type"`
	// Name is the name of what the event is about, such as a perception or a skill, or the original type of an event whose
	// Type is "other".
	Name    string          `json:"name,omitempty"`
	Session string          `json:"session_id,omitempty"`
	Text    *string         `json:"text,omitempty"`   // only if transcripts are shared
	ID      string          `json:"id,omitempty"`     // ID of the question, tool call, timer or memory
	Answer  string          `json:"answer,omitempty"` // see event.Answered
	Tool    string          `json:"tool,omitempty"`   // name of the tool
	End     string          `json:"end,omitempty"`    // how a turn has ended; see event.TurnEnded
	Thing   string          `json:"thing,omitempty"`  // kind of the command; see event.Command
	Reason  string          `json:"reason,omitempty"` // why something has failed; text for people
	Data    json.RawMessage `json:"data,omitempty"`

	// The following fields are set only for diary entries.

	Seq   uint64 `json:"seq,omitempty"`   // number of the entry
	Hash  string `json:"hash,omitempty"`  // hash of the entry
	Agent string `json:"agent,omitempty"` // ID of the character whose diary it is
}

// Answer is the event with the answer to a question that was asked over MQTT.
type Answer struct {
	Type     string `json:"event_type"` // one of discovery.AnswerTypes
	ID       string `json:"id"`         // ID in the command that asked the question; may be empty
	Question string `json:"question"`
	Text     string `json:"text"`   // the spoken answer; empty if the answer was not spoken, or nobody answered
	Reason   string `json:"reason"` // why there is no answer; empty if there is an answer
}

// ToolStatus is the status of a tool call, in the form that skins receive too (docs/skins.md).
type ToolStatus struct {
	Type    string `json:"type"`
	Session string `json:"session_id,omitempty"`
	ID      string `json:"tool_id"`
	Name    string `json:"tool_name"`
	Status  string `json:"status"` // "running", "completed" or "error"
	Content string `json:"content,omitempty"`
}

// NewToolStatus returns the document for the status of a tool call in a session.
func NewToolStatus(session string, t event.ToolStatus) ToolStatus {
	return ToolStatus{"tool_status", session, plain.Clip(t.ID, limit.Name), plain.Clip(t.Name, limit.Name),
		t.SkinStatus(), plain.Clip(t.Detail, limit.Line)}
}

// Notification is the document for a step in the life of a notification.
type Notification struct {
	Type      string `json:"event_type"`
	ID        string `json:"id"`
	Text      string `json:"text"`
	Urgency   string `json:"urgency"`
	ActionURL string `json:"action_url"`
	Robot     string `json:"robot,omitempty"` // ID of the robot that the step concerns; omitted if it concerns no single robot
}

// BridgeInfo is the document on the topic bridge/info: the state of the appliance.
type BridgeInfo struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	Robots  int    `json:"robots"` // number of adopted robots that can be reached
	// Strangers is the number of robots that their owner has not adopted.
	Strangers int       `json:"strangers"`
	Waiting   int       `json:"waiting"` // number of agents without a robot that wait for a person
	Started   time.Time `json:"started"`
	Host      string    `json:"host"`            // host name on the network, such as "perch.local"; may be empty
	Taken     string    `json:"taken,omitempty"` // the configured host name, if another machine has taken it
}

// StrangerSeen is the event for a robot that has checked in and that its owner has not adopted.
type StrangerSeen struct {
	Type    string    `json:"event_type"` // "came", or "waits" for a robot that waits to be adopted
	Robot   device.ID `json:"robot"`
	MAC     string    `json:"mac"`
	Address string    `json:"address"`
	Board   string    `json:"board"`
}

// optional returns a pointer to s, or nil if s is empty.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
