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
	staleAfter       = 300 * time.Second // without a perception for this long, the robot's surroundings are unknown
	maxRecent        = 50                // events in State.Recent
	samePersonWithin = 2 * time.Second   // a face that reappears within this time is the same person's
)

// State is the state of one robot, computed by Fold from the robot's events. Fold returns a
// new State and never modifies its argument.
type State struct {
	Robot  device.ID `json:"robot"`
	Sensed time.Time `json:"sensed,omitzero"` // time of the latest perception
	// Stale means that the latest perception is too old to tell who is in front of the robot; see
	// the method At.
	Stale     bool      `json:"stale"`
	Online    bool      `json:"online"`            // whether the robot's channel is open or the robot is connected by MQTT
	Talking   bool      `json:"talking,omitempty"` // whether the robot's channel is open for a talk; see event.RobotOnline
	Face      Face      `json:"face"`
	Sound     Sound     `json:"sound,omitzero"`
	Mode      string    `json:"mode,omitempty"` // the firmware's state: idle, talk, story_time, security, sleep or dance
	GoodNight bool      `json:"good_night"`     // whether the robot was sent to sleep and has not been woken since
	Listening bool      `json:"listening"`
	Dancing   bool      `json:"dancing"`
	Battery   *int      `json:"battery"`  // percent; nil if unknown
	Charging  *bool     `json:"charging"` // nil if unknown
	Touch     Touch     `json:"touch,omitzero"`
	Head      Head      `json:"head,omitzero"`
	Recent    []Record  `json:"recent,omitempty"`  // the latest perceptions, oldest first
	Woken     time.Time `json:"woken,omitzero"`    // when the wake word was last detected
	OwnGaze   time.Time `json:"own_gaze,omitzero"` // when the firmware last made the robot look around

	conversation conversation
	connected    bool // whether the robot is connected by MQTT
	speaks       bool // whether the robot can speak while its channel is closed
}

// Face describes the person in front of the robot.
type Face struct {
	Present    bool      `json:"present"`
	Since      time.Time `json:"since,omitzero"`      // when the latest face appeared
	Lost       time.Time `json:"lost,omitzero"`       // when a face last disappeared
	Identity   string    `json:"identity,omitempty"`  // name of the recognized person; "" if unknown
	Identified time.Time `json:"identified,omitzero"` // when the person was last recognized
}

// Sound is the latest sound with a direction.
type Sound struct {
	At        time.Time `json:"at"`
	Direction string    `json:"direction"`         // left, centre or right, from the robot's point of view
	Balance   float64   `json:"balance,omitempty"` // from -1 (right) to 1 (left)
	Energy    float64   `json:"energy,omitempty"`  // loudness in the firmware's units
}

// Touch is the latest touch of the robot's head.
type Touch struct {
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"`    // name of the event
	Petting bool      `json:"petting"` // whether the touch has not ended yet
}

// Head is the latest known position of the head: a turn by a behaviour, a report of the robot, or
// the arguments of a tool call. Angles are in degrees.
type Head struct {
	At    time.Time `json:"at"`
	Yaw   int       `json:"yaw"` // negative: to the robot's left
	Pitch int       `json:"pitch"`
}

// setAngles sets the angles to the arguments yaw and pitch of a tool call, limited to the head's range. It
// ignores an argument that is not a number.
func (h *Head) setAngles(yaw, pitch any) {
	set := func(angle *int, argument any, lower, upper float64) {
		switch a := argument.(type) {
		case int:
			*angle = int(min(max(float64(a), lower), upper))
		case float64:
			*angle = int(min(max(a, lower), upper))
		}
	}
	set(&h.Yaw, yaw, -device.MaxHeadYaw, device.MaxHeadYaw)
	set(&h.Pitch, pitch, 0, device.FirmwareHeadPitch)
}

// Record is a perception in State.Recent.
type Record struct {
	At   time.Time       `json:"at"`
	Name string          `json:"name"`
	Data json.RawMessage `json:"data,omitempty"`
}

// size estimates the size of the record as JSON, in bytes: the texts, and 64 bytes for the time, the
// keys and the punctuation.
func (r Record) size() int { return len(r.Name) + len(r.Data) + 64 }

// size estimates the size of s.Recent as JSON, in bytes.
func (s State) size() (n int) {
	for _, r := range s.Recent {
		n += r.size()
	}
	return n
}

// conversation holds what behaviours need to know about the current conversation. It is
// not stored.
type conversation struct {
	session  string
	turn     bool      // whether a turn is under way
	person   bool      // whether a person takes part in the turn under way
	last     time.Time // when a person last took part in a turn
	listened time.Time // when the microphone was last opened
}

// At returns the state at the time now. After 300 s without a perception the state is stale: no face
// is present, and what the robot does is unknown.
func (s State) At(now time.Time) State {
	if s.isStale(now) {
		s = s.forgetSurroundings()
		s.Stale = true
	}
	return s
}

// isStale reports whether the state is stale at the time now.
func (s State) isStale(now time.Time) bool {
	return s.Stale || s.Sensed.IsZero() || now.Sub(s.Sensed) >= staleAfter
}

// forgetSurroundings clears the fields that are true only while the robot keeps reporting
// them.
func (s State) forgetSurroundings() State {
	s.Face.Present, s.Dancing, s.Touch.Petting, s.Mode = false, false, false, ""
	return s
}

// Fold returns the state after one more event of the robot. It adds a perception to Recent, and drops
// old perceptions so that Recent has at most 50 perceptions and limit.Question bytes. It reads no clock.
func Fold(s State, e event.Envelope) State {
	s = fold(s, e)
	if p, ok := e.Event.(event.Perceived); ok {
		latest := Record{e.At, p.Name, p.Data}
		before := s.Recent[max(0, len(s.Recent)-maxRecent+1):]
		room := limit.Question - latest.size()
		for n := len(before) - 1; n >= 0; n-- {
			if room -= before[n].size(); room < 0 {
				before = before[n+1:]
				break
			}
		}
		s.Recent = slices.Concat(before, []Record{latest}) // a new array, since the caller may still use the old one
	}
	return s
}

// fold is like Fold, but does not add perceptions to State.Recent.
func fold(s State, e event.Envelope) State {
	s.Robot = cmp.Or(s.Robot, e.Robot)
	switch ev := e.Event.(type) {
	case event.Perceived:
		return s.foldPerception(ev, e.At)
	case event.RobotSeen: // the robot has booted and not sensed anything yet
		if ev.Waiting {
			return s // the event is about another machine that uses the MAC address of this robot
		}
		s = s.forgetSurroundings()
		s.GoodNight = false
	case event.RobotOnline:
		s.Online, s.Talking, s.Listening, s.speaks = true, !ev.Standing, false, s.speaks || ev.Standing
		s.conversation = s.conversation.turnEnded(e.At)
		s.conversation.session = e.Session
	case event.RobotOffline:
		s.Online, s.Talking, s.Listening, s.speaks = s.connected, false, false, s.speaks && s.connected
		s.conversation = s.conversation.turnEnded(e.At)
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
		s.conversation = s.conversation.turnEnded(e.At)
	default:
		return s.foldConversation(e)
	}
	return s
}

// foldConversation applies an event of a conversation.
func (s State) foldConversation(e event.Envelope) State {
	if e.Session != s.conversation.session {
		return s // the event is from an earlier session, which another session has replaced
	}
	switch ev := e.Event.(type) {
	case event.ListeningStarted:
		s.Talking, s.Listening, s.conversation.listened = true, true, e.At
	case event.Misheard:
		s.Listening = true
	case event.Heard:
		s.Listening, s.GoodNight = false, false
		s.conversation = s.conversation.withPerson(e.At)
	case event.Asked:
		s.conversation = s.conversation.withPerson(e.At)
	case event.ThinkingStarted, event.SpeakingStarted, event.Said, event.SoundStarted:
		s.Listening, s.conversation.turn = false, true
	case event.SoundEnded:
		s.conversation = s.conversation.turnEnded(e.At)
	case event.TurnEnded:
		s.conversation = s.conversation.turnEnded(e.At)
		s.GoodNight = s.GoodNight || ev.End == event.EndSleep
	}
	return s
}

// withPerson returns the conversation after a person has joined the turn under way or has
// begun one.
func (c conversation) withPerson(now time.Time) conversation {
	c.turn, c.person, c.last = true, true, now
	return c
}

// turnEnded returns the conversation without a turn under way.
func (c conversation) turnEnded(now time.Time) conversation {
	if c.turn && c.person {
		c.last = now
	}
	c.turn, c.person = false, false
	return c
}

// inConversation reports whether a person takes part in the turn under way, or has last taken part in
// a turn less than within ago.
func (s State) inConversation(now time.Time, within time.Duration) bool {
	return s.conversation.person || !s.conversation.last.IsZero() && now.Sub(s.conversation.last) < within
}

// isAsleep reports whether the robot sleeps.
func (s State) isAsleep() bool { return s.GoodNight || s.Mode == modeSleep }

// foldPerception applies a perception.
func (s State) foldPerception(p event.Perceived, at time.Time) State {
	if p.Name == headTurn { // published by a behaviour
		f := decodeFields(p.Data)
		s.Head = Head{at, f.Yaw, s.Head.Pitch}
		if f.Pitch != nil {
			s.Head.Pitch = *f.Pitch
		}
		return s
	}
	if s.isStale(at) {
		s = s.forgetSurroundings()
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
		if who := parseIdentity(p.Data); who != "" {
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
		s = s.foldActivity(p, at)
	}
	return s
}

// withSound applies a sound or a wake word.
func (s State) withSound(p event.Perceived, at time.Time) State {
	if heard, ok := parseSound(p.Data); ok {
		heard.At = at
		s.Sound = heard
	}
	if p.Name != soundEvent {
		s.Woken, s.GoodNight = at, false
	}
	return s
}

// foldActivity applies an event that reports the robot's own activity.
func (s State) foldActivity(p event.Perceived, at time.Time) State {
	switch p.Name {
	case stateChanged:
		mode := decodeFields(p.Data).State
		if checkName(mode) != nil {
			return s
		}
		s.Mode, s.Dancing = mode, mode == modeDance
	case danceStarted:
		s.Dancing = true
	case danceEnded:
		s.Dancing = false
	case chatStatus:
		s.Listening = decodeFields(p.Data).Listening
	case idleMotion:
		s.OwnGaze = at
	}
	return s
}

// seenAt returns the face after a face was seen at the time at.
func (f Face) seenAt(at time.Time) Face {
	if f.Present {
		return f
	}
	if at.Sub(f.Lost) > samePersonWithin {
		f.Identity, f.Identified = "", time.Time{}
	}
	f.Present, f.Since = true, at
	return f
}

// fields are the fields that this package reads from the data of perceptions. A perception has
// only some of them, depending on its name.
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

// decodeFields decodes the data of a perception. A field with a value of the wrong type
// remains zero.
func decodeFields(data json.RawMessage) (f fields) {
	_ = json.Unmarshal(data, &f) // a type error does not prevent the decoding of the other fields
	return f
}

// parseSound decodes the sound of a perception. ok is false if the direction is missing or
// unknown.
func parseSound(data json.RawMessage) (s Sound, ok bool) {
	f := decodeFields(data)
	if f.Direction == "center" {
		f.Direction = centre
	}
	if !slices.Contains([]string{left, centre, right}, f.Direction) {
		return Sound{}, false
	}
	return Sound{Direction: f.Direction, Balance: max(-1, min(1, f.Balance)), Energy: max(0, min(math.MaxInt32, f.Energy))}, true
}

// Values of State.Mode and Sound.Direction.
const (
	modeIdle  = "idle"
	modeSleep = "sleep"
	modeDance = "dance"

	left   = "left"
	centre = "centre"
	right  = "right"
)

// parseIdentity returns the name of a recognized person, or "" if the person is unknown.
// The name is reduced to words of letters, digits, hyphens, apostrophes and dots, because it
// is spoken, shown and sent to a language model.
func parseIdentity(data json.RawMessage) string {
	var name strings.Builder
	for _, word := range strings.FieldsFunc(decodeFields(data).Identity, func(r rune) bool {
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

// Who describes the person in front of the robot, such as "in front of you since 12 s:
// Ann". It returns "" if no face is present.
func (s State) Who(now time.Time) string {
	s = s.At(now)
	if !s.Face.Present {
		return ""
	}
	name := cmp.Or(s.Face.Identity, "somebody you do not know by name")
	return fmt.Sprintf("in front of you since %s: %s", formatRoughly(now.Sub(s.Face.Since)), name)
}

// formatRoughly formats a duration in whole seconds or minutes.
func formatRoughly(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(max(d, 0).Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

// Senses describes the robot's present perceptions for people, in a few words each: the
// person in front of the robot, the latest sound and touch within a minute, and the robot's
// activity. Senses returns nil if the state is stale.
func (s State) Senses(now time.Time) (words []string) {
	s = s.At(now)
	if s.Stale {
		return nil
	}
	if face := s.Face; face.Present {
		words = append(words, fmt.Sprintf("%s in front of it since %s", cmp.Or(face.Identity, "a face"), formatRoughly(now.Sub(face.Since))))
	}
	recent := func(at time.Time) bool { return !at.IsZero() && now.Sub(at) < time.Minute }
	if recent(s.Sound.At) {
		side := "on the " + s.Sound.Direction
		if s.Sound.Direction == centre {
			side = "ahead"
		}
		words = append(words, fmt.Sprintf("a sound %s %s ago", side, formatRoughly(now.Sub(s.Sound.At))))
	}
	switch {
	case s.Touch.Petting:
		words = append(words, "stroked")
	case recent(s.Touch.At):
		words = append(words, fmt.Sprintf("touched %s ago", formatRoughly(now.Sub(s.Touch.At))))
	}
	switch {
	case s.Dancing:
		words = append(words, "dances")
	case s.isAsleep():
		words = append(words, "sleeps")
	}
	return words
}
