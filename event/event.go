// Package event defines all events of the appliance and the bus that carries them.
// The parts of the appliance publish what has happened, and other parts and programs
// read it to display it or to react. Events never contain sound. docs/events.md lists
// every event; a test generates it from the comments of the structs in event.go.
//
// The bus is a short log that readers read at their own pace, not a channel per
// subscriber. Publish gives an event its number and time, writes it into a ring and
// returns; it never waits for a reader. Every reader receives every event in the order
// of Seq. A reader that falls a whole ring behind receives Missed with an upper bound
// of the number of lost events, and continues with the oldest event in the ring; the
// reader must then read the state again from the packages that own the state. Perceived
// and Mood have separate rings, because frequent events of sensors and feelings must not
// overwrite speech.
package event

import (
	"encoding/json"
	"strings"
	"time"

	"perch/device"
)

// Event is something that happened. Only the types of this package implement it.
type Event interface {
	kind() string
}

// Kind returns the name of an event in APIs and logs, such as "robot_online".
func Kind(e Event) string { return e.kind() }

// Envelope is an event as it was published.
type Envelope struct {
	Seq     uint64    `json:"seq"`               // number of the event since the start of the appliance, from 1
	At      time.Time `json:"at"`                // time of publication; in Go with the monotonic reading
	Robot   device.ID `json:"robot,omitempty"`   // the robot that the event is about; absent otherwise
	Session string    `json:"session,omitempty"` // the session that the event belongs to; absent otherwise
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
	Board    string `json:"board"`    // the board, as the firmware names it
	Firmware string `json:"firmware"` // the version of the firmware
	Address  string `json:"address"`  // the IP address of the robot
	New      bool   `json:"new"`      // whether the robot is new
	Waiting  bool   `json:"waiting"`  // whether the robot waits for its owner to adopt it
}

// RobotAdopted is published when a robot is adopted, by its owner or because it
// checked in during the first hour.
type RobotAdopted struct{}

// RobotRenamed is published when a robot's name changes.
type RobotRenamed struct {
	Name string `json:"name"` // the new name; empty if the owner removed the name
}

// RobotForgotten is published when a robot is removed from the registry: by its owner, because another
// client has its ID now, or because it was a stranger that was away for too long or made place for a newer one.
type RobotForgotten struct{}

// RobotOnline is published when a robot has opened its channel and has received the
// response to its hello.
type RobotOnline struct {
	Framing int `json:"framing"` // version of the binary framing: 1, 2 or 3
	// Whether the robot may stay connected without talking; a talk then begins with the first listening_started.
	Standing bool `json:"standing,omitempty"`
}

// RobotOffline is published when a robot's channel is closed. It is not published
// when another session of the same robot takes over.
type RobotOffline struct {
	Why string `json:"why"` // the cause, such as "idle" or "hang_up"; text for people
}

// RobotConnected is published when a robot has connected by MQTT. From then on it can be
// reached even while its channel is closed.
type RobotConnected struct {
	Speaks bool `json:"speaks"` // whether it can be made to speak while its channel is closed
}

// RobotDisconnected is published when a robot's MQTT connection has ended.
type RobotDisconnected struct {
	Why string `json:"why"` // the cause; text for people
}

// RobotStatus is published when a robot has reported its own status, or when its
// agent has set its lights, which a robot does not report. A field is null if the
// robot did not report it.
type RobotStatus struct {
	Volume     *int    `json:"volume"`           // percent, 0 to 100
	Brightness *int    `json:"brightness"`       // brightness of the screen; percent, 0 to 100
	Battery    *int    `json:"battery"`          // percent, 0 to 100
	Charging   *bool   `json:"charging"`         // whether the battery is being charged
	Signal     string  `json:"signal,omitempty"` // Wi-Fi signal, a word of the firmware such as "strong"
	Lights     *[3]int `json:"lights,omitempty"` // red, green and blue of the lights as the agent has set them, 0 to 255
}

// ToolsListed is published when a robot has listed all its tools.
type ToolsListed struct {
	Count int `json:"count"` // number of tools
}

// ListeningStarted is published when the microphone is open for the next
// utterance.
type ListeningStarted struct {
	Mode string `json:"mode"` // auto, manual or realtime: decides who ends the utterance
}

// Hearing is published while somebody is speaking, each time the recognizer's text has changed, if
// the recognizer has such texts. None of them is final: heard or misheard follows.
type Hearing struct {
	Text string `json:"text"` // the transcript so far
}

// Heard is published when an utterance has been recognized, or when text has arrived
// instead of speech.
type Heard struct {
	Text string `json:"text"` // the transcript
}

// Misheard is published when an utterance was speech but could not be
// recognized. The robot continues to listen.
type Misheard struct{}

// ThinkingStarted is published when a turn is handed to a brain.
type ThinkingStarted struct {
	Brain string `json:"brain"` // name of the brain in the configuration
}

// StateTold is published when an agent reports its own state, as coding agents do.
// From then on its tool calls do not change the state that the agent shows.
type StateTold struct {
	State     string `json:"state"`                // one of the agent states, such as idle, thinking or working
	SubAgents int    `json:"sub_agents,omitempty"` // number of other agents that work for it
	Agent     string `json:"agent,omitempty"`      // name of the program, such as "claude-code"
}

// States of a tool call.
const (
	ToolRunning = "running"
	ToolDone    = "done"
	ToolFailed  = "failed"
)

// ToolStatus is published when a tool call of a turn starts, changes or ends.
type ToolStatus struct {
	ID       string `json:"id"`                  // ID of the call
	Name     string `json:"name"`                // name of the tool
	Status   string `json:"status"`              // running, done or failed
	Detail   string `json:"detail,omitempty"`    // what the tool works on, such as a file, or the cause of a failure
	SubAgent bool   `json:"sub_agent,omitempty"` // whether the tool is another agent
}

// SkinStatus returns the status as the protocol for skins (programs that show the agent) spells it:
// running, completed or error.
func (t ToolStatus) SkinStatus() string {
	switch t.Status {
	case ToolDone:
		return "completed"
	case ToolFailed:
		return "error"
	}
	return "running"
}

// Emotion is published when the agent's facial expression changes.
type Emotion struct {
	Name      string  `json:"name"`                // one of the firmware's emotions, such as "happy"
	Emoji     string  `json:"emoji"`               // emoji of the emotion
	Intensity float64 `json:"intensity,omitempty"` // above 0, at most 1; left out for 1
	Tag       string  `json:"tag,omitempty"`       // the word that the model wrote; left out if it wrote an emoji
}

// SpeakingStarted is published when the first packet of speech has been sent to
// the robot.
type SpeakingStarted struct{}

// Said is published when the first packet of a sentence has been sent to the
// robot.
type Said struct {
	Text string `json:"text"`         // the sentence
	By   string `json:"by,omitempty"` // "viewer" if a program that shows the agent has reported it; left out for the agent's own speech
}

// Thought is published when the brain gives a thought that is not spoken, such as a paragraph
// of a model's reasoning or a coding agent's plan, and when a viewer reports a thought.
type Thought struct {
	Text string `json:"text"`         // the thought
	By   string `json:"by,omitempty"` // "viewer" if a program that shows the agent has reported it; left out for the agent's own thoughts
}

// SoundStarted is published when the first packet of a sound, such as a chime,
// has been sent to the robot. A sound is not speech and not a turn.
type SoundStarted struct {
	Name string `json:"name"` // name of the sound
}

// SoundEnded is published when a sound has ended: its last packet was played, or the
// sound was stopped.
type SoundEnded struct {
	Name string `json:"name"` // name of the sound
	End  string `json:"end"`  // done, cancelled or failed
}

// Music is published when music begins, pauses for speech, goes on or stops. Music is neither speech nor a turn.
type Music struct {
	Name   string `json:"name"`             // name of the music in the configuration
	State  string `json:"state"`            // playing, paused or stopped
	Reason string `json:"reason,omitempty"` // why it could not be played on; left out otherwise
}

// Values of Music.State.
const (
	MusicPlaying = "playing"
	MusicPaused  = "paused"
	MusicStopped = "stopped"
)

// Values of TurnEnded.End.
const (
	EndDone      = "done"
	EndCancelled = "cancelled"
	EndFailed    = "failed"
	EndHangUp    = "hang_up" // the robot's channel is closed after the speech
	EndSleep     = "sleep"   // like EndHangUp, and the agent shows the sleeping state
)

// Stages of a turn, whose durations TurnEnded reports.
const (
	StageEndpoint      = "endpoint"       // the silence that ends an utterance
	StageRecognize     = "recognize"      // from the end of the utterance to its transcript
	StageFirstToken    = "first_token"    // from the transcript to the brain's first output
	StageFirstSentence = "first_sentence" // from the first output to the first complete sentence
	StageFirstAudio    = "first_audio"    // from the first sentence to its first sound
	StageFirstPacket   = "first_packet"   // from the end of the utterance to the first packet sent, which is how long a person waits
	StageTools         = "tools"          // all tool calls; concurrent calls count once
)

// Stages returns all stages in the order of a turn.
func Stages() []string {
	return []string{StageEndpoint, StageRecognize, StageFirstToken, StageFirstSentence, StageFirstAudio, StageFirstPacket, StageTools}
}

// TurnEnded is published when a turn has ended: its last packet was played, it was
// cancelled, or it failed.
type TurnEnded struct {
	End    string `json:"end"`              // done, cancelled, failed, hang_up or sleep
	Reason string `json:"reason,omitempty"` // the cause of a failure; text for people
	// duration of each stage in milliseconds; the stages are endpoint, recognize, first_token, first_sentence, first_audio, first_packet, tools
	Stages map[string]int64 `json:"stages,omitempty"`
}

// Perceived is published when a robot has sensed something, or when a program
// reports a perception for the robot.
type Perceived struct {
	Name string          `json:"name"` // name of the perception, such as "face_detected"
	Data json.RawMessage `json:"data"` // the object that was reported; see perception.md
}

// Notification is published when a notification is accepted or replaces another one
// with the same ID. Without a robot and a session in the envelope, the notification is
// for all of them.
type Notification struct {
	ID        string    `json:"id"`                   // ID of the notification
	Text      string    `json:"text"`                 // the text to speak or show
	Urgency   string    `json:"urgency"`              // low, normal or high; high interrupts speech
	ActionURL string    `json:"action_url,omitempty"` // a URL to open
	Speak     bool      `json:"speak"`                // whether to speak the text, and not only show it
	ExpiresAt time.Time `json:"expires_at,omitzero"`  // when delivery is given up
}

// NotificationChanged is published when the state of a notification changes.
type NotificationChanged struct {
	ID    string `json:"id"`    // ID of the notification
	State string `json:"state"` // shown, spoken, acknowledged or expired
}

// Asked is published when a question waits for a person's answer.
type Asked struct {
	ID   string `json:"id"`   // ID of the question
	Text string `json:"text"` // the question
}

// Answered is published when a question no longer waits: it was answered, its deadline
// has passed, or the channel was closed.
type Answered struct {
	ID     string `json:"id"`     // ID of the question
	Answer string `json:"answer"` // answered, touched (a touch of the head means yes), allowed, denied, expired or closed
}

// TimerRang is published when a timer ends or an alarm rings.
type TimerRang struct {
	ID      string `json:"id"`                 // ID of the timer
	Text    string `json:"text"`               // purpose of the timer
	OnRobot bool   `json:"on_robot,omitempty"` // whether the robot rings by itself; then no notification follows
}

// Fault is published when a part of the appliance fails. A fault with a session in the
// envelope sets the state of that session to "error"; other faults are for the log and
// the dashboard.
type Fault struct {
	Part  string `json:"part"`  // name of the part, "turn" or a name in GET /ready
	Cause string `json:"cause"` // text for people
}

// Missed is received by a reader that has fallen behind, in the place of the lost
// events. It is not published, and has the number of the event before it.
type Missed struct {
	N uint64 `json:"n"` // maximum number of lost events
}

// Sources of gestures, looks and expressions.
const (
	ByModel  = "model"  // the agent's reply or one of its tools
	ByMood   = "mood"   // the agent's feelings
	BySkill  = "skill"  // a skill
	ByOwner  = "owner"  // a person, with a command, the page or Home Assistant
	ByViewer = "viewer" // a program that shows the agent
	ByRobot  = "robot"  // a face that the robot sees
)

// Gesture is published when the agent makes a gesture. A gesture in a spoken reply is
// published when the speech has reached it.
type Gesture struct {
	Name     string `json:"name"`                  // name of the gesture, such as "wave"
	Duration int64  `json:"duration_ms,omitempty"` // milliseconds; left out for the gesture's default
	By       string `json:"by"`                    // model, mood, skill, owner or viewer
	Skill    string `json:"skill,omitempty"`       // name of the skill if By is skill
}

// GestureName converts text to the name of a gesture: it trims spaces and converts letters to
// lower case. It returns false unless the name has 1 to 40 letters, digits, hyphens and underscores.
func GestureName(text string) (string, bool) {
	name := strings.ToLower(strings.TrimSpace(text))
	invalid := func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-_", r) }
	return name, name != "" && len(name) <= 40 && !strings.ContainsFunc(name, invalid)
}

// LookAt is published when the agent looks somewhere else.
type LookAt struct {
	Target string `json:"target"` // user, camera, center or model
	By     string `json:"by"`     // model, mood, skill, owner, viewer or robot (a face that it sees)
}

// Expression is published when a facial expression is requested. It is shown over the
// mood, and fades.
type Expression struct {
	Preset    string  `json:"preset"`    // neutral, happy, sad, surprised, confused or focused
	Intensity float64 `json:"intensity"` // from 0 to 1
	By        string  `json:"by"`        // model, mood, skill, owner or viewer
}

// Feelings are the strengths of an agent's feelings, each from 0 to 1.
type Feelings struct {
	Neutral     float64 `json:"neutral"`     // 1 minus the sum of the others, at least 0
	Concern     float64 `json:"concern"`     // something is wrong; decays by 0.08 per second
	Celebration float64 `json:"celebration"` // something has gone well; decays by 0.18 per second
	Patience    float64 `json:"patience"`    // something takes a long time; decays by 0.035 per second
	Curiosity   float64 `json:"curiosity"`   // something is new; decays by 0.12 per second
	Empathy     float64 `json:"empathy"`     // somebody is suffering; decays by 0.055 per second
	Uncertain   float64 `json:"uncertain"`   // the agent does not know something; decays by 0.1 per second
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
	Tilt float64 `json:"tilt"` // towards a shoulder, -25 to 25
	Lean float64 `json:"lean"` // forward, -25 to 25
	Yaw  float64 `json:"yaw"`  // -45 to 45; negative is to the agent's left
}

// Mood is published when the agent's feelings have changed visibly, at most ten times per
// second. It contains the whole mood, so earlier Mood events can be dropped.
type Mood struct {
	Dominant string   `json:"dominant"` // the feeling that is shown: neutral, concern, celebration, patience, curiosity, empathy or uncertain
	Face     string   `json:"face"`     // the firmware's emotion for the feeling, such as "happy"
	Feelings Feelings `json:"feelings"` // each from 0 to 1
	Morphs   Morphs   `json:"morphs"`   // each from 0 to 1
	Head     HeadPose `json:"head"`     // degrees
}

// Emote is published when a viewer reports something that changes the agent's feelings.
type Emote struct {
	Trigger string  `json:"trigger"` // the feeling: concern, celebration, patience, curiosity, empathy or uncertain
	Weight  float64 `json:"weight"`  // from 0 to 1
}

// SkillStarted is published when a skill starts.
type SkillStarted struct {
	Skill   string          `json:"skill"`             // name of the skill
	Args    json.RawMessage `json:"args,omitempty"`    // the skill's arguments, an object
	Gesture string          `json:"gesture,omitempty"` // name of the gesture that accompanies the skill
	By      string          `json:"by,omitempty"`      // "viewer" if a program that shows the agent has requested it; left out for the agent's own
}

// SkillDone is published when a skill has succeeded.
type SkillDone struct {
	Skill     string          `json:"skill"`               // name of the skill
	Output    string          `json:"output,omitempty"`    // text for the agent
	Sentiment *float64        `json:"sentiment,omitempty"` // from -1 to 1; left out if the skill reports none
	Data      json.RawMessage `json:"data,omitempty"`      // further data that the skill has returned, any JSON of at most 4000 bytes
	By        string          `json:"by,omitempty"`        // "viewer" if a program that shows the agent has requested or reported it
}

// SkillFailed is published when a skill has failed.
type SkillFailed struct {
	Skill string `json:"skill"`        // name of the skill
	Error string `json:"error"`        // text for people
	By    string `json:"by,omitempty"` // "viewer" if a program that shows the agent has requested or reported it
}

// Remembered is published when the agent has stored something in its memory.
type Remembered struct {
	ID   string `json:"id"`             // ID of the entry
	Type string `json:"type"`           // user, feedback, project or reference
	Name string `json:"name"`           // title of the entry; text for people
	Body string `json:"body,omitempty"` // the fact
	By   string `json:"by,omitempty"`   // "viewer" if a program that shows the agent has reported it; left out for all others
}

// Signed is published when the agent has signed a message with the appliance's key, or
// a viewer with another key.
type Signed struct {
	Message   string `json:"message"`      // the text that was signed
	Address   string `json:"address"`      // the public key: "ed25519:" and base64, or another form for a viewer's key
	Signature string `json:"signature"`    // base64
	By        string `json:"by,omitempty"` // "viewer" if a program that shows the agent has reported it; left out for the agent's own
}

// LoadStarted is published when a viewer begins to load a model of the agent.
type LoadStarted struct {
	URI string `json:"uri"` // URI of the model
}

// LoadEnded is published when a viewer has loaded a model or has failed to load it.
type LoadEnded struct {
	URI   string `json:"uri"`             // URI of the model
	Error string `json:"error,omitempty"` // the cause of a failure; text for people
}

// Validated is published when a viewer has examined a model.
type Validated struct {
	Errors   int `json:"errors"`   // number of errors
	Warnings int `json:"warnings"` // number of warnings
}

// Presence is published when a robot can be reached, when it no longer can, and when a
// viewer reports its presence.
type Presence struct {
	State string `json:"state"`        // online or offline for a robot; a word of the viewer, such as "online"
	By    string `json:"by,omitempty"` // "viewer" if a program that shows the agent has reported it; left out for a robot
}

// States of a command to a robot.
const (
	CommandQueued   = "queued" // the robot's channel is closed; the command waits for the next hello
	CommandDone     = "done"
	CommandRejected = "command_rejected"
)

// Command is published when a command for a robot with a closed channel is queued
// or executed, and when any command is rejected.
type Command struct {
	Thing  string `json:"thing"`            // kind of the command: "say", "alert", "notify" or Home Assistant's name
	State  string `json:"state"`            // queued, done or command_rejected
	Reason string `json:"reason,omitempty"` // why it was rejected; text for people
}

// States of a Speech.
const (
	SpeechWaiting  = "waiting" // the robot's channel is closed; the text waits for the next hello
	SpeechSpeaking = "speaking"
	SpeechSpoken   = "spoken"
	SpeechFailed   = "failed"
)

// Speech is published when a text that a robot was told to speak changes its state. It is not
// published for answers and notifications.
type Speech struct {
	Text   string `json:"text"`             // the text
	State  string `json:"state"`            // waiting, speaking, spoken or failed
	Reason string `json:"reason,omitempty"` // why it has failed; text for people
}

// FirmwareOffered is published when the response to a check-in offers a firmware image.
type FirmwareOffered struct {
	Version string `json:"version"` // version of the image
}

// FirmwareProgress is published while a robot downloads an image.
type FirmwareProgress struct {
	Version string `json:"version"` // version of the image
	Bytes   int64  `json:"bytes"`   // number of bytes sent
	Size    int64  `json:"size"`    // size of the image in bytes
}

// FirmwareInstalled is published when a robot checks in with the image that it was
// offered.
type FirmwareInstalled struct {
	Version string `json:"version"` // version of the image
}

// FirmwareRolledBack is published when a robot has downloaded a whole image, or had installed it, but checks
// in with another one.
type FirmwareRolledBack struct {
	Version string `json:"version"` // version of the image that was downloaded
}

// FirmwareFailed is published when a robot will not be offered an image again.
type FirmwareFailed struct {
	Version       string `json:"version"`     // version of the image
	Why           string `json:"why"`         // the cause; text for people
	WasRolledBack bool   `json:"rolled_back"` // whether the robot has installed the image and then returned to the previous one
}

// Recorded is published when an entry of the diary has reached the disk.
type Recorded struct {
	Seq       uint64          `json:"seq"`               // number of the entry
	Hash      string          `json:"hash"`              // SHA-256 of the entry, in hexadecimal
	Character string          `json:"agent"`             // ID of the character that acted
	Session   string          `json:"session,omitempty"` // session of the entry; the envelope has none
	Type      string          `json:"type"`              // speak, remember, sign, skill-done, validate or load-end
	Payload   json.RawMessage `json:"payload"`           // an object, whose fields depend on the type
}

// Changed is published when something has changed that programs may display. They should then read
// it again.
type Changed struct {
	What string `json:"what"`         // robot, characters, memory, timers, firmware, settings, voices, connections or refused (check-ins)
	ID   string `json:"id,omitempty"` // ID of what has changed, if it has one
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
func (Hearing) kind() string             { return "hearing" }
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
func (Music) kind() string               { return "music" }
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
func (Speech) kind() string              { return "speech" }
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
