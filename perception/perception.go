// Package perception handles what robots sense: it checks, timestamps, stores and reacts
// to it.
//
//	robot, program, broker -> Intake -> bus -> States      the state of each robot
//	                                       \-> Behaviours  acts -> robots
//
// Every perception enters through an [Intake]. [Fold] turns a robot's events into its
// state, and [States] owns and stores the states. [Behaviours] react. Neither Fold nor
// behaviours read a clock, so that tests can describe a whole day of a robot as a table.
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

// Names of events known to this package. Others are passed on unchanged.
const (
	faceDetected   = "face_detected"
	faceLost       = "face_lost"
	faceRecognized = "face_recognized"
	soundEvent     = "sound_event"
	wakeWord       = "wake_word"          // of a robot that detected a text
	wakeDetected   = "wake_word_detected" // of a fork's event, with a direction
	stateChanged   = "state_changed"
	danceStarted   = "dance_started"
	danceEnded     = "dance_ended"
	petStarted     = "head_pet_started"
	petEnded       = "head_pet_ended"
	petHold        = "head_pet_hold"
	chatStatus     = "chat_status"
	idleMotion     = "idle_motion"
	headTurn       = "head_turn" // published here: a behaviour has turned the head
)

// oneFace is how long a face from the camera and a face from the text that opens
// a talk count as one face: the channel opens in between.
const oneFace = 5 * time.Second

// Errors of incoming perceptions. Each is wrapped in an error with a sentence,
// a Code and a Status for HTTP.
var (
	// ErrEvent is wrapped for an invalid event.
	ErrEvent = errors.New("not an event")
	// ErrTooMany is wrapped if a robot sends more than it may.
	ErrTooMany = errors.New("too many events")
)

// refusal is an error that the sender of an event may see.
type refusal struct {
	kind   error
	code   string
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Code() string  { return r.code }
func (r *refusal) Status() int   { return r.status }
func (r *refusal) Unwrap() error { return r.kind }

func refuse(format string, a ...any) error {
	return &refusal{ErrEvent, "bad_event", 400, fmt.Sprintf(format, a...)}
}

// registry contains the known robots.
type registry interface {
	Get(id device.ID) (device.Robot, error)
	// Trusts reports whether a robot is adopted. It does not wait.
	Trusts(id device.ID) bool
}

// Intake accepts perceptions from robots, programs and brokers. Those of strangers
// are dropped, because rules, feeds and the agent act on what is published here.
// It is safe for concurrent use, and its methods never block.
type Intake struct {
	bus    *event.Bus
	robots registry
	log    *slog.Logger

	dropped atomic.Uint64

	mu      sync.Mutex
	sources map[device.ID]*source
}

// source is the recent history of one robot's events.
type source struct {
	rate     *rate.Limiter
	over     bool // the limit was exceeded; reset once the full burst is available again
	dropped  int
	face     time.Time // the latest face
	fromText bool      // the face was reported by a detected text, not by the camera's event
}

// NewIntake returns an intake that publishes on a bus.
func NewIntake(bus *event.Bus, robots registry, log *slog.Logger) *Intake {
	return &Intake{bus: bus, robots: robots, log: log, sources: map[device.ID]*source{}}
}

// FromRobot accepts an event frame of a robot's own channel. Data may be empty.
// It wraps ErrEvent and ErrTooMany.
func (in *Intake) FromRobot(id device.ID, session, name string, data json.RawMessage) error {
	return in.accept(id, session, name, data, false)
}

// Detected accepts the text that woke a robot. Forks also send words for a face and a
// hand. It wraps ErrTooMany.
func (in *Intake) Detected(id device.ID, session, text string) error {
	switch text {
	case "face":
		return in.accept(id, session, faceDetected, nil, true)
	case petHold:
		return in.accept(id, session, petHold, nil, true)
	}
	data, err := json.Marshal(map[string]string{"text": plain.Clip(text, limit.Name)})
	if err != nil {
		panic(err) // a map of strings
	}
	return in.accept(id, session, wakeWord, data, true)
}

// FromProgram accepts what another program reports for a robot, over HTTP or MQTT. It wraps
// ErrEvent, ErrTooMany and device.ErrUnknownRobot.
func (in *Intake) FromProgram(id device.ID, name string, data json.RawMessage) error {
	robot, err := in.robots.Get(id)
	if err != nil {
		return &refusal{err, "unknown_robot", 404, fmt.Sprintf("no robot %s is known here; perch robot list lists those that are", id)}
	}
	if !robot.Adopted() {
		return &refusal{ErrEvent, "not_adopted", 409, fmt.Sprintf("the robot %s is not adopted; perch robot adopt %s does that", id, id)}
	}
	return in.accept(id, "", name, data, false)
}

// Dropped returns the number of events above the limit, of all robots since the start.
func (in *Intake) Dropped() uint64 { return in.dropped.Load() }

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
	data, err := object(data)
	if err != nil {
		return err
	}
	// The lock is held while publishing, so that a robot's events keep their order.
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.source(id).isRepeat(name, time.Now(), fromText) {
		return nil
	}
	in.bus.Publish(id, session, event.Perceived{Name: name, Data: data})
	return nil
}

// admit returns an error if a robot sends too much. It logs the first one.
func (in *Intake) admit(id device.ID, now time.Time) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.source(id)
	s.over = s.over && s.rate.TokensAt(now) < eventsAtOnce
	if s.rate.AllowN(now, 1) {
		return nil
	}
	in.dropped.Add(1)
	if !s.over {
		in.log.Warn("a robot sends too many perceptions; the excess is dropped", "robot", id, "most_a_second", eventsASecond, "dropped_before",
			s.dropped)
	}
	s.over, s.dropped = true, s.dropped+1
	return &refusal{ErrTooMany, "too_many_events", 429, fmt.Sprintf("more than %d events a second of one robot; send fewer", eventsASecond)}
}

// source returns a robot's source. The caller holds the lock.
func (in *Intake) source(id device.ID) *source {
	s := in.sources[id]
	if s == nil {
		s = &source{rate: rate.NewLimiter(eventsASecond, eventsAtOnce)}
		in.sources[id] = s
	}
	return s
}

// isRepeat reports whether the camera or the text has just reported this face.
func (s *source) isRepeat(name string, now time.Time, fromText bool) bool {
	switch name {
	case faceLost:
		if s.fromText { // the camera's event of that face has arrived; the next is of another
			s.face = time.Time{}
		}
	case faceDetected:
		if !s.face.IsZero() && s.fromText != fromText && now.Sub(s.face) < oneFace {
			return true
		}
		s.face, s.fromText = now, fromText
	}
	return false
}

func checkName(name string) error {
	if name == "" || len(name) > limit.Word {
		return refuse("name: it has %d bytes; an event's name has 1 to %d", len(name), limit.Word)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.TrimSpace(name) != name {
		return refuse("name: %.80q is not of characters that can be shown, or has space around it", name)
	}
	return nil
}

// object returns data as one JSON object, on one line and in UTF-8: the firmware
// concatenates it by hand, and a truncated text would break every reader's JSON.
func object(data json.RawMessage) (json.RawMessage, error) {
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0, string(data) == "null":
		return json.RawMessage("{}"), nil
	case len(data) > limit.Data:
		return nil, refuse("data: it has %d bytes, more than %d", len(data), limit.Data)
	case data[0] != '{':
		return nil, refuse("data: it must be a JSON object")
	}
	var flat bytes.Buffer
	if err := json.Compact(&flat, bytes.ToValidUTF8(data, []byte("�"))); err != nil {
		return nil, refuse("data: %v", err)
	}
	return flat.Bytes(), nil
}

// Rate limits of one robot's events.
const (
	eventsASecond = 50
	eventsAtOnce  = 100
)
