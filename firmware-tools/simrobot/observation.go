package simrobot

import (
	"time"

	"perch/device/xiaozhi"
	"perch/ota/espimage"
)

// Observation is something an onlooker would notice. The set is closed: the
// types below. Options.Observe is called on the goroutine that runs the
// robot, and must not block it.
type Observation interface{ observation() }

// CheckedIn is a check-in that succeeded.
type CheckedIn struct {
	OTA  string
	Boot Bootstrap
}

// AwaitsAdoption is a robot that its owner has not adopted yet; it shows the code.
type AwaitsAdoption struct{ Code, Message string }

// Upgraded is an image installed and booted; it has yet to be confirmed.
type Upgraded struct{ Version string }

// NotUpgraded is an image that the robot could not download, or would not
// install. It goes on with what it has.
type NotUpgraded struct{ Why string }

// Fetched are assets that the robot downloaded at its start.
type Fetched struct{ Assets espimage.Assets }

// NotFetched are assets that it could not download, or cannot read.
type NotFetched struct{ Why string }

// RolledBack is a boot loader that has gone back to the image before.
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

// VolumeChanged tells the new volume, 0 to 100.
type VolumeChanged struct{ Volume int }

// HeadMoved tells where the head turns, in degrees.
type HeadMoved struct{ Yaw, Pitch, Speed int }

// Woken is a wake word, or whatever else a build says woke it.
type Woken struct{ Phrase string }

// WakeLost is a wake word that the build's fault swallows.
type WakeLost struct{ Phrase string }

// WentStale is an open channel on which nothing came for so long that the
// robot takes it for closed.
type WentStale struct{}

// Reminded is a reminder whose time has come; the robot rings by itself.
type Reminded struct {
	ID      int
	Message string
}

// Spoken is a sentence that a person begins to say to the robot.
type Spoken struct{ Text string }

// Sensed is an event that the robot sent.
type Sensed struct{ Event xiaozhi.Event }

// Transcript is what the server says it has heard.
type Transcript struct{ Text string }

// EmotionShown is an emotion, and the face this build has for it.
type EmotionShown struct{ Emotion, Emoji, Face string }

// SentenceShown is a sentence the robot shows while it speaks.
type SentenceShown struct{ Text string }

// Alerted is an alert.
type Alerted struct{ Status, Message, Emotion string }

// Stopped is the end of speech, with what was cut off by it.
type Stopped struct{ Cut int }

// MessageIgnored is a message that the firmware logs and otherwise ignores.
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
