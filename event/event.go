// Package event is what happened, in a closed vocabulary, and the one bus
// that carries it. Doors, behaviours and renderers know one another only
// through it. Sound never enters it.
//
// The bus is a short log with cursors, not a channel per subscriber. Publish
// stamps an event, writes it into a ring and returns; it never waits for a
// reader. Every reader sees every event in the order of Seq, at its own pace.
// One that falls a whole ring behind is told with Missed how many it lost and
// goes on with what is still there; it then reads the state anew from where
// the state is kept. Perceived events have a ring of their own, so that a
// chatty sensor cannot push out speech.
package event

import (
	"encoding/json"
	"time"

	"perch/device"
)

// Event is something that happened. The set is closed: the types of this
// package.
type Event interface {
	kind() string
}

// Kind is an event's name outside: "robot_online".
func Kind(e Event) string { return e.kind() }

// Envelope is an event as it was published.
type Envelope struct {
	Seq     uint64    `json:"seq"` // counts up from 1 within a run of the appliance
	At      time.Time `json:"at"`  // with Go's monotonic reading
	Robot   device.ID `json:"robot,omitempty"`
	Session string    `json:"session,omitempty"`
	Event   Event     `json:"-"`
}

// MarshalJSON writes the envelope with the event's kind and fields.
func (e Envelope) MarshalJSON() ([]byte, error) {
	type plain Envelope
	return json.Marshal(struct {
		plain
		Kind string `json:"kind"`
		Data Event  `json:"data"`
	}{plain(e), e.Event.kind(), e.Event})
}

// RobotSeen is a check-in: a robot has booted.
type RobotSeen struct {
	Board    string `json:"board"`
	Firmware string `json:"firmware"`
	Address  string `json:"address"`
	New      bool   `json:"new"`
	Waiting  bool   `json:"waiting"` // for its owner to adopt it
}

// RobotAdopted says that a robot's owner has adopted it by name, or that it was adopted as one of the first.
type RobotAdopted struct{}

// RobotRenamed is what a robot is called from now on: empty where its owner has
// taken its name away.
type RobotRenamed struct {
	Name string `json:"name"`
}

// RobotForgotten says that a robot is no longer known: its owner has forgotten it, or it was a stranger that gave way.
type RobotForgotten struct{}

// RobotOnline is a robot's channel opened and its hello answered.
type RobotOnline struct {
	Framing int `json:"framing"`
}

// RobotOffline is a robot's channel closed. It is not published where another
// session of the same robot has taken its place.
type RobotOffline struct {
	Why string `json:"why"`
}

// RobotStatus is what a robot reported of itself; nil is unknown.
type RobotStatus struct {
	Volume     *int   `json:"volume"`     // 0-100
	Brightness *int   `json:"brightness"` // 0-100
	Battery    *int   `json:"battery"`    // 0-100
	Charging   *bool  `json:"charging"`
	Signal     string `json:"signal,omitempty"`
}

// ToolsListed is the end of a robot's list of tools.
type ToolsListed struct {
	Count int `json:"count"`
}

// ListeningStarted is the microphone open for the next utterance.
type ListeningStarted struct {
	Mode string `json:"mode"`
}

// Heard is an utterance understood.
type Heard struct {
	Text string `json:"text"`
}

// Misheard is an utterance that was speech but could not be understood. The
// robot listens on.
type Misheard struct{}

// ThinkingStarted is a turn handed to a brain.
type ThinkingStarted struct {
	Brain string `json:"brain"`
}

// StateTold is what an agent says itself that it does, such as a coding session.
// From then on nothing else changes what it shows, but a question that waits.
type StateTold struct {
	State     string `json:"state"`                // in the words of agent.Shown
	SubAgents int    `json:"sub_agents,omitempty"` // other agents at work for it
	Agent     string `json:"agent,omitempty"`      // which it is: "claude-code"
}

// Tool conditions.
const (
	ToolRunning = "running"
	ToolDone    = "done"
	ToolFailed  = "failed"
)

// ToolStatus is a tool at work within a turn.
type ToolStatus struct {
	ID       string `json:"id"` // one call
	Name     string `json:"name"`
	Status   string `json:"status"`
	Detail   string `json:"detail,omitempty"`
	SubAgent bool   `json:"sub_agent,omitempty"` // another agent, at work on its own
}

// Emotion is the face the agent wears from now on.
type Emotion struct {
	Name      string  `json:"name"`
	Emoji     string  `json:"emoji"`
	Intensity float64 `json:"intensity,omitempty"` // over 0 to 1; 0 stands for 1
	Tag       string  `json:"tag,omitempty"`       // what the model wrote for it, where that was a word
}

// SpeakingStarted is the first packet of speech gone to the robot.
type SpeakingStarted struct{}

// Said is a sentence whose first packet has gone to the robot.
type Said struct {
	Text string `json:"text"`
}

// SoundStarted is the first packet of a sound gone to the robot, such as a
// chime: nobody has said anything, and it is no turn.
type SoundStarted struct {
	Name string `json:"name"`
}

// SoundEnded is a sound over that had started, its last packet played.
type SoundEnded struct {
	Name string `json:"name"`
	End  string `json:"end"` // done, cancelled or failed
}

// Ends of a turn.
const (
	EndDone      = "done"
	EndCancelled = "cancelled"
	EndFailed    = "failed"
	EndHangUp    = "hang_up"
	EndSleep     = "sleep"
)

// Stages of a turn.
const (
	StageEndpoint      = "endpoint"       // the silence that tells the end of speech
	StageRecognize     = "recognize"      // from then to the text
	StageFirstToken    = "first_token"    // from the text to the brain's first sign
	StageFirstSentence = "first_sentence" // from there to the first whole sentence
	StageFirstAudio    = "first_audio"    // from there to its first sound
	StageFirstPacket   = "first_packet"   // from the end of speech to the robot being sent sound: what a person waits
	StageTools         = "tools"          // in all, those that run at a time counted once
)

// Stages are all of them, in their order.
func Stages() []string {
	return []string{StageEndpoint, StageRecognize, StageFirstToken, StageFirstSentence, StageFirstAudio, StageFirstPacket, StageTools}
}

// TurnEnded is a turn over, its last packet played.
type TurnEnded struct {
	End    string           `json:"end"`
	Reason string           `json:"reason,omitempty"` // of a failure
	Stages map[string]int64 `json:"stages,omitempty"` // what each took, in milliseconds; those there were
}

// Perceived is something a robot sensed.
type Perceived struct {
	Name string          `json:"name"`
	Data json.RawMessage `json:"data"`
}

// Notification is something to tell people. The envelope names the robot or
// the session it is for; without either it is for all.
type Notification struct {
	ID        string    `json:"id"`
	Text      string    `json:"text"`
	Urgency   string    `json:"urgency"`
	ActionURL string    `json:"action_url,omitempty"`
	Speak     bool      `json:"speak"` // else it is only to be shown
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// NotificationChanged is a step in a notification's life: shown, spoken,
// acknowledged, expired.
type NotificationChanged struct {
	ID    string `json:"id"`
	State string `json:"state"`
}

// Asked is a question that waits for an answer.
type Asked struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Answered is the end of a question, by an answer, a deadline or a hang-up.
type Answered struct {
	ID     string `json:"id"`
	Answer string `json:"answer"`
}

// TimerRang is a timer of ours at its time.
type TimerRang struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Fault is a part that does not do its work. Session faults make the state
// "error"; others are for the log and the dashboard.
type Fault struct {
	Part  string `json:"part"`
	Cause string `json:"cause"`
}

// Missed is given to a reader that fell behind, in place of at most N events.
type Missed struct {
	N uint64 `json:"n"`
}

func (RobotSeen) kind() string           { return "robot_seen" }
func (RobotAdopted) kind() string        { return "robot_adopted" }
func (RobotRenamed) kind() string        { return "robot_renamed" }
func (RobotForgotten) kind() string      { return "robot_forgotten" }
func (RobotOnline) kind() string         { return "robot_online" }
func (RobotOffline) kind() string        { return "robot_offline" }
func (RobotStatus) kind() string         { return "robot_status" }
func (ToolsListed) kind() string         { return "tools_listed" }
func (ListeningStarted) kind() string    { return "listening_started" }
func (Heard) kind() string               { return "heard" }
func (Misheard) kind() string            { return "misheard" }
func (ThinkingStarted) kind() string     { return "thinking_started" }
func (StateTold) kind() string           { return "state_told" }
func (ToolStatus) kind() string          { return "tool_status" }
func (Emotion) kind() string             { return "emotion" }
func (SpeakingStarted) kind() string     { return "speaking_started" }
func (Said) kind() string                { return "said" }
func (SoundStarted) kind() string        { return "sound_started" }
func (SoundEnded) kind() string          { return "sound_ended" }
func (TurnEnded) kind() string           { return "turn_ended" }
func (Perceived) kind() string           { return "perceived" }
func (Notification) kind() string        { return "notification" }
func (NotificationChanged) kind() string { return "notification_changed" }
func (Asked) kind() string               { return "asked" }
func (Answered) kind() string            { return "answered" }
func (TimerRang) kind() string           { return "timer_rang" }
func (Fault) kind() string               { return "fault" }
func (Missed) kind() string              { return "missed" }
