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
	"perch/plain"
)

// Sensed is a perception event of a robot. In JSON it has the keys name, data, device_id (the MAC address as the firmware
// spells it) and ts (the Unix time in seconds).
type Sensed struct {
	Robot device.ID
	At    time.Time
	Name  string
	Data  json.RawMessage // an object; nil is encoded as {}
}

// MarshalJSON implements json.Marshaler.
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

// maxRecent is the maximum number of events that recent returns.
const maxRecent = 50

// sensation is the body of POST /api/perception/event. TS is ignored, because it is the time of another machine's clock.
type sensation struct {
	Name      string          `json:"name"`
	Data      json.RawMessage `json:"data"`
	DeviceID  string          `json:"device_id"`
	SessionID string          `json:"session_id"`
	TS        *float64        `json:"ts"`
}

// read decodes and checks the body of a request.
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
		return httpserver.BadBody("data must be an object")
	}
	return nil
}

// perceive accepts a perception event from another program. The robot need not be connected to this appliance, because
// other voice servers report the events of their robots too. If the body names no robot, the event is for the robot of
// the session, or for the first connected robot if the session has no known robot.
func (a *API) perceive(_ context.Context, body []byte) (done, error) {
	var s sensation
	if err := s.read(body); err != nil {
		return done{}, err
	}
	var id device.ID
	var err error
	if s.DeviceID = strings.TrimSpace(s.DeviceID); s.DeviceID != "" {
		id, err = a.o.Find(s.DeviceID)
	} else {
		id, err = a.sessionRobot(s.SessionID)
	}
	if err == nil {
		err = a.o.Intake.FromProgram(id, s.Name, s.Data)
	}
	return done{err == nil}, err
}

// states returns the perception state of the named robot, or of all robots if name is empty. The key is the MAC address
// as the firmware spells it. id is the ID of the latest event that the states include, so that the feed can continue
// with the next event.
func (a *API) states(name string) (states map[string]any, id string, err error) {
	only, err := a.findRobot(name)
	if err != nil {
		return nil, "", err
	}
	snapshot, seq := a.o.Senses.Snapshot(a.now())
	states = map[string]any{}
	for _, s := range snapshot {
		if only == "" || s.Robot == only {
			s.Recent = nil // returned only by recent
			states[s.Robot.MAC()] = s
		}
	}
	return states, a.o.Bus.ID(seq), nil
}

// findRobot returns the ID of the robot with a MAC address or a name, or "" if name is empty.
func (a *API) findRobot(name string) (device.ID, error) {
	if name == "" {
		return "", nil
	}
	return a.o.Find(name)
}

// recent returns the latest events of a robot, the newest first. limit is their maximum number in decimal digits; more
// than maxRecent are never returned.
func (a *API) recent(name, limit string) ([]Sensed, error) {
	id, err := a.o.Find(name)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(limit)
	if err != nil || n < 1 {
		return nil, &httpserver.Fault{Word: "bad_limit", Sentence: "limit must be a number of at least 1", HTTP: http.StatusBadRequest}
	}
	if !slices.Contains(a.o.Senses.Robots(), id) {
		return nil, &httpserver.Fault{Word: "unknown_robot", Sentence: "there are no events of a robot with this ID", HTTP: http.StatusNotFound}
	}
	list := []Sensed{}
	for _, r := range slices.Backward(a.o.Senses.Robot(id, a.now()).Recent) {
		if len(list) < min(n, maxRecent) {
			list = append(list, Sensed{id, r.At, r.Name, r.Data})
		}
	}
	return list, nil
}

// Dropped returns how many programs were disconnected because they did not read the feed.
func (a *API) Dropped() uint64 { return a.dropped.Load() }

// stream sends perception events until the client disconnects. If lastID is the ID of an event since the start of the
// appliance, the stream begins with the next event, and otherwise with new events. If name is not empty, stream sends only
// the events of that robot.
func (a *API) stream(ctx context.Context, w http.ResponseWriter, lastID, name string) error {
	only, err := a.findRobot(name)
	if err != nil {
		return err
	}
	defer a.readers.Add(-1)
	if a.readers.Add(1) > limit.Readers {
		return &httpserver.Fault{Word: "too_many_readers", Sentence: "too many programs read this feed already; close one",
			HTTP: http.StatusServiceUnavailable}
	}
	err = httpserver.Stream(ctx, w, a.feed(lastID, only))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		a.o.Logger.Info("a client of the perception feed was disconnected, because it did not read", "dropped", a.dropped.Add(1))
		return nil
	case errors.Is(err, event.ErrClosed), errors.Is(err, context.Canceled):
		return nil // a normal end of the stream
	}
	return err
}

// feed returns a function that waits for the next message of a stream and returns it. The message is a perception event,
// or the number of events that the client has missed.
func (a *API) feed(lastID string, only device.ID) func(context.Context) (httpserver.Message, error) {
	r := a.o.Bus.Read()
	if seq, ok := a.o.Bus.ParseID(lastID); ok {
		r = a.o.Bus.ReadFrom(seq + 1)
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
					return httpserver.Message{ID: a.o.Bus.ID(e.Seq), Event: "message", Data: Sensed{e.Robot, e.At, p.Name, p.Data}}, nil
				}
			case event.Missed:
				return httpserver.Message{ID: a.o.Bus.ID(e.Seq), Event: event.Kind(p), Data: p}, nil
			}
		}
	}
}
