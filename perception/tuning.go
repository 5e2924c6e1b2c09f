package perception

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"perch/device"
	"perch/language"
	"perch/limit"
)

// Hours is a part of every day, see device.Hours.
type Hours = device.Hours

// ErrTuning is wrapped by the errors of Tuning.Check.
var ErrTuning = errors.New("the behaviours cannot be set up")

// Tuning holds the settings of the behaviours. DefaultTuning returns a usable Tuning; the zero
// value is not valid. The tags are configuration keys, which Check repeats in its errors.
type Tuning struct {
	Quiet      QuietTuning      `yaml:"quiet" group:"quiet"`
	Greeter    GreeterTuning    `yaml:"greeter" group:"greeting" label:"Greeting of faces"`
	FaceLost   FaceLostTuning   `yaml:"face_lost" group:"greeting" label:"A face that leaves"`
	Sound      SoundTuning      `yaml:"sound" label:"Turning to sounds"`
	WakeWord   WakeWordTuning   `yaml:"wake_word" label:"Turning to who has said the wake word"`
	Identified IdentifiedTuning `yaml:"identified" label:"Light for a known face"`
	Purr       PurrTuning       `yaml:"purr" label:"Purring when stroked"`
	Dance      DanceTuning      `yaml:"dance" label:"After a dance"`
	Gaze       GazeTuning       `yaml:"gaze" label:"Looking around"`
}

// QuietTuning configures the quiet hours, when behaviours neither speak nor move the
// robot. The robot still replies to people.
type QuietTuning struct {
	Hours Hours `yaml:"hours" label:"Quiet hours" words:"quiet at night silent silence sleep do not disturb evening bedtime mute"` // zero means no quiet hours
	Sleep bool  `yaml:"sleep" label:"Robots sleep in quiet hours" words:"night camera microphone off"`                             // also put the firmware to sleep, with camera and microphone off
}

// GreeterTuning configures the greeting of faces.
type GreeterTuning struct {
	On        bool          `yaml:"enabled"`
	Hello     string        `yaml:"hello" label:"Words for an unknown face" words:"hello hi text say"`   // text for a face without a name; if empty, only recognized people are greeted
	Named     string        `yaml:"named" label:"Words for a known face" words:"hello hi text say name"` // text for a recognized person, with {name}; if empty, nobody is greeted by name
	Hours     Hours         `yaml:"hours" label:"Only at these hours" words:"morning evening when"`      // when to greet; zero means all day
	Every     time.Duration `yaml:"every"`                                                               // shortest interval between greetings without a name
	EveryName time.Duration `yaml:"every_name" label:"Waits before it greets a person again"`            // how long a recognized person must be absent to be greeted again
	AfterTalk time.Duration `yaml:"after_talk"`                                                          // shortest time between a conversation and a greeting
	// Wait is how long a greeting waits for the robot to open its microphone. A robot may open the
	// microphone because of the same face, which would cut off a greeting that has already begun.
	Wait time.Duration `yaml:"wait" label:"Waits for a talk to begin"`
}

// FaceLostTuning configures the end of a greeting after the greeted face has disappeared.
type FaceLostTuning struct {
	On     bool          `yaml:"enabled"`
	Within time.Duration `yaml:"within" label:"The face leaves within"` // longest time between the greeting and the disappearance
	Grace  time.Duration `yaml:"grace" label:"And is away for"`         // how long to wait for the face to come back
}

// SoundTuning configures turning the head towards sounds.
type SoundTuning struct {
	On        bool          `yaml:"enabled"`
	Yaw       int           `yaml:"yaw" unit:"°"`                                      // degrees to either side
	Pitch     int           `yaml:"pitch" unit:"°"`                                    // degrees
	Speed     int           `yaml:"speed"`                                             // in the firmware's units, 100-1000
	Every     time.Duration `yaml:"every"`                                             // shortest interval between turns
	AfterTalk time.Duration `yaml:"after_talk"`                                        // shortest time between a conversation and a turn
	AfterPlay time.Duration `yaml:"after_play" label:"Pause after a sound of its own"` // how long sounds are ignored after a behaviour has played a sound
}

// WakeWordTuning configures turning the head towards the speaker of the wake word.
type WakeWordTuning struct {
	On    bool          `yaml:"enabled"`
	Yaw   int           `yaml:"yaw" unit:"°"`                 // degrees to either side
	Speed int           `yaml:"speed"`                        // in the firmware's units, 100-1000
	Hold  time.Duration `yaml:"hold" label:"Looks there for"` // how long sounds do not turn the head away
}

// IdentifiedTuning configures keeping the mark of a recognized face lit.
type IdentifiedTuning struct {
	On    bool          `yaml:"enabled"`
	Every time.Duration `yaml:"every"`                                       // interval between refreshes
	For   time.Duration `yaml:"for" label:"Longest after it was recognized"` // how long to refresh after the person was last recognized
	Gone  time.Duration `yaml:"gone" label:"Longest after it has left"`      // how long to refresh after the face has disappeared
}

// PurrTuning configures purring when the head is stroked.
type PurrTuning struct {
	On    bool          `yaml:"enabled"`
	Sound string        `yaml:"sound" label:"Sound"` // base name of the sound's file
	Every time.Duration `yaml:"every"`               // shortest interval between purrs
}

// DanceTuning configures the remark after a dance.
type DanceTuning struct {
	On    bool          `yaml:"enabled"`
	Text  string        `yaml:"text" label:"Words" words:"say"`      // if empty, nothing is said
	After time.Duration `yaml:"after" label:"Only after a dance of"` // a shorter dance gets no remark
	Every time.Duration `yaml:"every"`                               // shortest interval between remarks
}

// GazeTuning configures looking around while idle.
type GazeTuning struct {
	On        bool          `yaml:"enabled"`
	Every     time.Duration `yaml:"every"`                                                        // interval between turns
	Yaw       int           `yaml:"yaw" unit:"°"`                                                 // largest angle to either side, in degrees
	Speed     int           `yaml:"speed"`                                                        // in the firmware's units, 100-1000
	AfterTalk time.Duration `yaml:"after_talk"`                                                   // shortest time between a conversation and a turn
	AfterOwn  time.Duration `yaml:"after_own" label:"Pause after it has looked around by itself"` // pause after the firmware has made the robot look around
}

// DefaultTuning returns a Tuning that enables all behaviours, without quiet hours. Most numbers
// are taken from the servers that are published with the firmware forks.
func DefaultTuning() Tuning {
	return Tuning{
		Greeter: GreeterTuning{
			On: true, Hello: "Hi!", Named: "Oh, it's {name}!", Hours: Hours{From: 6 * time.Hour, To: 21 * time.Hour},
			Every: 30 * time.Second, EveryName: 30 * time.Second, AfterTalk: 10 * time.Second, Wait: 200 * time.Millisecond,
		},
		FaceLost:   FaceLostTuning{On: true, Within: 12 * time.Second, Grace: 4 * time.Second},
		Sound:      SoundTuning{On: true, Yaw: 45, Speed: 250, Every: 3 * time.Second, AfterTalk: 30 * time.Second, AfterPlay: 32 * time.Second},
		WakeWord:   WakeWordTuning{On: true, Yaw: 45, Speed: 200, Hold: 3 * time.Second},
		Identified: IdentifiedTuning{On: true, Every: 3 * time.Second, For: 30 * time.Second, Gone: 2 * time.Second},
		Purr:       PurrTuning{On: true, Sound: "purr", Every: 5 * time.Second},
		Dance:      DanceTuning{On: true, Text: "That was fun!", After: 3 * time.Second, Every: time.Minute},
		Gaze:       GazeTuning{On: true, Every: 25 * time.Second, Yaw: 25, Speed: 150, AfterTalk: 30 * time.Second, AfterOwn: 5 * time.Minute},
	}
}

// Limits of the tuning.
const (
	maxTextBytes = 500                      // of a text to speak
	maxYaw       = device.MaxHeadYaw        // degrees to either side
	maxPitch     = device.FirmwareHeadPitch // degrees
	minSpeed     = 100                      // of the head, in the firmware's units
	maxSpeed     = 1000
	minInterval  = time.Second // of the settings Every and EveryName
)

// Check returns an error with all faults of the settings, each with its configuration key.
// The error wraps ErrTuning.
func (t Tuning) Check() error {
	var c checker
	c.hours("quiet.hours", t.Quiet.Hours)
	c.hours("greeter.hours", t.Greeter.Hours)
	c.text("greeter.hello", t.Greeter.Hello)
	c.text("greeter.named", t.Greeter.Named)
	if named := t.Greeter.Named; named != "" && !strings.Contains(named, "{name}") {
		c.fault("greeter.named", fmt.Errorf("%q does not contain a name; write {name} where the name belongs", named))
	}
	c.every("greeter.every", t.Greeter.Every)
	c.every("greeter.every_name", t.Greeter.EveryName)
	c.wait("greeter.after_talk", t.Greeter.AfterTalk)
	c.wait("greeter.wait", t.Greeter.Wait)
	c.wait("face_lost.within", t.FaceLost.Within)
	c.wait("face_lost.grace", t.FaceLost.Grace)
	c.head("sound", t.Sound.Yaw, t.Sound.Pitch, t.Sound.Speed)
	c.every("sound.every", t.Sound.Every)
	c.wait("sound.after_talk", t.Sound.AfterTalk)
	c.wait("sound.after_play", t.Sound.AfterPlay)
	c.head("wake_word", t.WakeWord.Yaw, 0, t.WakeWord.Speed)
	c.wait("wake_word.hold", t.WakeWord.Hold)
	c.every("identified.every", t.Identified.Every)
	c.wait("identified.for", t.Identified.For)
	c.wait("identified.gone", t.Identified.Gone)
	c.every("purr.every", t.Purr.Every)
	c.sound("purr.sound", t.Purr.Sound)
	c.text("dance.text", t.Dance.Text)
	c.wait("dance.after", t.Dance.After)
	c.every("dance.every", t.Dance.Every)
	c.head("gaze", t.Gaze.Yaw, 0, t.Gaze.Speed)
	c.every("gaze.every", t.Gaze.Every)
	c.wait("gaze.after_talk", t.Gaze.AfterTalk)
	c.wait("gaze.after_own", t.Gaze.AfterOwn)
	if t.Quiet.Sleep && t.Quiet.Hours == (Hours{}) {
		c.fault("quiet.sleep", errors.New("there are no quiet hours to sleep in; set quiet.hours, such as 22:00-07:00"))
	}
	if err := errors.Join(c.faults...); err != nil {
		return fmt.Errorf("%w: %w", ErrTuning, err)
	}
	return nil
}

// checker checks values of the configuration and collects their faults.
type checker struct{ faults []error }

// fault adds a fault of the value at key.
func (c *checker) fault(key string, err error) { c.faults = append(c.faults, language.OfKey(key, err)) }

// text checks the length of a text to speak.
func (c *checker) text(key, s string) {
	if len(s) > maxTextBytes {
		c.fault(key, fmt.Errorf("it has %d bytes, more than %d", len(s), maxTextBytes))
	}
}

// hours checks a part of every day.
func (c *checker) hours(key string, h Hours) {
	if err := h.Err(); err != nil {
		c.fault(key, err)
	}
}

// every checks the interval between two acts.
func (c *checker) every(key string, d time.Duration) {
	if d < minInterval || d > 24*time.Hour {
		c.fault(key, fmt.Errorf("%s is not from %s to a day", d, minInterval))
	}
}

// wait checks a waiting time, which may be 0.
func (c *checker) wait(key string, d time.Duration) {
	if d < 0 || d > 24*time.Hour {
		c.fault(key, fmt.Errorf("%s is not from 0s to a day", d))
	}
}

// head checks a turn of the head.
func (c *checker) head(key string, yaw, pitch, speed int) {
	if yaw < -maxYaw || yaw > maxYaw {
		c.fault(key+".yaw", fmt.Errorf("%d is out of range; a head turns up to %d degrees", yaw, maxYaw))
	}
	if pitch < 0 || pitch > maxPitch {
		c.fault(key+".pitch", fmt.Errorf("%d is not from 0 to %d degrees", pitch, maxPitch))
	}
	if speed < minSpeed || speed > maxSpeed {
		c.fault(key+".speed", fmt.Errorf("%d is not from %d to %d", speed, minSpeed, maxSpeed))
	}
}

// sound checks the base name of a sound's file.
func (c *checker) sound(key, s string) {
	if s == "" || len(s) > limit.Word || strings.ContainsAny(s, `/\`) || strings.HasPrefix(s, ".") {
		c.fault(key, fmt.Errorf("%.80q is not the base name of a sound", s))
	}
}
