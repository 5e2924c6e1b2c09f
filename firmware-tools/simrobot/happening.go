package simrobot

import (
	"time"

	"perch/device/xiaozhi"
	"perch/ota/espimage"
)

// Happening is something an onlooker would notice. The set is closed: the
// types below. Options.Observe is called on the goroutine that runs the
// robot, and must not block it.
type Happening interface{ happening() }

// CheckedIn is a check-in that succeeded.
type CheckedIn struct {
	OTA  string
	Boot Bootstrap
}

// Waits is a robot that its owner has not adopted yet; it shows the code.
type Waits struct{ Code, Message string }

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

// Said is a sentence that a person begins to say to the robot.
type Said struct{ Text string }

// Sensed is an event that the robot sent.
type Sensed struct{ Event xiaozhi.Event }

// Heard is what the server says it has heard.
type Heard struct{ Text string }

// Felt is an emotion, and the face this build has for it.
type Felt struct{ Emotion, Emoji, Face string }

// Showed is a sentence the robot shows while it speaks.
type Showed struct{ Text string }

// Alerted is an alert.
type Alerted struct{ Status, Message, Emotion string }

// Stopped is the end of speech, with what was cut off by it.
type Stopped struct{ Cut int }

// Puzzled is a message that the firmware logs and otherwise ignores.
type Puzzled struct{ Why string }

// Turned is a turn that is over.
type Turned struct{ Turn Turn }

// HungUp is the end of a channel.
type HungUp struct {
	ByServer bool
	Why      string
}

func (CheckedIn) happening()     {}
func (Waits) happening()         {}
func (Upgraded) happening()      {}
func (NotUpgraded) happening()   {}
func (Fetched) happening()       {}
func (NotFetched) happening()    {}
func (RolledBack) happening()    {}
func (Welcomed) happening()      {}
func (Entered) happening()       {}
func (Listed) happening()        {}
func (Called) happening()        {}
func (VolumeChanged) happening() {}
func (HeadMoved) happening()     {}
func (Woken) happening()         {}
func (WakeLost) happening()      {}
func (WentStale) happening()     {}
func (Reminded) happening()      {}
func (Said) happening()          {}
func (Sensed) happening()        {}
func (Heard) happening()         {}
func (Felt) happening()          {}
func (Showed) happening()        {}
func (Alerted) happening()       {}
func (Stopped) happening()       {}
func (Puzzled) happening()       {}
func (Turned) happening()        {}
func (HungUp) happening()        {}
