// Package perception handles the perceptions of robots, such as faces, sounds and
// touches: it checks, timestamps and stores them, and makes the robots react to them.
//
//	robot, program, broker -> Intake -> bus -> States      the state of each robot
//	                                       \-> Behaviours  acts -> robots
//
// Every perception passes through an [Intake], except head_turn, which this package publishes
// itself. [Fold] computes a robot's state from its events, [States] stores the states, and
// [Behaviours] decide how robots react. Fold and the single behaviours do not read a clock, so a
// test can describe a robot's whole day as a table.
package perception

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"perch/device"
	"perch/event"
	"perch/limit"
	"perch/plain"
)

// Names of the events that this package interprets. Events with other names are published
// unchanged.
const (
	faceDetected   = "face_detected"
	faceLost       = "face_lost"
	faceRecognized = "face_recognized"
	soundEvent     = "sound_event"
	wakeWord       = "wake_word"          // made from a robot's "detect" message with a wake word
	wakeDetected   = "wake_word_detected" // an event frame of a firmware fork, with a direction
	stateChanged   = "state_changed"
	danceStarted   = "dance_started"
	danceEnded     = "dance_ended"
	petStarted     = "head_pet_started"
	petEnded       = "head_pet_ended"
	petHold        = "head_pet_hold"
	chatStatus     = "chat_status"
	idleMotion     = "idle_motion"
	headTurn       = "head_turn" // published by this package: a turn by a behaviour, or the position that a robot has reported
)

// sameFaceWithin is the longest time between the camera's event about a face and the "detect"
// message with the text "face" about the same face. The robot opens its channel between the two.
const sameFaceWithin = 5 * time.Second

// Errors of an Intake. Each is wrapped in an error that has a message for the sender of
// the event and the methods Code and Status for HTTP responses.
var (
	// ErrEvent is wrapped for an invalid event.
	ErrEvent = errors.New("not an event")
	// ErrTooMany is wrapped if the events of one robot exceed the rate limit.
	ErrTooMany = errors.New("too many events")
)

// refusal is an error for the sender of an event.
type refusal struct {
	kind   error  // the wrapped error, such as ErrEvent
	code   string // machine-readable, such as "bad_event"
	status int    // HTTP status
	text   string // for people
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Code() string  { return r.code }
func (r *refusal) Status() int   { return r.status }
func (r *refusal) Unwrap() error { return r.kind }

// badEvent returns a refusal that wraps ErrEvent.
func badEvent(format string, a ...any) error {
	return &refusal{ErrEvent, "bad_event", 400, fmt.Sprintf(format, a...)}
}

// registry contains the registered robots.
type registry interface {
	Get(id device.ID) (device.Robot, error)
	// Trusts reports whether a robot is adopted. It does not block.
	Trusts(id device.ID) bool
}

// Intake accepts perceptions from robots, programs and brokers, and publishes them on the
// bus. It drops the perceptions of robots that are not adopted, because rules, feeds and
// the agent act on published events. It is safe for concurrent use, and its methods never
// block.
type Intake struct {
	bus    *event.Bus
	robots registry
	log    *slog.Logger

	dropped atomic.Uint64 // number of events of all robots above the rate limit

	mu      sync.Mutex // guards sources, and is held while publishing
	sources map[device.ID]*source
}

// source is the recent history of one robot's events.
type source struct {
	rate     *rate.Limiter
	over     bool      // whether the robot exceeded the limit, and has since then not paused for long enough to be allowed a full burst
	dropped  int       // number of events above the rate limit
	face     time.Time // time of the latest face; zero after a face reported by a text was lost
	fromText bool      // whether the text of a "detect" message reported that face, not the camera's event
}

// NewIntake returns an intake that publishes on bus the perceptions of adopted robots.
func NewIntake(bus *event.Bus, robots registry, log *slog.Logger) *Intake {
	return &Intake{bus: bus, robots: robots, log: log, sources: map[device.ID]*source{}}
}

// FromRobot accepts an event frame that a robot sent on its own channel. Data may be empty.
// Errors wrap ErrEvent or ErrTooMany.
func (in *Intake) FromRobot(id device.ID, session, name string, data json.RawMessage) error {
	return in.accept(id, session, name, data, false)
}

// Detected accepts the text of a robot's "detect" message: a wake word, or "face" and
// "head_pet_hold" from firmware forks. Errors wrap ErrTooMany.
func (in *Intake) Detected(id device.ID, session, text string) error {
	switch text {
	case "face":
		return in.accept(id, session, faceDetected, nil, true)
	case petHold:
		return in.accept(id, session, petHold, nil, true)
	}
	data, err := json.Marshal(map[string]string{"text": plain.Clip(text, limit.Name)})
	if err != nil {
		panic(err) // impossible for a map of strings
	}
	return in.accept(id, session, wakeWord, data, true)
}

// FromProgram accepts a perception that another program reports for a robot, over HTTP or
// MQTT. Errors wrap ErrEvent, ErrTooMany or device.ErrUnknownRobot.
func (in *Intake) FromProgram(id device.ID, name string, data json.RawMessage) error {
	robot, err := in.robots.Get(id)
	if err != nil {
		return &refusal{err, "unknown_robot", 404, fmt.Sprintf("no robot %s is registered; perch robot list shows the registered robots", id)}
	}
	if !robot.Adopted() {
		return &refusal{ErrEvent, "not_adopted", 409, fmt.Sprintf("the robot %s is not adopted; run perch robot adopt %s", id, id)}
	}
	return in.accept(id, "", name, data, false)
}

// Dropped returns the number of events above the rate limit since the start, for all robots.
func (in *Intake) Dropped() uint64 { return in.dropped.Load() }

// accept checks an event and publishes it. fromText means that the event was made from the
// text of a "detect" message. Events of robots that are not adopted are dropped without an error.
func (in *Intake) accept(id device.ID, session, name string, data json.RawMessage, fromText bool) error {
	if !in.robots.Trusts(id) {
		return nil
	}
	if err := in.admit(id, time.Now()); err != nil {
		return err
	}
	if err := checkName(name); err != nil {
		return err
	}
	data, err := compactObject(data)
	if err != nil {
		return err
	}
	// Publishing under the lock keeps a robot's events in order.
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.source(id).isRepeat(name, time.Now(), fromText) {
		return nil
	}
	in.bus.Publish(id, session, event.Perceived{Name: name, Data: data})
	return nil
}

// admit returns an error if a robot exceeds the rate limit. After it has logged this, it logs
// nothing until the robot has paused for long enough to be allowed a full burst again.
func (in *Intake) admit(id device.ID, now time.Time) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.source(id)
	s.over = s.over && s.rate.TokensAt(now) < maxEventBurst
	if s.rate.AllowN(now, 1) {
		return nil
	}
	in.dropped.Add(1)
	if !s.over {
		in.log.Warn("a robot sends too many perceptions; the excess is dropped", "robot", id, "max_per_second", maxEventRate, "dropped_before",
			s.dropped)
	}
	s.over, s.dropped = true, s.dropped+1
	return &refusal{ErrTooMany, "too_many_events", 429, fmt.Sprintf("more than %d events a second for one robot; send fewer", maxEventRate)}
}

// source returns the history of a robot's events. The caller holds in.mu.
func (in *Intake) source(id device.ID) *source {
	s := in.sources[id]
	if s == nil {
		s = &source{rate: rate.NewLimiter(maxEventRate, maxEventBurst)}
		in.sources[id] = s
	}
	return s
}

// isRepeat reports whether an event repeats the latest face: within sameFaceWithin, the camera's
// event and the text of a "detect" message report the same face, in either order. Otherwise isRepeat
// records the face that the event reports, if any.
func (s *source) isRepeat(name string, now time.Time, fromText bool) bool {
	switch name {
	case faceLost:
		if s.fromText { // the camera's next event is for another face
			s.face = time.Time{}
		}
	case faceDetected:
		if !s.face.IsZero() && s.fromText != fromText && now.Sub(s.face) < sameFaceWithin {
			return true
		}
		s.face, s.fromText = now, fromText
	}
	return false
}

// checkName checks the name of an event. Errors wrap ErrEvent.
func checkName(name string) error {
	if name == "" || len(name) > limit.Word {
		return badEvent("name: it has %d bytes; an event's name has 1 to %d", len(name), limit.Word)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.TrimSpace(name) != name {
		return badEvent("name: %.80q contains characters that cannot be shown, or begins or ends with a space", name)
	}
	return nil
}

// compactObject returns data as a JSON object on one line, with invalid UTF-8 replaced, because
// the firmware builds its JSON by concatenation and may cut a character in half. Missing data
// become {}. Errors wrap ErrEvent.
func compactObject(data json.RawMessage) (json.RawMessage, error) {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0, string(data) == "null":
		return json.RawMessage("{}"), nil
	case len(data) > limit.Data:
		return nil, badEvent("data: it has %d bytes, more than %d", len(data), limit.Data)
	case data[0] != '{':
		return nil, badEvent("data: it must be a JSON object")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, bytes.ToValidUTF8(data, []byte("�"))); err != nil {
		return nil, badEvent("data: %v", err)
	}
	return compact.Bytes(), nil
}

// Limits of one robot's events.
const (
	maxEventRate  = 50 // events a second
	maxEventBurst = 100
)
