package simrobot

import (
	"time"

	"perch/device/xiaozhi"
	"perch/ota/espimage"
)

// Observation is an event that an observer of the robot would notice. The set is
// closed: the types below. Options.Observe is called on the goroutine that runs the
// robot, and must not block it.
type Observation interface{ observation() }

// CheckedIn is a check-in that succeeded.
type CheckedIn struct {
	OTA  string
	Boot Bootstrap
}

// AwaitsAdoption is a robot that its owner has not adopted yet; it shows the code.
type AwaitsAdoption struct{ Code, Message string }

// Upgraded is an image that was installed and booted, but not confirmed yet.
type Upgraded struct{ Version string }

// NotUpgraded is an image that failed or was refused. The robot keeps its firmware.
type NotUpgraded struct{ Why string }

// Fetched are assets that the robot downloaded at its start.
type Fetched struct{ Assets espimage.Assets }

// NotFetched are assets that the robot could not download or read.
type NotFetched struct{ Why string }

// RolledBack is a boot with the previous image.
type RolledBack struct{ From, To string }

// Welcomed is the server's hello.
type Welcomed struct {
	Session string
	Audio   xiaozhi.AudioParams
	Latency time.Duration // since the robot's hello
}

// Entered is a new state.
type Entered struct{ State State }

// Listed is one page of the list of tools, as the robot sent it.
type Listed struct {
	Tools int
	Next  string // where the next page begins; empty on the last
}

// Called is a tool the server called.
type Called struct {
	Name      string
	Arguments string // JSON
	Result    string // its text; empty where Err is set
	Err       string
}

// VolumeChanged is the new volume, 0 to 100.
type VolumeChanged struct{ Volume int }

// HeadMoved is the new direction of the head, in degrees.
type HeadMoved struct{ Yaw, Pitch, Speed int }

// Woken is a wake word, or another cause that a build reports.
type Woken struct{ Phrase string }

// WakeLost is a wake word that a fault of the build loses.
type WakeLost struct{ Phrase string }

// WentStale is an open channel that the robot takes for closed after a long quiet.
type WentStale struct{}

// Reminded is a reminder that is due; the robot rings by itself.
type Reminded struct {
	ID      int
	Message string
}

// Spoken is a sentence that a person begins to say to the robot.
type Spoken struct{ Text string }

// Sensed is an event that the robot sent.
type Sensed struct{ Event xiaozhi.Event }

// Transcript is the server's transcript of a sentence.
type Transcript struct{ Text string }

// EmotionShown is an emotion, and the build's face for it.
type EmotionShown struct{ Emotion, Emoji, Face string }

// SentenceShown is a sentence the robot shows while it speaks.
type SentenceShown struct{ Text string }

// Alerted is an alert.
type Alerted struct{ Status, Message, Emotion string }

// Stopped is the end of speech, with the number of packets that it cut off.
type Stopped struct{ Cut int }

// MessageIgnored is a message that the firmware only logs.
type MessageIgnored struct{ Why string }

// TurnEnded is a turn that is over.
type TurnEnded struct{ Turn Turn }

// HungUp is the end of a channel.
type HungUp struct {
	ByServer bool
	Why      string
}

func (CheckedIn) observation()      {}
func (AwaitsAdoption) observation() {}
func (Upgraded) observation()       {}
func (NotUpgraded) observation()    {}
func (Fetched) observation()        {}
func (NotFetched) observation()     {}
func (RolledBack) observation()     {}
func (Welcomed) observation()       {}
func (Entered) observation()        {}
func (Listed) observation()         {}
func (Called) observation()         {}
func (VolumeChanged) observation()  {}
func (HeadMoved) observation()      {}
func (Woken) observation()          {}
func (WakeLost) observation()       {}
func (WentStale) observation()      {}
func (Reminded) observation()       {}
func (Spoken) observation()         {}
func (Sensed) observation()         {}
func (Transcript) observation()     {}
func (EmotionShown) observation()   {}
func (SentenceShown) observation()  {}
func (Alerted) observation()        {}
func (Stopped) observation()        {}
func (MessageIgnored) observation() {}
func (TurnEnded) observation()      {}
func (HungUp) observation()         {}
