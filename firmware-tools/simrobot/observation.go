package simrobot

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"perch/device/xiaozhi"
	"perch/ota/espimage"
)

// Observation is an event that an observer of the robot would notice. The set is
// closed: the types below. Options.Observe is called on the goroutine that runs the
// robot, and must not block it.
type Observation interface {
	// Line returns the observation in words, or zero if a log leaves it out.
	Line() Line
}

// Line is an observation in words, for a log.
type Line struct{ Who, Does, Words string }

// CheckedIn is a check-in that succeeded.
type CheckedIn struct {
	OTA  string
	Boot Bootstrap
}

// Connected is an MQTT connection, which lasts between talks.
type Connected struct{ Endpoint string }

// Disconnected is the loss of that connection.
type Disconnected struct{ Why string }

// AwaitsAdoption is a robot that its owner has not adopted yet; it shows the code.
type AwaitsAdoption struct{ Code, Message string }

// Upgraded is an image that was installed and booted, but not confirmed yet.
type Upgraded struct{ Version string }

// NotUpgraded is an image that was refused or failed. The robot keeps its firmware.
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
	Next  string // cursor of the next page; empty on the last
}

// Called is a tool the server called.
type Called struct {
	Name      string
	Arguments string // JSON
	Result    string // its text; empty if Err is set
	Err       string
}

// VolumeChanged is the new volume, 0 to 100.
type VolumeChanged struct{ Volume int }

// HeadMoved is the new direction of the head, in degrees.
type HeadMoved struct{ Yaw, Pitch, Speed int }

// Woken is a wake word, or another reason to wake that a build reports.
type Woken struct{ Phrase string }

// WakeLost is a wake word that is lost by a fault of the build.
type WakeLost struct{ Phrase string }

// WentStale is an open channel that was quiet for so long that the robot treats it as closed.
type WentStale struct{}

// Reminded is a reminder that is due: the robot rings.
type Reminded struct {
	ID      int
	Message string
}

// Spoken is a sentence that the person starts to say to the robot.
type Spoken struct{ Text string }

// Sensed is an event that the robot sent.
type Sensed struct{ Event xiaozhi.Event }

// Transcript is the server's transcript of a sentence.
type Transcript struct{ Text string }

// EmotionShown is an emotion, and the build's face for it.
type EmotionShown struct{ Emotion, Emoji, Face string }

// SentenceShown is a sentence the robot shows while it speaks.
type SentenceShown struct {
	Text string
	At   time.Duration // of the stream, for a subtitle of a notification
}

// Notified is a notification that an idle robot has begun to fetch.
type Notified struct{}

// NotificationHeard is its first sound, after the popup sound.
type NotificationHeard struct{ After time.Duration }

// NotificationCut is a notification with incomplete sound.
type NotificationCut struct{ Why string }

// NotificationOver is a notification that was played to its end.
type NotificationOver struct{}

// Alerted is an alert.
type Alerted struct{ Status, Message, Emotion string }

// Stopped is the end of speech, with the number of packets that were cut off.
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

func (CheckedIn) Line() Line { return Line{} } // the log has its own lines for it
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
	return Line{"robot", "lacks", "the assets that it was to fetch: " + h.Why}
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
