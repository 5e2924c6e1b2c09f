package perception

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/event"
	"perch/limit"
	"perch/must"
)

// stranger is a registered robot that is not adopted.
const stranger = device.ID("0200000000ff")

// nobody is a robot that is not registered.
const nobody = device.ID("0200000000fe")

// robotsHere is a registry in which all robots are adopted, except stranger and nobody.
type robotsHere struct{}

func (robotsHere) Get(id device.ID) (device.Robot, error) {
	if id == stranger {
		return device.Robot{ID: id, Bound: true}, nil
	}
	if id == nobody {
		return device.Robot{}, fmt.Errorf("%w: %s", device.ErrUnknownRobot, id)
	}
	return device.Robot{ID: id, Bound: true, Named: true}, nil
}

func (r robotsHere) Trusts(id device.ID) bool {
	robot, err := r.Get(id)
	return err == nil && robot.Adopted()
}

// desk is an intake with its bus, a reader of the bus, and the log.
type desk struct {
	*Intake
	bus    *event.Bus
	reader *event.Reader
	log    *bytes.Buffer
}

func newDesk(t *testing.T) *desk {
	bus := event.NewBus()
	t.Cleanup(bus.Close)
	log := &bytes.Buffer{}
	return &desk{NewIntake(bus, robotsHere{}, slog.New(slog.NewTextHandler(log, nil))), bus, bus.Read(), log}
}

// published returns the perceptions that were published since the last call.
func (d *desk) published(t *testing.T) (all []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		e, err := d.reader.Next(ctx)
		if err != nil {
			return all
		}
		p := e.Event.(event.Perceived)
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", p.Name, p.Data, e.Session)))
	}
}

func TestIntakeChecksEvents(t *testing.T) {
	for name, c := range map[string]struct {
		name, data string
		want       string // the published event; empty if the event must be refused
		says       string // text of the refusal
	}{
		"an event":           {"sound_event", `{"direction":"left"}`, `sound_event {"direction":"left"} s`, ""},
		"an unknown one":     {"Grimoire.scan-2:x/y", `{"a":[1,{"b":null}]}`, `Grimoire.scan-2:x/y {"a":[1,{"b":null}]} s`, ""},
		"no data":            {"face_lost", "", "face_lost {} s", ""},
		"null":               {"face_lost", "null", "face_lost {} s", ""},
		"on many lines":      {"x", "\n{ \"a\" :\n1 }\n", `x {"a":1} s`, ""},
		"a cut character":    {"x", "{\"a\":\"\xc3\"}", `x {"a":"�"} s`, ""},
		"the longest name":   {strings.Repeat("n", 64), "", strings.Repeat("n", 64) + " {} s", ""},
		"no name":            {"", "{}", "", "name: it has 0 bytes"},
		"too long a name":    {strings.Repeat("n", 65), "{}", "", "name: it has 65 bytes"},
		"a space at its end": {"a ", "{}", "", "characters"},
		"a line break":       {"a\nb", "{}", "", "characters"},
		"bytes":              {"a\xff", "{}", "", "characters"},
		"another script":     {"gesicht ö", "{}", "gesicht ö {} s", ""},
		"an array":           {"x", "[1]", "", "must be a JSON object"},
		"a text":             {"x", `"x"`, "", "must be a JSON object"},
		"no JSON":            {"x", `{"a":}`, "", "data: invalid"},
		"two objects":        {"x", `{}{}`, "", "data: invalid"},
		"an open object":     {"x", `{"a":1`, "", "data: unexpected end"},
		"very deep":          {"x", strings.Repeat(`{"a":`, 700) + "1" + strings.Repeat("}", 700), "", "more than 4096"},
		"too much data":      {"x", `{"a":"` + strings.Repeat("x", 4096) + `"}`, "", "more than 4096"},
		"the most data":      {"x", `{"a":"` + strings.Repeat("x", 4088) + `"}`, `x {"a":"` + strings.Repeat("x", 4088) + `"} s`, ""},
		"a time of its own":  {"x", `{"ts":1715000000.5}`, `x {"ts":1715000000.5} s`, ""},
		"an escaped newline": {"x", `{"a":"\n"}`, `x {"a":"\n"} s`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			err := d.FromRobot(chan1, "s", c.name, json.RawMessage(c.data))
			got := strings.Join(d.published(t), "; ")
			if got != c.want {
				t.Errorf("published %q, not %q", got, c.want)
			}
			if (err != nil) != (c.want == "") || err != nil && (!errors.Is(err, ErrEvent) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// TestIntakeChecksSenders checks that programs and brokers may report only for adopted robots.
func TestIntakeChecksSenders(t *testing.T) {
	d := newDesk(t)
	type coded interface {
		Code() string
		Status() int
	}
	for name, c := range map[string]struct {
		err    error
		code   string
		status int
		is     error
	}{
		"a program":                  {d.FromProgram(chan1, "a", nil), "", 0, nil},
		"a program, another robot":   {d.FromProgram(nobody, "a", nil), "unknown_robot", 404, device.ErrUnknownRobot},
		"a program, no event":        {d.FromProgram(chan1, "", nil), "bad_event", 400, ErrEvent},
		"a program, a stranger":      {d.FromProgram(stranger, "a", nil), "not_adopted", 409, ErrEvent},
		"a robot that was forgotten": {d.FromRobot(nobody, "s", "c", nil), "", 0, nil},
	} {
		var coded coded
		switch {
		case c.is == nil && c.err != nil:
			t.Errorf("%s: %v", name, c.err)
		case c.is != nil && (!errors.Is(c.err, c.is) || !errors.As(c.err, &coded) || coded.Code() != c.code || coded.Status() != c.status):
			t.Errorf("%s: %#v", name, c.err)
		}
	}
	if got := len(d.published(t)); got != 1 {
		t.Errorf("%d are published, not 1", got)
	}
}

func TestDetectedTexts(t *testing.T) {
	d := newDesk(t)
	for _, text := range []string{"face", "head_pet_hold", "Hi, Stack Chan", "", strings.Repeat("x", 300), "\xff\"\n"} {
		if err := d.Detected(chan1, "s", text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	want := []string{"face_detected {} s", "head_pet_hold {} s", `wake_word {"text":"Hi, Stack Chan"} s`, `wake_word {"text":""} s`,
		`wake_word {"text":"` + strings.Repeat("x", 200) + `"} s`, `wake_word {"text":"\"\n"} s`}
	if got := d.published(t); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q", got)
	}
}

// TestOneFace checks that the camera's event and the "detect" message about the same face count as one face.
func TestOneFace(t *testing.T) {
	for name, c := range map[string]struct {
		script string // e is the camera's event, t the text "face", l the loss of the face, and a number is a pause in seconds
		want   int
	}{
		"the event first":           {"e 1 t", 1},
		"the text first":            {"t 1 e", 1},
		"too late":                  {"e 5 t", 2},
		"just in time":              {"e 4.9 t", 1},
		"two events are two faces":  {"e 1 l 1 e", 2},
		"two texts are two faces":   {"t 1 t", 2},
		"lost before the text came": {"e 1 l 1 t", 1},
		"the next face":             {"t 1 e 1 l 1 e", 2},
		"the next face's text":      {"e 1 t 1 l 1 e 1 t", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				for _, word := range strings.Fields(c.script) {
					var err error
					switch word {
					case "e":
						err = d.FromRobot(chan1, "s", "face_detected", nil)
					case "l":
						err = d.FromRobot(chan1, "s", "face_lost", nil)
					case "t":
						err = d.Detected(chan1, "s", "face")
					default:
						wait, _ := time.ParseDuration(word + "s")
						time.Sleep(wait)
					}
					must.Succeed(t, err)
				}
				faces := 0
				for _, p := range d.published(t) {
					if strings.HasPrefix(p, faceDetected) {
						faces++
					}
				}
				if faces != c.want {
					t.Errorf("%d faces, not %d", faces, c.want)
				}
			})
		})
	}
}

// TestRateLimit checks that a robot may send 100 events at once and 50 a second, and that the excess is counted, and
// logged once until the robot may send a full burst again.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		send := func(id device.ID, n int) (taken int) {
			for range n {
				err := d.FromRobot(id, "s", "sound_event", nil)
				if err == nil {
					taken++
				} else if !errors.Is(err, ErrTooMany) {
					t.Fatal(err)
				}
			}
			return taken
		}
		if got := send(chan1, 150); got != 100 {
			t.Errorf("%d of 150 at once are taken", got)
		}
		if got := send(chan2, 100); got != 100 {
			t.Errorf("%d of another robot's", got)
		}
		time.Sleep(time.Second)
		if got := send(chan1, 60); got != 50 {
			t.Errorf("%d a second later", got)
		}
		if d.Dropped() != 60 {
			t.Errorf("%d are counted", d.Dropped())
		}
		if logged := strings.Count(d.log.String(), "dropped_before=0"); logged != 1 || strings.Count(d.log.String(), "\n") != 1 {
			t.Errorf("logged:\n%s", d.log)
		}
		time.Sleep(2 * time.Second) // long enough for a full burst
		if got := send(chan1, 101); got != 100 || !strings.Contains(d.log.String(), "dropped_before=60") || strings.Count(d.log.String(), "\n") != 2 {
			t.Errorf("%d after a rest; logged:\n%s", got, d.log)
		}
		for range 30 { // the maximum rate, for half a minute
			time.Sleep(time.Second)
			if got := send(chan1, 50); got != 50 {
				t.Fatalf("%d of 50 a second", got)
			}
		}
	})
}

// TestManyAtOnce checks, also for the race detector, that the events of each sender stay in order.
func TestManyAtOnce(t *testing.T) {
	d := newDesk(t)
	var wg sync.WaitGroup
	for n := range 10 {
		id := device.ID(fmt.Sprintf("a0b1c2d3e4%02x", n*2))
		wg.Go(func() {
			for i := range 90 {
				if err := d.FromRobot(id, "s", fmt.Sprintf("n%02d", i), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	last := map[device.ID]string{}
	r := d.bus.ReadFrom(1)
	for range 900 {
		e, err := r.Next(t.Context())
		must.Succeed(t, err)
		name := e.Event.(event.Perceived).Name
		if name <= last[e.Robot] {
			t.Fatalf("%s after %s", name, last[e.Robot])
		}
		last[e.Robot] = name
	}
}

// FuzzIntake publishes arbitrary events. Published events must be valid and bounded, and the state, the behaviours and
// the descriptions of senses must be able to handle them.
func FuzzIntake(f *testing.F) {
	f.Add("face_recognized", []byte(`{"identity":"Ann \"}{\n","source":"room_view"}`))
	f.Add("sound_event", []byte(`{"direction":"left","balance":1e300,"energy":-1e308}`))
	f.Add("state_changed", []byte(`{"state":"sleep","state":7}`))
	f.Add("head_turn", []byte(`{"yaw":9e99,"pitch":"x"}`))
	f.Add("x\x00", []byte("{\"\xff\":\xfe}"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		d := newDesk(t)
		if err := d.FromProgram(chan1, name, data); err != nil {
			if !errors.Is(err, ErrEvent) {
				t.Error(err)
			}
			return
		}
		e, err := d.reader.Next(t.Context())
		must.Succeed(t, err)
		p := e.Event.(event.Perceived)
		if len(p.Name) > limit.Word || len(p.Data) > 3*limit.Data || !json.Valid(p.Data) || p.Data[0] != '{' || bytes.ContainsAny(p.Data, "\n\r") {
			t.Fatalf("published %q %q", p.Name, p.Data)
		}
		s := Fold(State{}, e)
		kept, err := json.Marshal(s)
		must.Succeed(t, err)
		var back State
		must.Succeed(t, json.Unmarshal(kept, &back))
		if who := s.Who(e.At); len(who) > limit.Word+60 || strings.ContainsAny(who, "\n\"{}<>") {
			t.Errorf("it says %q", who)
		}
		c := newReactor(Options{Tuning: DefaultTuning(), Zone: time.UTC,
			Rules: []Rule{{When: When{Event: name, If: map[string]Compare{"state": {Is: "sleep"}}}}}})
		c.handleEvent(event.Envelope{At: e.At, Robot: chan1, Event: event.RobotOnline{}})
		c.handleEvent(e)
	})
}

// TestStrangersSenseNothing checks that events of a robot that is not adopted are not published.
func TestStrangersSenseNothing(t *testing.T) {
	d := newDesk(t)
	for range 1000 {
		must.Succeed(t, d.FromRobot(stranger, "s", "face_detected", json.RawMessage(`{"identity":"the owner"}`)))
		must.Succeed(t, d.Detected(stranger, "s", "hello robot"))
	}
	if d.Dropped() != 0 || d.bus.Seq() != 0 {
		t.Errorf("%d events were published, %d counted as too many", d.bus.Seq(), d.Dropped())
	}
}

// TestSensesAreBounded checks that the size of one robot's recent events is bounded.
func TestSensesAreBounded(t *testing.T) {
	var s State
	for range 60 {
		s = Fold(s, event.Envelope{Robot: chan1, At: noon, Event: event.Perceived{Name: "big",
			Data: json.RawMessage(`{"x":"` + strings.Repeat("y", 4000) + `"}`)}})
	}
	text, err := json.Marshal(s)
	if err != nil || len(text) > 17<<10 || len(s.Recent) < 3 {
		t.Errorf("%d events, %d bytes (%v)", len(s.Recent), len(text), err)
	}
	s = Fold(s, event.Envelope{Robot: chan1, At: noon, Event: event.RobotSeen{}})
	s.GoodNight = true
	if s = Fold(s, event.Envelope{Robot: chan1, At: noon, Event: event.RobotSeen{Waiting: true}}); !s.GoodNight {
		t.Error("a client with the MAC of a robot that sleeps has woken it")
	}
}
