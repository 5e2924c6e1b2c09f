package simrobot

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"perch/device/xiaozhi"
	"perch/ota/espimage"
)

// Observation is something that happened to the simulated robot: a value of one of the types below.
// The robot passes observations to Options.Observe, which is called on the goroutine that runs the
// robot, and must not block.
type Observation interface {
	// Line returns the log line of the observation, or the zero Line if it is not logged.
	Line() Line
}

// Line is a line of a log. Who is the actor ("robot" or "perch"), Does is the action, and Words are
// details.
type Line struct{ Who, Does, Words string }

// CheckedIn reports a successful check-in.
type CheckedIn struct {
	OTA  string
	Boot Bootstrap
}

// Connected reports a new connection to the MQTT server. The connection stays open while no
// channel is open.
type Connected struct{ Endpoint string }

// Disconnected reports that the connection to the MQTT server was lost, or could not be opened while
// the robot was idle.
type Disconnected struct{ Why string }

// AwaitsAdoption reports that the robot's owner has not adopted the robot yet, and that the robot shows
// Code and Message.
type AwaitsAdoption struct{ Code, Message string }

// Upgraded reports that a firmware image was installed and booted, but is not confirmed yet.
type Upgraded struct{ Version string }

// NotUpgraded reports that a firmware image could not be installed.
type NotUpgraded struct{ Why string }

// Fetched reports assets that the robot downloaded when it started.
type Fetched struct{ Assets espimage.Assets }

// NotFetched reports that the robot could not download or read its assets.
type NotFetched struct{ Why string }

// RolledBack reports a boot with the previous firmware image. From and To are versions.
type RolledBack struct{ From, To string }

// Welcomed reports the server's hello.
type Welcomed struct {
	Session string
	Audio   xiaozhi.AudioParams
	Latency time.Duration // since the robot's hello
}

// Entered reports a change of the robot's state.
type Entered struct{ State State }

// Listed reports that the robot has sent one page of the list of its tools.
type Listed struct {
	Tools int    // number of tools on the page
	Next  string // cursor of the next page; empty on the last page
}

// Called reports a call of a tool by the server.
type Called struct {
	Name      string
	Arguments string // JSON
	Result    string // text result; empty if Err is set
	Err       string
}

// VolumeChanged reports the new volume, 0 to 100.
type VolumeChanged struct{ Volume int }

// HeadMoved reports the new direction of the head in degrees, and the speed of the movement, which is
// the argument speed of the tool.
type HeadMoved struct{ Yaw, Pitch, Speed int }

// Woken reports a wake word, or another phrase that the firmware reports as a wake word.
type Woken struct{ Phrase string }

// WakeLost reports a wake word that the robot missed because of a fault in the firmware.
type WakeLost struct{ Phrase string }

// WentStale reports that the open channel was quiet for so long that the robot now treats it
// as closed.
type WentStale struct{}

// Reminded reports that the robot rings because a reminder is due.
type Reminded struct {
	ID      int
	Message string
}

// Spoken reports that the person starts to say a sentence to the robot.
type Spoken struct{ Text string }

// Sensed reports that the robot has sent an event.
type Sensed struct{ Event xiaozhi.Event }

// Transcript reports the server's transcript of a sentence.
type Transcript struct{ Text string }

// EmotionShown reports an emotion and an emoji from the server, and the emotion that this firmware
// shows for them.
type EmotionShown struct{ Emotion, Emoji, Face string }

// SentenceShown reports a sentence of an answer, or a subtitle of a notification, that the robot shows.
type SentenceShown struct {
	Text string
	At   time.Duration // position in the sound, for a subtitle of a notification; otherwise 0
}

// Notified reports that the idle robot has begun to download a notification.
type Notified struct{}

// NotificationHeard reports the first sound of a notification (after the popup sound), and
// the time since the notification arrived.
type NotificationHeard struct{ After time.Duration }

// NotificationCut reports that the sound of a notification is incomplete.
type NotificationCut struct{ Why string }

// NotificationOver reports that a notification was played to its end.
type NotificationOver struct{}

// Alerted reports an alert that the robot shows.
type Alerted struct{ Status, Message, Emotion string }

// Stopped reports that the robot has stopped speaking. Cut is the number of packets that were still
// queued and were dropped.
type Stopped struct{ Cut int }

// MessageIgnored reports a message that the firmware only logs.
type MessageIgnored struct{ Why string }

// TurnEnded reports that a turn is over.
type TurnEnded struct{ Turn Turn }

// HungUp reports the end of a channel. With Options.Forever it also reports that a channel could not be
// opened.
type HungUp struct {
	ByServer bool // the server closed the channel, or the connection broke
	Why      string
}

// The methods below implement Observation.

func (CheckedIn) Line() Line { return Line{} } // a check-in needs more than one line, which the caller formats
func (Notified) Line() Line  { return Line{} }
func (h NotificationHeard) Line() Line {
	return Line{"perch", "notifies", "after " + h.After.Round(time.Millisecond).String()}
}
func (h NotificationCut) Line() Line { return Line{"robot", "ends", "the notification: " + h.Why} }
func (NotificationOver) Line() Line  { return Line{"robot", "ends", "the notification"} }
func (h Connected) Line() Line       { return Line{"robot", "connects", "by MQTT to " + h.Endpoint} }
func (h Disconnected) Line() Line    { return Line{"robot", "loses", "its MQTT connection: " + h.Why} }
func (Entered) Line() Line           { return Line{} }
func (h Upgraded) Line() Line        { return Line{"robot", "runs", "version " + h.Version + " now"} }
func (h NotUpgraded) Line() Line     { return Line{"robot", "keeps", "its firmware: " + h.Why} }
func (h Fetched) Line() Line {
	return Line{"robot", "fetches", fmt.Sprintf("assets: %d files", len(h.Assets.Files))}
}
func (h NotFetched) Line() Line {
	return Line{"robot", "lacks", "assets that it could not download: " + h.Why}
}
func (h RolledBack) Line() Line { return Line{"robot", "goes back", "from " + h.From + " to " + h.To} }
func (h Listed) Line() Line     { return Line{"robot", "lists", fmt.Sprintf("%d tools", h.Tools)} }
func (h VolumeChanged) Line() Line {
	return Line{"robot", "sets", fmt.Sprintf("its volume to %d", h.Volume)}
}
func (h HeadMoved) Line() Line {
	return Line{"robot", "moves", fmt.Sprintf("its head to yaw %d, pitch %d", h.Yaw, h.Pitch)}
}
func (h Woken) Line() Line { return Line{"robot", "wakes", "by " + strconv.Quote(h.Phrase)} }
func (h WakeLost) Line() Line {
	return Line{"robot", "misses", strconv.Quote(h.Phrase) + ", a fault of this build"}
}
func (WentStale) Line() Line {
	return Line{"robot", "forgets", "its channel, quiet for more than 120 s"}
}
func (h Reminded) Line() Line { return Line{"robot", "rings", h.Message} }
func (h Spoken) Line() Line   { return Line{"robot", "says", strconv.Quote(h.Text)} }
func (h Sensed) Line() Line {
	return Line{"robot", "senses", h.Event.Name + " " + string(h.Event.Data)}
}
func (h Transcript) Line() Line    { return Line{"perch", "heard", h.Text} }
func (h SentenceShown) Line() Line { return Line{"perch", "says", h.Text} }
func (h Alerted) Line() Line {
	return Line{"perch", "alerts", h.Status + ": " + h.Message + " (" + h.Emotion + ")"}
}
func (h MessageIgnored) Line() Line { return Line{"robot", "ignores", h.Why} }

func (h AwaitsAdoption) Line() Line {
	return Line{"robot", "waits", "for its owner, and shows the code " + h.Code + " (" + h.Message + ")"}
}

func (h Welcomed) Line() Line {
	after := h.Latency.Round(100 * time.Microsecond)
	return Line{"perch", "hello", fmt.Sprintf("%d Hz, %d ms, after %v", h.Audio.SampleRate, h.Audio.FrameDuration, after)}
}

func (h Called) Line() Line {
	if h.Err != "" {
		return Line{"robot", "tool", h.Name + " " + h.Arguments + " -> error: " + h.Err}
	}
	return Line{"robot", "tool", h.Name + " " + h.Arguments + " -> " + h.Result}
}

func (h EmotionShown) Line() Line {
	words := strings.TrimSpace(h.Emoji + " " + h.Emotion)
	if h.Face != h.Emotion {
		words += " (this robot shows " + h.Face + ")"
	}
	return Line{"perch", "feels", words}
}

func (h Stopped) Line() Line {
	if h.Cut == 0 {
		return Line{}
	}
	return Line{"robot", "cuts off", fmt.Sprintf("%d packets that it had not played", h.Cut)}
}

func (h TurnEnded) Line() Line {
	if !h.Turn.Answered {
		return Line{"robot", "waited", "no answer"}
	}
	first, length := h.Turn.FirstAudio.Seconds(), h.Turn.Length.Round(100*time.Millisecond).Seconds()
	return Line{"robot", "waited", fmt.Sprintf("first sound after %.1f s, %.1f s long", first, length)}
}

func (h HungUp) Line() Line {
	if h.ByServer {
		return Line{"perch", "hangs up", ""}
	}
	return Line{"robot", "hangs up", h.Why}
}
