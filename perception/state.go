package perception

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"perch/device"
	"perch/event"
	"perch/limit"
)

const (
	staleAfter = 300 * time.Second // after so long without a perception the robot's surroundings are unknown
	mostRecent = 50                // stored events
	samePerson = 2 * time.Second   // a face that is back within this time is the lost one
)

// State is the known state of one robot: the fold of its events. It is a value;
// Fold never modifies its argument.
type State struct {
	Robot  device.ID `json:"robot"`
	Sensed time.Time `json:"sensed,omitzero"` // the latest perception
	// Stale means that the latest perception is too old to know who is in front of the
	// robot. At sets it.
	Stale     bool      `json:"stale"`
	Online    bool      `json:"online"`            // it can be reached: its channel is open, or it is connected by MQTT
	Talking   bool      `json:"talking,omitempty"` // its channel is open
	Face      Face      `json:"face"`
	Sound     Sound     `json:"sound,omitzero"`
	Mode      string    `json:"mode,omitempty"` // as the firmware calls its state: idle, talk, story_time, security, sleep, dance
	GoodNight bool      `json:"good_night"`     // it was sent to sleep, and was not woken since
	Listening bool      `json:"listening"`
	Dancing   bool      `json:"dancing"`
	Battery   *int      `json:"battery"` // 0-100; nil is unknown
	Charging  *bool     `json:"charging"`
	Touch     Touch     `json:"touch,omitzero"`
	Head      Head      `json:"head,omitzero"`
	Recent    []Record  `json:"recent,omitempty"` // the latest, oldest first
	Woken     time.Time `json:"woken,omitzero"`   // by its wake word
	OwnGaze   time.Time `json:"own_gaze,omitzero"`

	talk      talk
	connected bool // by MQTT
	speaks    bool // also between talks
}

// Face describes the person in front of the robot.
type Face struct {
	Present    bool      `json:"present"`
	Since      time.Time `json:"since,omitzero"` // when the latest face appeared
	Lost       time.Time `json:"lost,omitzero"`
	Identity   string    `json:"identity,omitempty"`
	Identified time.Time `json:"identified,omitzero"`
}

// Sound is the latest sound with a direction.
type Sound struct {
	At        time.Time `json:"at"`
	Direction string    `json:"direction"`         // left, centre, right, as the robot sees it
	Balance   float64   `json:"balance,omitempty"` // from -1, right, to 1, left
	Energy    float64   `json:"energy,omitempty"`
}

// Touch is the latest touch of the robot's head.
type Touch struct {
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"` // the event's name
	Petting bool      `json:"petting"`
}

// Head is the head's position in degrees, after the latest turn by a behaviour.
type Head struct {
	At    time.Time `json:"at"`
	Yaw   int       `json:"yaw"` // negative is the robot's own left
	Pitch int       `json:"pitch"`
}

// Record is a stored event.
type Record struct {
	At   time.Time       `json:"at"`
	Name string          `json:"name"`
	Data json.RawMessage `json:"data,omitempty"`
}

// size estimates the size of an event as JSON, in bytes.
func (r Record) size() int { return len(r.Name) + len(r.Data) + 64 }

// size estimates the size of the events as JSON, in bytes.
func (s State) size() (n int) {
	for _, r := range s.Recent {
		n += r.size()
	}
	return n
}

// talk is the current talk, as behaviours need it. It is not stored.
type talk struct {
	session  string
	turn     bool      // a turn is under way
	person   bool      // a person takes part in it
	last     time.Time // when a person last took part in a turn
	listened time.Time // when the microphone was opened
}

// At returns the state at that time. After 300 s without a perception it is stale, and
// nobody is known to be in front of the robot.
func (s State) At(now time.Time) State {
	if s.stale(now) {
		s = s.forget()
		s.Stale = true
	}
	return s
}

func (s State) stale(now time.Time) bool {
	return s.Stale || s.Sensed.IsZero() || now.Sub(s.Sensed) >= staleAfter
}

// forget clears what is only valid while the robot reports it.
func (s State) forget() State {
	s.Face.Present, s.Dancing, s.Touch.Petting, s.Mode = false, false, false, ""
	return s
}

// Fold returns the state after one more event of the robot. It is pure: it reads no clock.
func Fold(s State, e event.Envelope) State {
	s = fold(s, e)
	if p, ok := e.Event.(event.Perceived); ok {
		latest := Record{e.At, p.Name, p.Data}
		before := s.Recent[max(0, len(s.Recent)-mostRecent+1):]
		room := limit.Question - latest.size()
		for n := len(before) - 1; n >= 0; n-- {
			if room -= before[n].size(); room < 0 {
				before = before[n+1:]
				break
			}
		}
		s.Recent = append(append(make([]Record, 0, len(before)+1), before...), latest) // never appends to the argument's array
	}
	return s
}

// fold is Fold without recording the event.
func fold(s State, e event.Envelope) State {
	s.Robot = cmp.Or(s.Robot, e.Robot)
	switch ev := e.Event.(type) {
	case event.Perceived:
		return s.perceive(ev, e.At)
	case event.RobotSeen: // it has booted and not sensed anything yet
		if ev.Waiting {
			return s // another client uses the robot's MAC as its name
		}
		s = s.forget()
		s.GoodNight = false
	case event.RobotOnline:
		s.Online, s.Talking, s.Listening = true, true, false
		s.talk = s.talk.turnEnded(e.At)
		s.talk.session = e.Session
	case event.RobotOffline:
		s.Online, s.Talking, s.Listening = s.connected, false, false
		s.talk = s.talk.turnEnded(e.At)
	case event.RobotConnected:
		s.connected, s.Online, s.speaks = true, true, ev.Speaks
	case event.RobotDisconnected:
		s.connected, s.Online, s.speaks = false, s.Talking, false
	case event.RobotStatus:
		if ev.Battery != nil {
			s.Battery = ev.Battery
		}
		if ev.Charging != nil {
			s.Charging = ev.Charging
		}
	case event.Missed: // the end of a turn may be among the missed events
		s.talk = s.talk.turnEnded(e.At)
	default:
		return s.converse(e)
	}
	return s
}

// converse applies the events of a talk.
func (s State) converse(e event.Envelope) State {
	if e.Session != s.talk.session {
		return s // another session has replaced this one
	}
	switch ev := e.Event.(type) {
	case event.ListeningStarted:
		s.Listening, s.talk.listened = true, e.At
	case event.Misheard:
		s.Listening = true
	case event.Heard:
		s.Listening, s.GoodNight = false, false
		s.talk = s.talk.with(e.At)
	case event.Asked:
		s.talk = s.talk.with(e.At)
	case event.ThinkingStarted, event.SpeakingStarted, event.Said, event.SoundStarted:
		s.Listening, s.talk.turn = false, true
	case event.SoundEnded:
		s.talk = s.talk.turnEnded(e.At)
	case event.TurnEnded:
		s.talk = s.talk.turnEnded(e.At)
		s.GoodNight = s.GoodNight || ev.End == event.EndSleep
	}
	return s
}

// with returns the talk after a person has joined its turn.
func (t talk) with(now time.Time) talk {
	t.turn, t.person, t.last = true, true, now
	return t
}

// turnEnded returns the talk after the end of a turn, if one was under way.
func (t talk) turnEnded(now time.Time) talk {
	if t.turn && t.person {
		t.last = now
	}
	t.turn, t.person = false, false
	return t
}

// talking reports whether a person talks with the robot, or did within that time.
func (s State) talking(now time.Time, after time.Duration) bool {
	return s.talk.person || !s.talk.last.IsZero() && now.Sub(s.talk.last) < after
}

// asleep reports whether the robot sleeps.
func (s State) asleep() bool { return s.GoodNight || s.Mode == modeSleep }

// perceive applies a perception.
func (s State) perceive(p event.Perceived, at time.Time) State {
	if p.Name == headTurn { // published by a behaviour
		f := field(p.Data)
		s.Head = Head{at, f.Yaw, s.Head.Pitch}
		if f.Pitch != nil { // otherwise unchanged
			s.Head.Pitch = *f.Pitch
		}
		return s
	}
	if s.stale(at) {
		s = s.forget() // what was true before so long a silence may not be true now
	}
	s.Sensed, s.Stale = at, false
	switch p.Name {
	case faceDetected:
		s.Face = s.Face.seenAt(at)
	case faceLost:
		if s.Face.Present {
			s.Face.Present, s.Face.Lost = false, at
		}
	case faceRecognized:
		if who := identity(p.Data); who != "" {
			s.Face = s.Face.seenAt(at)
			s.Face.Identity, s.Face.Identified = who, at
		}
	case soundEvent, wakeWord, wakeDetected:
		s = s.withSound(p, at)
	case petStarted, petHold:
		s.Touch, s.GoodNight = Touch{at, p.Name, true}, false
	case petEnded:
		s.Touch.Petting = false
	default:
		s = s.change(p, at)
	}
	return s
}

func (s State) withSound(p event.Perceived, at time.Time) State {
	if heard, ok := sound(p.Data); ok {
		heard.At = at
		s.Sound = heard
	}
	if p.Name != soundEvent {
		s.Woken, s.GoodNight = at, false
	}
	return s
}

// change applies a state change that the robot reports.
func (s State) change(p event.Perceived, at time.Time) State {
	switch p.Name {
	case stateChanged:
		mode := field(p.Data).State
		if checkName(mode) != nil {
			return s
		}
		s.Mode, s.Dancing = mode, mode == modeDance
	case danceStarted:
		s.Dancing = true
	case danceEnded:
		s.Dancing = false
	case chatStatus:
		s.Listening = field(p.Data).Listening
	case idleMotion:
		s.OwnGaze = at
	}
	return s
}

// seenAt returns the face after it was seen.
func (f Face) seenAt(at time.Time) Face {
	if f.Present {
		return f
	}
	if at.Sub(f.Lost) > samePerson {
		f.Identity, f.Identified = "", time.Time{}
	}
	f.Present, f.Since = true, at
	return f
}

// fields are the used fields of any event's data.
type fields struct {
	Identity  string  `json:"identity"`
	Direction string  `json:"direction"`
	Balance   float64 `json:"balance"`
	Energy    float64 `json:"energy"`
	State     string  `json:"state"`
	Listening bool    `json:"listening"`
	Yaw       int     `json:"yaw"`
	Pitch     *int    `json:"pitch"`
	By        string  `json:"by"`
}

// field decodes an event's data. A value of another type is left out.
func field(data json.RawMessage) (f fields) {
	// An error leaves out only that field.
	_ = json.Unmarshal(data, &f)
	return f
}

func sound(data json.RawMessage) (Sound, bool) {
	f := field(data)
	if f.Direction == "center" {
		f.Direction = centre
	}
	if !slices.Contains([]string{left, centre, right}, f.Direction) {
		return Sound{}, false
	}
	return Sound{Direction: f.Direction, Balance: max(-1, min(1, f.Balance)), Energy: max(0, min(math.MaxInt32, f.Energy))}, true
}

// The used states of the firmware, and directions of a sound.
const (
	modeIdle  = "idle"
	modeSleep = "sleep"
	modeDance = "dance"

	left   = "left"
	centre = "centre"
	right  = "right"
)

// identity returns the name of a recognized person, reduced to speakable words, because
// it is spoken, shown and sent to a language model.
func identity(data json.RawMessage) string {
	var name strings.Builder
	for _, word := range strings.FieldsFunc(field(data).Identity, func(r rune) bool {
		return !(unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || strings.ContainsRune("-'.", r))
	}) {
		if name.Len()+1+len(word) > limit.Word {
			break
		}
		if name.Len() > 0 {
			name.WriteByte(' ')
		}
		name.WriteString(word)
	}
	if strings.EqualFold(name.String(), "unknown") {
		return ""
	}
	return name.String()
}

// Who describes the person in front of the robot: "in front of you since 12 s:
// Ann". It is empty if no face is known to be there.
func (s State) Who(now time.Time) string {
	s = s.At(now)
	if !s.Face.Present {
		return ""
	}
	who := cmp.Or(s.Face.Identity, "somebody you do not know by name")
	return fmt.Sprintf("in front of you since %s: %s", rough(now.Sub(s.Face.Since)), who)
}

// rough formats a duration in seconds or minutes, for people.
func rough(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(max(d, 0).Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

// Senses describes for people in a few words each what a robot notices: who is in front
// of it, its last sound and touch of the last minute, and its activity. It is nil if
// nothing is known.
func (s State) Senses(now time.Time) (words []string) {
	s = s.At(now)
	if s.Stale {
		return nil
	}
	if face := s.Face; face.Present {
		words = append(words, fmt.Sprintf("%s in front of it since %s", cmp.Or(face.Identity, "a face"), rough(now.Sub(face.Since))))
	}
	recent := func(at time.Time) bool { return !at.IsZero() && now.Sub(at) < time.Minute }
	if recent(s.Sound.At) {
		whence := strings.ReplaceAll("on the "+s.Sound.Direction, "on the "+centre, "ahead")
		words = append(words, fmt.Sprintf("a sound %s %s ago", whence, rough(now.Sub(s.Sound.At))))
	}
	switch {
	case s.Touch.Petting:
		words = append(words, "stroked")
	case recent(s.Touch.At):
		words = append(words, fmt.Sprintf("touched %s ago", rough(now.Sub(s.Touch.At))))
	}
	switch {
	case s.Dancing:
		words = append(words, "dances")
	case s.asleep():
		words = append(words, "sleeps")
	}
	return words
}
