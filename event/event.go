// Package event is the closed vocabulary of what happened, and the bus that
// carries it. Listeners, behaviours and renderers only communicate through it. Sound is
// never part of it. docs/events.md lists every event; a test generates it from the
// comments of this package.
//
// The bus is a short log with cursors, not a channel per subscriber. Publish
// stamps an event, writes it into a ring and returns; it never waits for a
// reader. Every reader sees every event in the order of Seq, at its own pace. A
// reader that falls a whole ring behind receives Missed with the number of lost
// events and continues with the oldest that is left; it must then read the state
// again from the package that owns the state. Perceived and Mood events have
// separate rings, so that neither a sensor nor a feeling can push out speech.
package event

import (
	"encoding/json"
	"strings"
	"time"

	"perch/device"
)

// Event is something that happened. The set is closed: the types of this
// package.
type Event interface {
	kind() string
}

// Kind returns an event's name outside the program: "robot_online".
func Kind(e Event) string { return e.kind() }

// Envelope is an event as it was published.
type Envelope struct {
	Seq     uint64    `json:"seq"`               // counts up from 1 while the appliance runs; starts again at 1 after a restart
	At      time.Time `json:"at"`                // when it was published; in Go with the monotonic reading
	Robot   device.ID `json:"robot,omitempty"`   // the robot it is about; left out if it is about none
	Session string    `json:"session,omitempty"` // the session it belongs to; left out if it belongs to none
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

// RobotSeen is published when a robot has checked in, which it does at each
// boot.
type RobotSeen struct {
	Board    string `json:"board"`    // its hardware, as its firmware names it
	Firmware string `json:"firmware"` // the version it runs
	Address  string `json:"address"`  // the IP address the check-in came from
	New      bool   `json:"new"`      // it was not known before
	Waiting  bool   `json:"waiting"`  // it waits for its owner to adopt it
}

// RobotAdopted is published when a robot is adopted: by its owner, or because it
// is one of the first robots.
type RobotAdopted struct{}

// RobotRenamed is published when a robot's name changes.
type RobotRenamed struct {
	Name string `json:"name"` // the new name; empty if the owner removed the name
}

// RobotForgotten is published when a robot is no longer known: its owner has
// forgotten it, or it was a stranger and a newer stranger took its place.
type RobotForgotten struct{}

// RobotOnline is published when a robot has opened its channel and its hello has
// been answered.
type RobotOnline struct {
	Framing int `json:"framing"` // version of the binary framing: 1, 2 or 3
}

// RobotOffline is published when a robot's channel is closed. It is not published
// when another session of the same robot takes over.
type RobotOffline struct {
	Why string `json:"why"` // the cause, such as "idle" or "hang_up"; text for people
}

// RobotConnected is published when a robot has connected by MQTT. It can be
// reached from then on, also while its channel is closed.
type RobotConnected struct {
	Speaks bool `json:"speaks"` // it can be made to speak then
}

// RobotDisconnected is published when a robot's MQTT connection has ended.
type RobotDisconnected struct {
	Why string `json:"why"` // the cause; text for people
}

// RobotStatus is published when a robot has reported its own status. A field is
// null if the robot did not report it.
type RobotStatus struct {
	Volume     *int   `json:"volume"`           // percent, 0 to 100
	Brightness *int   `json:"brightness"`       // of the screen; percent, 0 to 100
	Battery    *int   `json:"battery"`          // percent, 0 to 100
	Charging   *bool  `json:"charging"`         // the battery is being charged
	Signal     string `json:"signal,omitempty"` // of the Wi-Fi, in the firmware's word: "strong"
}

// ToolsListed is published when a robot has listed all its tools.
type ToolsListed struct {
	Count int `json:"count"` // number of tools
}

// ListeningStarted is published when the microphone is open for the next
// utterance.
type ListeningStarted struct {
	Mode string `json:"mode"` // who ends the utterance: auto, manual or realtime
}

// Heard is published when an utterance has been recognized, or when text arrived
// in place of speech.
type Heard struct {
	Text string `json:"text"` // the transcript
}

// Misheard is published when an utterance was speech but could not be
// recognized. The robot continues to listen.
type Misheard struct{}

// ThinkingStarted is published when a turn is handed to a brain.
type ThinkingStarted struct {
	Brain string `json:"brain"` // its name in the configuration
}

// StateTold is published when an agent reports its own state, as a coding session
// does. From then on other events do not change the state it shows, except a
// question that waits for an answer.
type StateTold struct {
	State     string `json:"state"`                // one of the agent states: idle, thinking, working ...
	SubAgents int    `json:"sub_agents,omitempty"` // number of other agents that work for it
	Agent     string `json:"agent,omitempty"`      // the program: "claude-code"
}

// States of a tool call.
const (
	ToolRunning = "running"
	ToolDone    = "done"
	ToolFailed  = "failed"
)

// ToolStatus is published when a tool call of a turn starts, changes or ends.
type ToolStatus struct {
	ID       string `json:"id"`                  // of the call
	Name     string `json:"name"`                // of the tool
	Status   string `json:"status"`              // running, done or failed
	Detail   string `json:"detail,omitempty"`    // what it works on, such as a file; or the cause of a failure
	SubAgent bool   `json:"sub_agent,omitempty"` // the tool is another agent that works on its own
}

// SkinStatus returns the status in the words that skins know: running, completed or
// error.
func (t ToolStatus) SkinStatus() string {
	switch t.Status {
	case ToolDone:
		return "completed"
	case ToolFailed:
		return "error"
	}
	return "running"
}

// Emotion is published when the face that the agent shows changes.
type Emotion struct {
	Name      string  `json:"name"`                // one of the firmware's emotions: "happy"
	Emoji     string  `json:"emoji"`               // the same as an emoji
	Intensity float64 `json:"intensity,omitempty"` // above 0, at most 1; left out for 1
	Tag       string  `json:"tag,omitempty"`       // the word that the model wrote, if it wrote a word
}

// SpeakingStarted is published when the first packet of speech has been sent to
// the robot.
type SpeakingStarted struct{}

// Said is published when the first packet of a sentence has been sent to the
// robot.
type Said struct {
	Text string `json:"text"`         // the sentence
	By   string `json:"by,omitempty"` // viewer, if a program that shows the agent reports it; left out for the agent's own speech
}

// Thought is published when a viewer reports what the agent thinks.
type Thought struct {
	Text string `json:"text"` // what it thinks
}

// SoundStarted is published when the first packet of a sound, such as a chime,
// has been sent to the robot. A sound is not speech and not a turn.
type SoundStarted struct {
	Name string `json:"name"` // of the sound
}

// SoundEnded is published when a sound that had started is over: its last packet
// was played, or it was stopped.
type SoundEnded struct {
	Name string `json:"name"` // of the sound
	End  string `json:"end"`  // done, cancelled or failed
}

// Values of TurnEnded.End.
const (
	EndDone      = "done"
	EndCancelled = "cancelled"
	EndFailed    = "failed"
	EndHangUp    = "hang_up"
	EndSleep     = "sleep"
)

// Stages of a turn, in the order of Stages.
const (
	StageEndpoint      = "endpoint"       // the silence after which an utterance counts as ended
	StageRecognize     = "recognize"      // from the end of the utterance to its transcript
	StageFirstToken    = "first_token"    // from the transcript to the brain's first output
	StageFirstSentence = "first_sentence" // from the first output to the first whole sentence
	StageFirstAudio    = "first_audio"    // from the first sentence to its first sound
	StageFirstPacket   = "first_packet"   // from the end of the utterance to the first packet sent: how long a person waits
	StageTools         = "tools"          // all tool calls; several at once count once
)

// Stages returns all stages in order.
func Stages() []string {
	return []string{StageEndpoint, StageRecognize, StageFirstToken, StageFirstSentence, StageFirstAudio, StageFirstPacket, StageTools}
}

// TurnEnded is published when a turn is over: its last packet was played, or it
// was cancelled or failed.
type TurnEnded struct {
	End    string `json:"end"`              // done, cancelled, failed, hang_up or sleep
	Reason string `json:"reason,omitempty"` // the cause of a failure; text for people
	// milliseconds by stage: endpoint, recognize, first_token, first_sentence, first_audio, first_packet, tools
	Stages map[string]int64 `json:"stages,omitempty"`
}

// Perceived is published when a robot has sensed something, or when a program
// reports it for the robot.
type Perceived struct {
	Name string          `json:"name"` // of the perception: "face_detected"
	Data json.RawMessage `json:"data"` // an object, as it was reported; see perception.md
}

// Notification is published when a notification is accepted, or replaced by a new
// one with the same id. If the envelope names no robot and no session, it is for all of them.
type Notification struct {
	ID        string    `json:"id"`                   // of the notification
	Text      string    `json:"text"`                 // the text to speak or show
	Urgency   string    `json:"urgency"`              // low, normal or high; high interrupts
	ActionURL string    `json:"action_url,omitempty"` // an address to open
	Speak     bool      `json:"speak"`                // false: only show it
	ExpiresAt time.Time `json:"expires_at,omitzero"`  // not delivered after this time
}

// NotificationChanged is published at each step of a notification's life.
type NotificationChanged struct {
	ID    string `json:"id"`    // of the notification
	State string `json:"state"` // shown, spoken, acknowledged or expired
}

// Asked is published when a question waits for a person's answer.
type Asked struct {
	ID   string `json:"id"`   // of the question
	Text string `json:"text"` // the question
}

// Answered is published when a question is over: by an answer, its deadline or a
// closed channel.
type Answered struct {
	ID     string `json:"id"`     // of the question
	Answer string `json:"answer"` // how it ended: answered, touched (the head: yes), allowed, denied, expired or closed
}

// TimerRang is published when a timer has reached its time.
type TimerRang struct {
	ID      string `json:"id"`                 // of the timer
	Text    string `json:"text"`               // what it is for
	OnRobot bool   `json:"on_robot,omitempty"` // the robot rings by itself, and no notification follows
}

// Fault is published when a part of the appliance fails. A fault with a session
// sets that session's state to "error"; the others are for the log and the
// dashboard.
type Fault struct {
	Part  string `json:"part"`  // the part's name: "turn", or as in GET /ready
	Cause string `json:"cause"` // text for people
}

// Missed is given to a reader that fell behind, in place of the lost events. It
// is not published and has no number.
type Missed struct {
	N uint64 `json:"n"` // at most this many events were lost
}

// Who requests a gesture, a look or an expression.
const (
	ByModel  = "model"  // the agent's answer or one of its tools
	ByMood   = "mood"   // what the agent feels
	BySkill  = "skill"  // a skill at work
	ByOwner  = "owner"  // a person, with a command, the page or Home Assistant
	ByViewer = "viewer" // a program that shows the agent
)

// Gesture is published when the agent makes a gesture. With an answer that is spoken
// it is published when the speech has come to it.
type Gesture struct {
	Name     string `json:"name"`                  // of the gesture: "wave"
	Duration int64  `json:"duration_ms,omitempty"` // milliseconds; left out for the gesture's own
	By       string `json:"by"`                    // model, mood, skill, owner or viewer
	Skill    string `json:"skill,omitempty"`       // the skill that asks for it, if one does
}

// GestureName returns the name of a gesture in a text, "wave" of " Wave". It reports false
// unless that has at most 40 lower-case letters, digits, hyphens and underscores.
func GestureName(text string) (string, bool) {
	name := strings.ToLower(strings.TrimSpace(text))
	odd := func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", r) }
	return name, name != "" && len(name) <= 40 && !strings.ContainsFunc(name, odd)
}

// LookAt is published when the agent looks somewhere else.
type LookAt struct {
	Target string `json:"target"` // user, camera, center or model
	By     string `json:"by"`     // model, mood, skill, owner or viewer
}

// Expression is published when a face is asked for that lies over the mood, and fades.
type Expression struct {
	Preset    string  `json:"preset"`    // neutral, happy, sad, surprised, confused or focused
	Intensity float64 `json:"intensity"` // from 0 to 1
	By        string  `json:"by"`        // model, mood, skill, owner or viewer
}

// Feelings are what an agent feels, each from 0 to 1.
type Feelings struct {
	Neutral     float64 `json:"neutral"`     // what the others leave of 1
	Concern     float64 `json:"concern"`     // something is wrong; decays by 0.08 a second
	Celebration float64 `json:"celebration"` // something has gone well; by 0.18 a second
	Patience    float64 `json:"patience"`    // something takes its time; by 0.035 a second
	Curiosity   float64 `json:"curiosity"`   // something is new; by 0.12 a second
	Empathy     float64 `json:"empathy"`     // somebody has a hard time; by 0.055 a second
	Uncertain   float64 `json:"uncertain"`   // it does not know; by 0.1 a second
}

// Morphs are the weights of a drawn face's morph targets, each from 0 to 1.
type Morphs struct {
	MouthSmile       float64 `json:"mouthSmile"`       // the corners of the mouth go up
	MouthOpen        float64 `json:"mouthOpen"`        // the mouth opens
	MouthFrown       float64 `json:"mouthFrown"`       // the corners go down
	MouthPressLeft   float64 `json:"mouthPressLeft"`   // the lips are pressed together, left
	MouthPressRight  float64 `json:"mouthPressRight"`  // the same, right
	JawOpen          float64 `json:"jawOpen"`          // the jaw drops
	BrowInnerUp      float64 `json:"browInnerUp"`      // the inner brows go up
	BrowOuterUpLeft  float64 `json:"browOuterUpLeft"`  // the outer brow goes up, left
	BrowOuterUpRight float64 `json:"browOuterUpRight"` // the same, right
	BrowDownLeft     float64 `json:"browDownLeft"`     // the brow goes down, left
	BrowDownRight    float64 `json:"browDownRight"`    // the same, right
	EyeSquintLeft    float64 `json:"eyeSquintLeft"`    // the eye narrows, left
	EyeSquintRight   float64 `json:"eyeSquintRight"`   // the same, right
	EyeWideLeft      float64 `json:"eyeWideLeft"`      // the eye widens, left
	EyeWideRight     float64 `json:"eyeWideRight"`     // the same, right
	EyesClosed       float64 `json:"eyesClosed"`       // both eyes close
	CheekPuff        float64 `json:"cheekPuff"`        // the cheeks puff out
	CheekSquintLeft  float64 `json:"cheekSquintLeft"`  // the cheek goes up, left
	CheekSquintRight float64 `json:"cheekSquintRight"` // the same, right
	MouthFrownLeft   float64 `json:"mouthFrownLeft"`   // one corner of the mouth goes down, left
	MouthFrownRight  float64 `json:"mouthFrownRight"`  // the same, right
	NoseSneerLeft    float64 `json:"noseSneerLeft"`    // the nose wrinkles, left
	NoseSneerRight   float64 `json:"noseSneerRight"`   // the same, right
}

// HeadPose are the angles of the head, in degrees.
type HeadPose struct {
	Tilt float64 `json:"tilt"` // to the shoulder, -25 to 25
	Lean float64 `json:"lean"` // forward, -25 to 25
	Yaw  float64 `json:"yaw"`  // -45 to 45; negative is the agent's own left
}

// Mood is published when what the agent feels has changed visibly, at most ten times a
// second. It is all there is to know of the mood; an earlier one is of no use.
type Mood struct {
	Dominant string   `json:"dominant"` // the feeling that shows: neutral, concern, celebration, patience, curiosity, empathy or uncertain
	Face     string   `json:"face"`     // the firmware's emotion for it: "happy"
	Feelings Feelings `json:"feelings"` // each from 0 to 1
	Morphs   Morphs   `json:"morphs"`   // each from 0 to 1
	Head     HeadPose `json:"head"`     // degrees
}

// Emote is published when a viewer reports something that the agent is to feel.
type Emote struct {
	Trigger string  `json:"trigger"` // the feeling: concern, celebration, patience, curiosity, empathy or uncertain
	Weight  float64 `json:"weight"`  // from 0 to 1
}

// SkillStarted is published when a skill begins its work.
type SkillStarted struct {
	Skill   string          `json:"skill"`             // its name
	Args    json.RawMessage `json:"args,omitempty"`    // an object, as the skill was given it
	Gesture string          `json:"gesture,omitempty"` // the gesture that goes with it
	By      string          `json:"by,omitempty"`      // viewer, if a program that shows the agent asks for it; left out for the agent's own
}

// SkillDone is published when a skill has done its work.
type SkillDone struct {
	Skill     string   `json:"skill"`               // its name
	Output    string   `json:"output,omitempty"`    // text for the agent
	Sentiment *float64 `json:"sentiment,omitempty"` // from -1 to 1, if the skill says
	By        string   `json:"by,omitempty"`        // viewer, if a program that shows the agent asked for it or reports it
}

// SkillFailed is published when a skill has failed.
type SkillFailed struct {
	Skill string `json:"skill"`        // its name
	Error string `json:"error"`        // text for people
	By    string `json:"by,omitempty"` // viewer, if a program that shows the agent asked for it or reports it
}

// Remembered is published when the agent has remembered something.
type Remembered struct {
	ID   string `json:"id"`             // of the entry
	Type string `json:"type"`           // user, feedback, project or reference
	Name string `json:"name"`           // of the entry; text for people
	Body string `json:"body,omitempty"` // the fact
	By   string `json:"by,omitempty"`   // viewer, if a program that shows the agent reports it; left out for all others
}

// Signed is published when the agent has signed a message with the appliance's key, or
// a viewer with another key.
type Signed struct {
	Message   string `json:"message"`      // the text that was signed
	Address   string `json:"address"`      // the public key, "ed25519:" and base64; a viewer's own has another form
	Signature string `json:"signature"`    // base64
	By        string `json:"by,omitempty"` // viewer, if a program that shows the agent reports it; left out for the agent's own
}

// LoadStarted is published when a viewer begins to load a model of the agent.
type LoadStarted struct {
	URI string `json:"uri"` // of the model
}

// LoadEnded is published when a viewer has loaded a model, or has failed to.
type LoadEnded struct {
	URI   string `json:"uri"`             // of the model
	Error string `json:"error,omitempty"` // the cause of a failure; text for people
}

// Validated is published when a viewer has examined a model.
type Validated struct {
	Errors   int `json:"errors"`   // number of them
	Warnings int `json:"warnings"` // number of them
}

// Presence is published when a viewer reports whether it is there.
type Presence struct {
	State string `json:"state"` // the viewer's word: "online"
}

// States of a command to a robot.
const (
	CommandQueued   = "queued" // the robot's channel is closed; the command waits for the next hello
	CommandDone     = "done"
	CommandRejected = "command_rejected"
)

// Command is published when a command to a robot with a closed channel is queued
// or done, and when any command is rejected.
type Command struct {
	Thing  string `json:"thing"`            // the kind of command: "say", "alert", "notify", or as Home Assistant names it
	State  string `json:"state"`            // queued, done or command_rejected
	Reason string `json:"reason,omitempty"` // why it was rejected; text for people
}

// FirmwareOffered is published when a check-in is answered with a firmware image.
type FirmwareOffered struct {
	Version string `json:"version"` // of the image
}

// FirmwareProgress is published while a robot downloads an image.
type FirmwareProgress struct {
	Version string `json:"version"` // of the image
	Bytes   int64  `json:"bytes"`   // bytes sent so far
	Size    int64  `json:"size"`    // bytes of the whole image
}

// FirmwareInstalled is published when a robot checks in with the image it was
// offered.
type FirmwareInstalled struct {
	Version string `json:"version"` // of the image
}

// FirmwareRolledBack is published when a robot has downloaded the whole image but
// checks in with the earlier one.
type FirmwareRolledBack struct {
	Version string `json:"version"` // of the image that the robot did not keep
}

// FirmwareFailed is published when a robot will not be offered the image again.
type FirmwareFailed struct {
	Version string `json:"version"`     // of the image
	Why     string `json:"why"`         // the cause; text for people
	Back    bool   `json:"rolled_back"` // it was installed, and the robot came back with the image before
}

// Recorded is published when an entry of the diary is on the disk.
type Recorded struct {
	Seq       uint64          `json:"seq"`               // of the entry
	Hash      string          `json:"hash"`              // SHA-256 of the entry, in hex
	Character string          `json:"agent"`             // id of the character that acted
	Session   string          `json:"session,omitempty"` // the session it happened in; the event itself has no session
	Type      string          `json:"type"`              // speak, remember, sign, skill-done, validate or load-end
	Payload   json.RawMessage `json:"payload"`           // an object; what it holds depends on the type
}

// Changed is published when an owner has changed something that several programs may
// show: they read it again.
type Changed struct {
	What string `json:"what"`         // robot, characters, memory, timers, firmware, settings, connections or refused (check-ins)
	ID   string `json:"id,omitempty"` // of what changed, if that has an id
}

func (RobotSeen) kind() string           { return "robot_seen" }
func (RobotAdopted) kind() string        { return "robot_adopted" }
func (RobotRenamed) kind() string        { return "robot_renamed" }
func (RobotForgotten) kind() string      { return "robot_forgotten" }
func (RobotOnline) kind() string         { return "robot_online" }
func (RobotOffline) kind() string        { return "robot_offline" }
func (RobotConnected) kind() string      { return "robot_connected" }
func (RobotDisconnected) kind() string   { return "robot_disconnected" }
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
func (Thought) kind() string             { return "thought" }
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
func (Command) kind() string             { return "command" }
func (FirmwareOffered) kind() string     { return "firmware_offered" }
func (FirmwareProgress) kind() string    { return "firmware_progress" }
func (FirmwareInstalled) kind() string   { return "firmware_installed" }
func (FirmwareRolledBack) kind() string  { return "firmware_rolled_back" }
func (FirmwareFailed) kind() string      { return "firmware_failed" }
func (Changed) kind() string             { return "changed" }
func (Recorded) kind() string            { return "recorded" }
func (Gesture) kind() string             { return "gesture" }
func (LookAt) kind() string              { return "look_at" }
func (Expression) kind() string          { return "expression" }
func (Mood) kind() string                { return "mood" }
func (Emote) kind() string               { return "emote" }
func (SkillStarted) kind() string        { return "skill_started" }
func (SkillDone) kind() string           { return "skill_done" }
func (SkillFailed) kind() string         { return "skill_failed" }
func (Remembered) kind() string          { return "remembered" }
func (Signed) kind() string              { return "signed" }
func (LoadStarted) kind() string         { return "load_started" }
func (LoadEnded) kind() string           { return "load_ended" }
func (Validated) kind() string           { return "validated" }
func (Presence) kind() string            { return "presence" }
