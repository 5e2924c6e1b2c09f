package perception

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/device"
	"perch/event"
	"perch/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	chan1 = device.ID("a0b1c2d3e4f5")
	chan2 = device.ID("a0b1c2d3e4f6")
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// scene is a test of behaviours: the events of a robot with an open channel, and the acts.
type scene struct {
	name   string
	begin  string        // the time of day; empty means 12:00
	tune   func(*Tuning) // nil means the default
	script string        // such as "0s face; 1s lost; 10s ." where . is no event
	want   string        // such as "0s say Hi!; 5s abort"
}

// act plays scenes with only the named behaviours.
func act(t *testing.T, on []string, scenes []scene) {
	t.Helper()
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			tuning := DefaultTuning()
			tuning.Greeter.Wait = 0
			if s.tune != nil {
				s.tune(&tuning)
			}
			must.Succeed(t, tuning.Check())
			c := newReactor(Options{Tuning: tuning, Zone: time.UTC, Gestures: StockGestures()})
			c.behaviours = slices.DeleteFunc(c.behaviours, func(b behaviour) bool { return !slices.Contains(on, b.name()) })
			if got := play(t, c, s.begin, s.script); got != s.want {
				t.Errorf("%s\n     done: %s\nshould be: %s", s.script, got, s.want)
			}
		})
	}
}

// play runs a script on virtual time, and returns the acts.
func play(t *testing.T, c *reactor, begin, script string) string {
	t.Helper()
	start := noon
	if begin != "" {
		clock, err := time.Parse("15:04", begin)
		must.Succeed(t, err)
		start = noon.Add(time.Duration(clock.Hour()-12)*time.Hour + time.Duration(clock.Minute())*time.Minute)
	}
	var done []string
	record := func(now time.Time, requests []request) {
		for _, r := range requests {
			done = append(done, fmt.Sprintf("%s %s", now.Sub(start), actText(r.act)))
		}
	}
	record(start, c.handleEvent(event.Envelope{At: start, Robot: chan1, Session: "s", Event: event.RobotOnline{}}))
	for line := range strings.SplitSeq(script, ";") {
		when, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		after, err := time.ParseDuration(when)
		must.Succeed(t, err)
		now := start.Add(after)
		for due := c.nextStep(); !due.IsZero() && !due.After(now); due = c.nextStep() {
			record(due, c.step(due, nil))
			if again := c.nextStep(); again.Equal(due) {
				t.Fatalf("it is due at %s for ever", due)
			}
		}
		if e := scriptEvent(t, strings.TrimSpace(what)); e != nil {
			record(now, c.handleEvent(event.Envelope{At: now, Robot: chan1, Session: "s", Event: e}))
		}
	}
	return strings.Join(done, "; ")
}

// scriptEvent returns the event for a word in a script. An unknown word is the name of a perception, followed by its
// data.
func scriptEvent(t *testing.T, word string) event.Event {
	t.Helper()
	name, rest, _ := strings.Cut(word, " ")
	sensed := func(name, format string, a ...any) event.Event {
		return event.Perceived{Name: name, Data: json.RawMessage(fmt.Sprintf(format, a...))}
	}
	switch name {
	case ".":
		return nil
	case "face":
		return sensed(faceDetected, "{}")
	case "lost":
		return sensed(faceLost, "{}")
	case "known":
		return sensed(faceRecognized, `{"identity":%q,"source":"room_view"}`, rest)
	case "sound":
		return sensed(soundEvent, `{"direction":%q,"balance":0.4,"energy":600000000}`, rest)
	case "called":
		return sensed(wakeDetected, `{"phrase":"Hi, ESP","direction":%q}`, rest)
	case "pet":
		return sensed(petStarted, "{}")
	case "mode":
		return sensed(stateChanged, `{"state":%q}`, rest)
	case "gesture", "felt", "pressed": // requested by the model, the mood and the owner
		by := map[string]string{"gesture": event.ByModel, "felt": event.ByMood, "pressed": event.ByOwner}[name]
		return event.Gesture{Name: rest, By: by}
	case "look":
		return event.LookAt{Target: rest, By: event.ByModel}
	case "gazes": // requested by the robot's own behaviour
		return event.LookAt{Target: rest, By: event.ByRobot}
	case "seems":
		return event.Expression{Preset: rest, Intensity: 1, By: event.ByModel}
	case "cut":
		return event.TurnEnded{End: event.EndCancelled}
	case "glad": // followed by a number from 0 to 1
		return gladness(t, rest)
	case "lights":
		return event.ToolStatus{ID: "1", Name: "self_robot_set_led_color", Status: event.ToolRunning}
	case "shows":
		return event.Emotion{Name: rest}
	case "heard":
		return event.Heard{Text: rest}
	case "speaks":
		return event.SpeakingStarted{}
	case "ends":
		return event.TurnEnded{End: event.EndDone}
	case "goodnight":
		return event.TurnEnded{End: event.EndSleep}
	case "listens":
		return event.ListeningStarted{}
	case "online":
		return event.RobotOnline{}
	case "claimed":
		return event.RobotSeen{Waiting: true}
	case "offline":
		return event.RobotOffline{}
	case "moves":
		return event.ToolStatus{ID: "1", Name: "self_robot_set_head_angles", Status: event.ToolRunning}
	}
	return sensed(name, "%s", rest)
}

func actText(a Act) string {
	switch a := a.(type) {
	case Say:
		return "say " + strings.ReplaceAll(a.Text, "{name}", a.Person)
	case Look:
		return "look " + a.Target
	case Abort:
		return "abort"
	case TurnHead:
		if a.Priority == PriorityMood || a.Priority == PriorityGesture {
			return fmt.Sprintf("head %d %d", a.Yaw, *a.Pitch)
		}
		return fmt.Sprintf("turn %d", a.Yaw)
	case Feel:
		return "face " + a.Emotion
	case Play:
		return "play " + a.Sound
	case RefreshFace:
		return "mark"
	case SetState:
		return "state " + a.State
	case FindHead:
		return "find"
	case Lights:
		return fmt.Sprintf("lights %d %d %d", a.Red, a.Green, a.Blue)
	}
	return fmt.Sprintf("%T", a)
}

// gladness returns a mood of celebration with the strength n, from 0 to 1.
func gladness(t *testing.T, n string) event.Event {
	t.Helper()
	felt, err := strconv.ParseFloat(n, 64)
	must.Succeed(t, err)
	m := event.Mood{Dominant: "celebration", Face: "happy", Feelings: event.Feelings{Celebration: felt}, Head: event.HeadPose{Yaw: 10 * felt}}
	if felt == 0 {
		m.Dominant, m.Face = "neutral", "neutral"
	}
	return m
}

func nightly(t *Tuning) { t.Quiet.Hours = Hours{From: 22 * time.Hour, To: 7 * time.Hour} }

func envelope(at time.Time, e event.Event) event.Envelope {
	return event.Envelope{At: at, Robot: chan1, Session: "s", Event: e}
}
