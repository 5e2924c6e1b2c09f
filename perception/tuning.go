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

// Hours are a part of every day, see device.Hours.
type Hours = device.Hours

// ErrTuning is wrapped by Tuning.Check.
var ErrTuning = errors.New("the behaviours cannot be set up")

// Tuning holds the settings of the behaviours. Begin with DefaultTuning, which uses the
// numbers of the forks' own servers if they have some. The tags are the configuration's
// keys, which Check also uses.
type Tuning struct {
	Quiet      QuietTuning      `yaml:"quiet"`
	Greeter    GreeterTuning    `yaml:"greeter"`
	FaceLost   FaceLostTuning   `yaml:"face_lost"`
	Sound      SoundTuning      `yaml:"sound"`
	WakeWord   WakeWordTuning   `yaml:"wake_word"`
	Identified IdentifiedTuning `yaml:"identified"`
	Purr       PurrTuning       `yaml:"purr"`
	Dance      DanceTuning      `yaml:"dance"`
	Gaze       GazeTuning       `yaml:"gaze"`
}

// QuietTuning sets when nothing speaks or moves by itself. People are still answered.
type QuietTuning struct {
	Hours Hours `yaml:"hours"` // none by default
	Sleep bool  `yaml:"sleep"` // also puts the robot into its own sleep, with camera and microphone off
}

// GreeterTuning configures greeting faces.
type GreeterTuning struct {
	On        bool          `yaml:"enabled"`
	Hello     string        `yaml:"hello"`      // for a face without a name; if empty, only known people are greeted
	Named     string        `yaml:"named"`      // for a face with a name, which replaces {name}; if empty, nobody is greeted by name
	Hours     Hours         `yaml:"hours"`      // when it greets; zero means all day
	Every     time.Duration `yaml:"every"`      // a face without a name
	EveryName time.Duration `yaml:"every_name"` // one with a name
	AfterTalk time.Duration `yaml:"after_talk"` // quiet after a talk
	// Wait is how long a greeting waits at most for the talk that the same face opens,
	// whose beginning would cut it off.
	Wait time.Duration `yaml:"wait"`
}

// FaceLostTuning configures stopping a greeting after its face has left.
type FaceLostTuning struct {
	On     bool          `yaml:"enabled"`
	Within time.Duration `yaml:"within"` // of the greeting
	Grace  time.Duration `yaml:"grace"`  // for the face to come back
}

// SoundTuning configures turning the head towards sounds.
type SoundTuning struct {
	On        bool          `yaml:"enabled"`
	Yaw       int           `yaml:"yaw"`   // degrees to either side
	Pitch     int           `yaml:"pitch"` // degrees
	Speed     int           `yaml:"speed"`
	Every     time.Duration `yaml:"every"`
	AfterTalk time.Duration `yaml:"after_talk"`
	AfterPlay time.Duration `yaml:"after_play"` // how long sounds may be the robot's own
}

// WakeWordTuning configures turning the head towards the wake word.
type WakeWordTuning struct {
	On    bool          `yaml:"enabled"`
	Yaw   int           `yaml:"yaw"` // degrees to either side
	Speed int           `yaml:"speed"`
	Hold  time.Duration `yaml:"hold"` // sounds do not turn it away
}

// IdentifiedTuning configures keeping a known face's mark lit.
type IdentifiedTuning struct {
	On    bool          `yaml:"enabled"`
	Every time.Duration `yaml:"every"`
	For   time.Duration `yaml:"for"`  // after it was last recognized
	Gone  time.Duration `yaml:"gone"` // after the face has left
}

// PurrTuning configures purring when the head is stroked.
type PurrTuning struct {
	On    bool          `yaml:"enabled"`
	Sound string        `yaml:"sound"`
	Every time.Duration `yaml:"every"`
}

// DanceTuning configures the remark after a dance.
type DanceTuning struct {
	On    bool          `yaml:"enabled"`
	Text  string        `yaml:"text"`
	After time.Duration `yaml:"after"` // the shortest dance that counts
	Every time.Duration `yaml:"every"`
}

// GazeTuning configures looking around while idle.
type GazeTuning struct {
	On        bool          `yaml:"enabled"`
	Every     time.Duration `yaml:"every"`
	Yaw       int           `yaml:"yaw"` // degrees to either side, at most
	Speed     int           `yaml:"speed"`
	AfterTalk time.Duration `yaml:"after_talk"`
	// AfterOwn is the pause after a robot has looked around by itself.
	AfterOwn time.Duration `yaml:"after_own"`
}

// DefaultTuning enables all behaviours, without quiet hours.
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

// Bounds of the tuning.
const (
	mostSaid   = 500               // bytes of a text to be said
	mostYaw    = device.MaxHeadYaw // degrees
	mostPitch  = device.FirmwareHeadPitch
	leastSpeed = 100
	mostSpeed  = 1000
	leastEvery = time.Second // the shortest interval
)

// Check returns all faults of the settings, each with its key in the configuration. It
// wraps ErrTuning.
func (t Tuning) Check() error {
	var c checker
	c.hours("quiet.hours", t.Quiet.Hours)
	c.hours("greeter.hours", t.Greeter.Hours)
	c.text("greeter.hello", t.Greeter.Hello)
	c.text("greeter.named", t.Greeter.Named)
	if named := t.Greeter.Named; named != "" && !strings.Contains(named, "{name}") {
		c.fault("greeter.named", fmt.Errorf("%q greets nobody by name; write {name} where it belongs", named))
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

// checker collects faults.
type checker struct{ faults []error }

func (c *checker) fault(key string, why error) { c.faults = append(c.faults, language.OfKey(key, why)) }

func (c *checker) text(key, s string) {
	if len(s) > mostSaid {
		c.fault(key, fmt.Errorf("it has %d bytes, more than %d", len(s), mostSaid))
	}
}

func (c *checker) hours(key string, h Hours) {
	if err := h.Err(); err != nil {
		c.fault(key, err)
	}
}

func (c *checker) every(key string, d time.Duration) {
	if d < leastEvery || d > 24*time.Hour {
		c.fault(key, fmt.Errorf("%s is not from %s to a day", d, leastEvery))
	}
}

func (c *checker) wait(key string, d time.Duration) {
	if d < 0 || d > 24*time.Hour {
		c.fault(key, fmt.Errorf("%s is not from nothing to a day", d))
	}
}

func (c *checker) head(key string, yaw, pitch, speed int) {
	if yaw < -mostYaw || yaw > mostYaw {
		c.fault(key+".yaw", fmt.Errorf("%d is more than a head turns, %d degrees", yaw, mostYaw))
	}
	if pitch < 0 || pitch > mostPitch {
		c.fault(key+".pitch", fmt.Errorf("%d is not from 0 to %d degrees", pitch, mostPitch))
	}
	if speed < leastSpeed || speed > mostSpeed {
		c.fault(key+".speed", fmt.Errorf("%d is not from %d to %d", speed, leastSpeed, mostSpeed))
	}
}

// sound checks a base name, which must not contain a folder.
func (c *checker) sound(key, s string) {
	if s == "" || len(s) > limit.Word || strings.ContainsAny(s, `/\`) || strings.HasPrefix(s, ".") {
		c.fault(key, fmt.Errorf("%.80q is no sound's base name", s))
	}
}
