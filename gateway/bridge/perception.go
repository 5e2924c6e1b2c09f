package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
	sensing "perch/perception" // perception is what this package asks of it
	"perch/plain"
)

// perception takes what is sensed, and knows what was.
type perception interface {
	// Sense takes what a robot sensed, or another program for it: a name, and an
	// object. It refuses with an error with a code of its own: a name or data that
	// cannot be, or more than a robot may report in a second.
	Sense(ctx context.Context, robot device.ID, name string, data json.RawMessage) error
	// States are what is known of each robot at that time, ready for JSON, and
	// the number of the event they are true at.
	States(now time.Time) (states map[device.ID]any, seq uint64)
	// Recent are what a robot sensed last, the newest first, at most so many. It
	// is false for one of which nothing is known.
	Recent(robot device.ID, most int) ([]Sensed, bool)
}

// Senses are what robots sense, for Options.Perception: what comes in, and what is known of it.
type Senses struct {
	Intake *sensing.Intake
	Known  *sensing.States
}

// Sense implements Options.Perception.
func (s Senses) Sense(_ context.Context, robot device.ID, name string, data json.RawMessage) error {
	return s.Intake.FromProgram(string(robot), name, data)
}

// States implements Options.Perception.
func (s Senses) States(now time.Time) (states map[device.ID]any, seq uint64) {
	all, seq := s.Known.Snapshot(now)
	states = make(map[device.ID]any, len(all))
	for _, one := range all {
		one.Recent = nil // Recent returns them
		states[one.Robot] = one
	}
	return states, seq
}

// Recent implements Options.Perception.
func (s Senses) Recent(robot device.ID, most int) (recent []Sensed, known bool) {
	if !slices.Contains(s.Known.Robots(), robot) {
		return nil, false
	}
	for _, r := range slices.Backward(s.Known.Robot(robot, time.Now()).Recent) {
		if len(recent) == most {
			break
		}
		recent = append(recent, Sensed{Robot: robot, At: r.At, Name: r.Name, Data: r.Data})
	}
	return recent, true
}

// Sensed is what a robot sensed, as clients are sent it: {"name", "data",
// "device_id", "ts"}, the device in the firmware's spelling, ts in seconds
// since 1970.
type Sensed struct {
	Robot device.ID
	At    time.Time
	Name  string
	Data  json.RawMessage // an object; empty is one without anything in it
}

// MarshalJSON writes what clients are sent.
func (s Sensed) MarshalJSON() ([]byte, error) {
	if len(s.Data) == 0 {
		s.Data = json.RawMessage("{}")
	}
	return json.Marshal(struct {
		Name     string          `json:"name"`
		Data     json.RawMessage `json:"data"`
		DeviceID string          `json:"device_id"`
		TS       float64         `json:"ts"`
	}{s.Name, s.Data, s.Robot.MAC(), float64(s.At.UnixMilli()) / 1000})
}

// What an event may hold, in bytes, and how many of the latest are returned.
const mostRecent = 50

// sensation is the body of POST /api/perception/event. Its ts is the clock of
// another clock, and only has to be a number.
type sensation struct {
	Name      string          `json:"name"`
	Data      json.RawMessage `json:"data"`
	DeviceID  string          `json:"device_id"`
	SessionID string          `json:"session_id"`
	TS        *float64        `json:"ts"`
}

// read reads the body of an event.
func (s *sensation) read(body []byte) error {
	if err := httpserver.Decode(body, s); err != nil {
		return err
	}
	if s.Name == "" || len(s.Name) > limit.Word || s.Name != plain.Line(s.Name) {
		return httpserver.BadBody("name is needed, of at most 64 bytes, without control characters")
	}
	if len(s.Data) == 0 || string(s.Data) == "null" {
		s.Data = json.RawMessage("{}")
	}
	if s.Data[0] != '{' {
		return httpserver.BadBody("data is an object")
	}
	return nil
}

// perceive takes an event of another program. The robot it names need not be
// connected here, nor be one of ours: a voice server elsewhere reports of
// its own. Where none is named it is that of the talk, or the first connected.
func (d *API) perceive(ctx context.Context, body []byte) (done, error) {
	var s sensation
	if err := s.read(body); err != nil {
		return done{}, err
	}
	var id device.ID
	var err error
	if s.DeviceID = strings.TrimSpace(s.DeviceID); s.DeviceID != "" {
		id, err = d.o.Find(s.DeviceID)
	} else {
		id, err = d.inTalk(s.SessionID)
	}
	if err == nil {
		err = d.o.Perception.Sense(ctx, id, s.Name, s.Data)
	}
	return done{err == nil}, err
}

// states are what is known of every robot, or of the one that is named, by its
// id in the firmware's spelling. The feed goes on without a gap after id.
func (d *API) states(name string) (states map[string]any, id string, err error) {
	only, err := d.named(name)
	if err != nil {
		return nil, "", err
	}
	known, seq := d.o.Perception.States(d.now())
	states = map[string]any{}
	for robot, s := range known {
		if only == "" || robot == only {
			states[robot.MAC()] = s
		}
	}
	return states, d.o.Bus.ID(seq), nil
}

// named is the robot a query names, and empty where it names none.
func (d *API) named(name string) (device.ID, error) {
	if name == "" {
		return "", nil
	}
	return d.o.Find(name)
}

// recent is what a robot sensed last.
func (d *API) recent(name, limit string) ([]Sensed, error) {
	id, err := d.o.Find(name)
	if err != nil {
		return nil, err
	}
	most, err := strconv.Atoi(limit)
	if err != nil || most < 1 {
		return nil, &httpserver.Fault{Word: "bad_limit", Sentence: "limit is a number of 1 or more", HTTP: http.StatusBadRequest}
	}
	list, known := d.o.Perception.Recent(id, min(most, mostRecent))
	if !known {
		return nil, &httpserver.Fault{Word: "unknown_robot", Sentence: "nothing was sensed by a robot of that id", HTTP: http.StatusNotFound}
	}
	return append([]Sensed{}, list...), nil
}

// Dropped is how many readers of the feed were let go because they did not
// read.
func (d *API) Dropped() uint64 { return d.dropped.Load() }

// stream sends what is sensed from now on, or after the last event a client
// saw in this run of the appliance, until the client goes.
func (d *API) stream(ctx context.Context, w http.ResponseWriter, lastID, name string) error {
	only, err := d.named(name)
	if err != nil {
		return err
	}
	defer d.readers.Add(-1)
	if d.readers.Add(1) > limit.Readers {
		return &httpserver.Fault{Word: "too_many_readers", Sentence: "too many programs read this feed already; close one",
			HTTP: http.StatusServiceUnavailable}
	}
	err = httpserver.Stream(ctx, w, d.feed(lastID, only))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		d.o.Logger.Info("a reader of what is sensed is let go; it did not read", "dropped", d.dropped.Add(1))
		return nil
	case errors.Is(err, event.ErrClosed), errors.Is(err, context.Canceled):
		return nil // the ordinary ends
	}
	return err
}

// feed returns what the stream sends next: what a robot sensed, or how much the
// client has missed of it.
func (d *API) feed(lastID string, only device.ID) func(context.Context) (httpserver.Message, error) {
	r := d.o.Bus.Read()
	if seq, ok := d.o.Bus.Resumes(lastID); ok {
		r = d.o.Bus.ReadFrom(seq + 1)
	}
	return func(ctx context.Context) (httpserver.Message, error) {
		for {
			e, err := r.Next(ctx)
			if err != nil {
				return httpserver.Message{}, err
			}
			switch p := e.Event.(type) {
			case event.Perceived:
				if only == "" || e.Robot == only {
					return httpserver.Message{ID: d.o.Bus.ID(e.Seq), Event: "message", Data: Sensed{e.Robot, e.At, p.Name, p.Data}}, nil
				}
			case event.Missed:
				return httpserver.Message{ID: d.o.Bus.ID(e.Seq), Event: event.Kind(p), Data: p}, nil
			}
		}
	}
}
