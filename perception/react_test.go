package perception

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/event"
	"perch/must"
)

// fakeRobots implements robots and services. It records the acts and their times.
type fakeRobots struct {
	began time.Time
	tools []device.Tool
	slow  time.Duration // duration of a call
	deaf  bool          // whether calls ignore the end of their context
	fail  error         // error of all calls
	at    string        // result of the tool that reports the position of the head

	mu   sync.Mutex
	done []string
}

func (r *fakeRobots) record(format string, a ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = append(r.done, fmt.Sprintf("%s ", time.Since(r.began))+fmt.Sprintf(format, a...))
}

func (r *fakeRobots) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.done, "; ")
}

func (r *fakeRobots) Speak(_ context.Context, id device.ID, text string) (bool, error) {
	r.record("say %s", text)
	return false, r.fail
}

func (r *fakeRobots) Abort(context.Context, device.ID) error {
	r.record("abort")
	return r.fail
}

func (r *fakeRobots) Play(_ context.Context, _ device.ID, sound string) error {
	r.record("play %s", sound)
	return r.fail
}

func (r *fakeRobots) Tools(device.ID) []device.Tool { return r.tools }

func (r *fakeRobots) Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	r.record("%s %v", strings.TrimPrefix(tool, "self.robot."), arguments)
	if r.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-time.After(r.slow):
		if strings.Contains(tool, "get_head") {
			return device.Result{Text: r.at}, r.fail
		}
		return device.Result{}, r.fail
	case <-ctx.Done():
		return device.Result{}, ctx.Err()
	}
}

func (r *fakeRobots) Feel(_ context.Context, _ device.ID, emotion string) error {
	r.record("feel %s", emotion)
	return nil
}

func (r *fakeRobots) Publish(_ context.Context, topic, payload string) error {
	r.record("publish %s %s", topic, payload)
	return nil
}

func (r *fakeRobots) Notify(_ context.Context, _ device.ID, text string, aloud bool) error {
	if aloud {
		r.record("notify %s", text)
	} else {
		r.record("show %s", text)
	}
	return nil
}

// stackchan returns the tools of a Stack-chan's firmware.
func stackchan() []device.Tool {
	n := func(least, most int) device.Argument {
		return device.Argument{Type: "integer", Minimum: &least, Maximum: &most}
	}
	colour := n(0, 168)
	return []device.Tool{
		{Name: headTool, Schema: device.Schema{Properties: map[string]device.Argument{"yaw": n(-9999, 128), "pitch": n(-9999, 90),
			"speed": n(100, 1000)}}},
		{Name: lightTool, Schema: device.Schema{Properties: map[string]device.Argument{"red": colour, "green": colour, "blue": colour}}},
		{Name: faceTool},
		{Name: stateTool, Schema: device.Schema{Properties: map[string]device.Argument{"state": {Type: "string"}}, Required: []string{"state"}}},
	}
}

// running holds running behaviours, their bus, and fake robots.
type running struct {
	bus *event.Bus
	*Behaviours
	*fakeRobots
	log  *bytes.Buffer
	stop func()
}

func newRunning(t *testing.T, change func(*Options)) *running {
	t.Helper()
	h := &running{bus: event.NewBus(), fakeRobots: &fakeRobots{began: time.Now(), tools: stackchan()}, log: &bytes.Buffer{}}
	o := Options{Tuning: DefaultTuning(), Zone: time.UTC, Bus: h.bus, Log: slog.New(slog.NewTextHandler(h.log, nil))}
	o.Tuning.Greeter.Hours = Hours{From: 0, To: 24 * time.Hour} // virtual time begins at midnight
	if change != nil {
		change(&o)
	}
	b, err := NewBehaviours(o)
	must.Succeed(t, err)
	h.Behaviours = b
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx, h.fakeRobots, h.fakeRobots) })
	h.stop = func() {
		cancel()
		running.Wait()
		h.bus.Close()
	}
	h.bus.Publish(chan1, "s", event.RobotOnline{})
	return h
}

// withBehaviours runs a test with running behaviours and virtual time.
func withBehaviours(t *testing.T, change func(*Options), do func(t *testing.T, h *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newRunning(t, change)
		defer h.stop()
		do(t, h)
	})
}

// play publishes the events of a script (see scene) at their virtual times.
func (h *running) play(t *testing.T, script string) {
	for line := range strings.SplitSeq(script, ";") {
		when, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		after, err := time.ParseDuration(when)
		must.Succeed(t, err)
		time.Sleep(time.Until(h.began.Add(after)))
		if e := scriptEvent(t, strings.TrimSpace(what)); e != nil {
			h.bus.Publish(chan1, "s", e)
		}
		synctest.Wait()
	}
}

func TestBehavioursAct(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		tools  []device.Tool // nil is a Stack-chan's
		script string
		want   string
	}{
		"a face comes and leaves while it is greeted": {nil, nil, "1s face; 1.05s listens; 1.2s speaks; 2s lost; 20s .", "1.05s say Hi!; 6s abort"},
		"a face that opens no talk":                   {nil, nil, "1s face; 2s .", "1.2s say Hi!"},
		"a sound on the left": {nil, nil, "1s sound left; 2s .",
			"1s set_head_angles map[pitch:5 speed:250 yaw:-45]"},
		"somebody calls from the right": {nil, nil, "1s called right; 2s .", "1s set_head_angles map[speed:200 yaw:45]"},
		"a hand":                        {nil, nil, "1s pet; 2s .", "1s play purr"},
		"a name": {nil, nil, "1s known Ann; 5s .",
			"1s say Oh, it's Ann!; 1s set_face_identified map[]; 4s set_face_identified map[]"},
		"a robot without tools does what it can": {nil, []device.Tool{}, "1s known Ann; 2s sound left; 3s called left; 9s .", "1s say Oh, it's Ann!"},
		"quiet hours begin while it is idle": {func(o *Options) { o.Tuning.Quiet = QuietTuning{Hours{From: minute, To: hour}, true} }, nil,
			"0s mode talk; 30s .; 100s face; 2h .", "1m0s set_state map[state:sleep]; 1h0m0s set_state map[state:idle]"},
	} {
		t.Run(name, func(t *testing.T) {
			withBehaviours(t, func(o *Options) {
				o.Tuning.Gaze.On = false
				if c.change != nil {
					c.change(o)
				}
			}, func(t *testing.T, h *running) {
				if c.tools != nil {
					h.tools = c.tools
				}
				h.play(t, c.script)
				if got := h.all(); got != c.want {
					t.Errorf("%s\n     done: %s\nshould be: %s", c.script, got, c.want)
				}
			})
		})
	}
}

// TestGreetingsInTheRobotsLanguage checks that the default texts are translated, and that an owner's texts are not.
func TestGreetingsInTheRobotsLanguage(t *testing.T) {
	for name, c := range map[string]struct {
		tune   func(*Tuning)
		script string
		want   string
	}{
		"a face":          {nil, "1s face; 2s .", "1.2s say [hello] of " + string(chan1)},
		"a name":          {nil, "1s known Ann; 2s .", "1s say Ann [hello_named] of " + string(chan1) + "; 1s set_face_identified map[]"},
		"a dance":         {nil, `1s dance_started {}; 10s dance_ended {}; 11s .`, "10s say [danced] of " + string(chan1)},
		"the owner's own": {func(t *Tuning) { t.Greeter.Hello = "Moin!" }, "1s face; 2s .", "1.2s say Moin!"},
	} {
		withBehaviours(t, func(o *Options) {
			if c.tune != nil {
				c.tune(&o.Tuning)
			}
			o.Phrase = func(id device.ID, phrase string) string {
				own := map[string]string{"hello": "[hello]", "hello_named": "{name} [hello_named]", "danced": "[danced]"}
				return own[phrase] + " of " + string(id)
			}
		}, func(t *testing.T, h *running) {
			h.play(t, c.script)
			if got := h.all(); got != c.want {
				t.Errorf("%s: %s\nwant %s", name, got, c.want)
			}
		})
	}
}

// TestMovedHeadIsReserved checks that behaviours do not turn a head for 10 s after a client has moved it. A request
// for the position of the head, or a call to another robot, must not reserve the head.
func TestMovedHeadIsReserved(t *testing.T) {
	for name, c := range map[string]struct {
		robot device.ID
		tool  string
		want  string
	}{
		"moved":      {chan1, headTool, "14s set_head_angles map[pitch:5 speed:250 yaw:-45]"},
		"by its MCP": {chan1, "self_robot_head_nod", "14s set_head_angles map[pitch:5 speed:250 yaw:-45]"},
		"asked where": {chan1, "self.robot.get_head_angles",
			"1.3s set_head_angles map[pitch:5 speed:250 yaw:-45]; 10.9s set_head_angles map[pitch:5 speed:250 yaw:-45]; 14s set_head_angles map[pitch:5 speed:250 yaw:-45]"},
		"another robot": {chan2, headTool,
			"1.3s set_head_angles map[pitch:5 speed:250 yaw:-45]; 10.9s set_head_angles map[pitch:5 speed:250 yaw:-45]; 14s set_head_angles map[pitch:5 speed:250 yaw:-45]"},
		"something else": {chan1, lightTool,
			"1.3s set_head_angles map[pitch:5 speed:250 yaw:-45]; 10.9s set_head_angles map[pitch:5 speed:250 yaw:-45]; 14s set_head_angles map[pitch:5 speed:250 yaw:-45]"},
	} {
		t.Run(name, func(t *testing.T) {
			withBehaviours(t, func(o *Options) { o.Tuning.Gaze.On = false }, func(t *testing.T, h *running) {
				h.play(t, "1s .")
				h.RecordToolCall(c.robot, c.tool, nil)
				h.play(t, "1.3s sound left; 10.9s sound left; 14s sound left; 15s .")
				if got := h.all(); got != c.want {
					t.Errorf("done: %s\nwant: %s", got, c.want)
				}
			})
		})
	}
}

// TestMovedHeadIsFound checks that a robot is asked for the position of its head at the end of a client's reservation,
// if the robot has a tool for this, and that a gesture starts at this position and returns to it.
func TestMovedHeadIsFound(t *testing.T) {
	const asked, nods = "11s get_head_angles map[]", "set_head_angles map[pitch:15 speed:250 yaw:%d]"
	for name, c := range map[string]struct {
		answer string
		tells  bool
		back   int
	}{
		"it tells":            {`{"yaw":-40,"pitch":15}`, true, -40},
		"it tells too much":   {`{"yaw":-4000,"pitch":15}`, true, -128},
		"it tells nothing":    {`{"yaw":null}`, true, 0},
		"it tells no JSON":    {`at home`, true, 0},
		"it has no such tool": {"", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			withBehaviours(t, func(o *Options) { o.Gestures = StockGestures(); o.Tuning.Gaze.On = false }, func(t *testing.T, h *running) {
				h.at = c.answer
				if c.tells {
					h.tools = append(h.tools, device.Tool{Name: "self.robot.get_head_angles"})
				}
				h.play(t, "1s .")
				h.RecordToolCall(chan1, headTool, nil)
				h.play(t, "20s gesture nod; 30s .")
				if got := h.all(); strings.Contains(got, asked) != c.tells || !strings.HasSuffix(got, fmt.Sprintf(nods, c.back)) {
					t.Errorf("done: %s", got)
				}
			})
		})
	}
}

// TestOwnersGestureMovesReservedHead checks that an owner's gesture starts at the position to which a client has turned
// the head, and returns to it. A later turn by the client must end the gesture's turns. Behaviours must still not turn
// the head for 10 s.
func TestOwnersGestureMovesReservedHead(t *testing.T) {
	for name, c := range map[string]struct {
		by, want string
		again    bool
	}{
		"the owner's": {by: event.ByOwner, want: "2s set_head_angles map[pitch:30 speed:400 yaw:40]; " +
			"2.3s set_head_angles map[pitch:8 speed:500 yaw:40]; 2.6s set_head_angles map[pitch:28 speed:500 yaw:40]; " +
			"2.9s set_head_angles map[pitch:8 speed:500 yaw:40]; 3.2s set_head_angles map[pitch:20 speed:250 yaw:40]; " +
			"14s set_head_angles map[pitch:5 speed:250 yaw:-45]"},
		"turned again": {by: event.ByOwner, again: true, want: "2s set_head_angles map[pitch:30 speed:400 yaw:40]; " +
			"14s set_head_angles map[pitch:5 speed:250 yaw:-45]"},
		"the model's": {by: event.ByModel, want: "14s set_head_angles map[pitch:5 speed:250 yaw:-45]"},
	} {
		t.Run(name, func(t *testing.T) {
			withBehaviours(t, func(o *Options) { o.Gestures = StockGestures(); o.Tuning.Gaze.On = false }, func(t *testing.T, h *running) {
				h.play(t, "1s .")
				h.RecordToolCall(chan1, headTool, map[string]any{"yaw": 40, "pitch": 20.0})
				h.play(t, "2s .")
				h.bus.Publish(chan1, "s", event.Gesture{Name: "nod", By: c.by})
				if c.again {
					h.play(t, "2.1s .")
					h.RecordToolCall(chan1, headTool, map[string]any{"yaw": -40})
				}
				h.play(t, "5s sound left; 10.5s sound left; 14s sound left; 15s .")
				if got := h.all(); got != c.want {
					t.Errorf("done: %s\nwant: %s", got, c.want)
				}
			})
		})
	}
}

// TestNoGestureOverridesAClient checks that turns that a gesture has requested are dropped if a client turns the head
// before they are executed.
func TestNoGestureOverridesAClient(t *testing.T) {
	withBehaviours(t, func(o *Options) { o.Gestures = StockGestures(); o.Tuning.Gaze.On = false }, func(t *testing.T, h *running) {
		h.slow = 500 * time.Millisecond
		h.play(t, "1s .")
		h.bus.Publish(chan1, "s", event.Gesture{Name: "nod", By: event.ByMood})
		h.play(t, "1.35s .") // the second turn of the head waits for the first
		h.bus.Publish(chan1, "s", event.Heard{Text: "look left"})
		h.play(t, "1.4s .") // the turn back waits too
		h.RecordToolCall(chan1, headTool, map[string]any{"yaw": -45})
		h.play(t, "5s .")
		if got := h.all(); strings.Count(got, "set_head_angles") != 1 {
			t.Errorf("done: %s", got)
		}
	})
}

// TestMoodStartsAtFoundHead checks that a mood turns the head relative to the position that the robot has reported.
func TestMoodStartsAtFoundHead(t *testing.T) {
	withBehaviours(t, func(o *Options) { o.Tuning.Gaze.On = false }, func(t *testing.T, h *running) {
		h.at, h.tools = `{"yaw":-40,"pitch":20}`, append(h.tools, device.Tool{Name: "self.robot.get_head_angles"})
		h.play(t, "1s .")
		h.RecordToolCall(chan1, headTool, nil)
		h.play(t, "20s .")
		h.bus.Publish(chan1, "s", event.Mood{Dominant: "empathy", Face: "loving", Head: event.HeadPose{Tilt: 10}})
		h.play(t, "30s .")
		if got := h.all(); !strings.Contains(got, "set_head_angles map[pitch:20 speed:120 yaw:-35]") {
			t.Errorf("done: %s", got)
		}
	})
}

func TestHeadTurnIsPublished(t *testing.T) {
	withBehaviours(t, nil, func(t *testing.T, h *running) {
		h.play(t, "1s sound left; 2s .")
		r := h.bus.ReadFrom(4)
		e, err := r.Next(t.Context())
		if err != nil || e.Robot != chan1 {
			t.Fatal(err, e)
		}
		p := e.Event.(event.Perceived)
		if p.Name != "head_turn" || string(p.Data) != `{"by":"sound","pitch":0,"yaw":-45}` {
			t.Errorf("published: %s %s", p.Name, p.Data)
		}
		if s := Fold(State{}, e); s.Head.Yaw != -45 {
			t.Errorf("known: %+v", s.Head)
		}
	})
}

// TestPresenceAndGazeArePublished checks that a robot is online while any of its connections is open, and that the agent
// looks at a person whom the robot sees.
func TestPresenceAndGazeArePublished(t *testing.T) {
	withBehaviours(t, nil, func(t *testing.T, h *running) {
		h.play(t, "1s face; 2s lost")
		for _, e := range []event.Event{event.RobotConnected{}, event.RobotOffline{}, event.RobotDisconnected{}} {
			h.bus.Publish(chan1, "s", e)
		}
		synctest.Wait()
		var got []event.Event
		for r := h.bus.ReadFrom(1); r != nil; {
			e := must.Value(r.Next(t.Context()))(t)
			switch e.Event.(type) {
			case event.Presence, event.LookAt:
				got = append(got, e.Event)
			}
			if e.Seq == h.bus.Seq() {
				r = nil
			}
		}
		want := []event.Event{event.Presence{State: "online"}, event.LookAt{Target: "user", By: event.ByRobot},
			event.LookAt{Target: "center", By: event.ByRobot}, event.Presence{State: "offline"}}
		if !slices.Equal(got, want) {
			t.Errorf("published: %v\nwant: %v", got, want)
		}
	})
}

// TestSlowRobotDelaysNoOther checks that the late acts of a slow robot are dropped, and that another robot does not wait.
func TestSlowRobotDelaysNoOther(t *testing.T) {
	withBehaviours(t, nil, func(t *testing.T, h *running) {
		h.slow = 10 * time.Second
		h.bus.Publish(chan2, "s2", event.RobotOnline{})
		h.play(t, "1s sound left; 2s pet; 3s .")
		h.bus.Publish(chan2, "s2", scriptEvent(t, "face"))
		h.play(t, "4s .; 20s pet; 21s .")
		want := "1s set_head_angles map[pitch:5 speed:250 yaw:-45]; 3.2s say Hi!; 20s play purr"
		if got := h.all(); got != want {
			t.Errorf("done: %s", got)
		}
	})
}

// TestFailuresAreLoggedOnce checks that repeated failures are logged once until an act succeeds.
func TestFailuresAreLoggedOnce(t *testing.T) {
	withBehaviours(t, nil, func(t *testing.T, h *running) {
		h.fail = errors.New("the robot's channel is closed")
		h.play(t, "1s pet; 11s pet; 21s pet; 31s .")
		if got := strings.Count(h.log.String(), "could not act"); got != 1 || !strings.Contains(h.log.String(), "behaviour=purr") {
			t.Errorf("logged:\n%s", h.log)
		}
		h.fail = nil
		h.play(t, "41s pet; 50s .")
		h.fail = errors.New("the robot's channel is closed")
		h.play(t, "51s pet; 61s .")
		if got := strings.Count(h.log.String(), "could not act"); got != 2 {
			t.Errorf("logged:\n%s", h.log)
		}
	})
}

// TestDroppedActIsNoSuccess checks that a repeated failure is not logged after an act was dropped.
func TestDroppedActIsNoSuccess(t *testing.T) {
	var log bytes.Buffer
	robots := &fakeRobots{fail: errors.New("the robot's channel is closed")}
	h := newExecutor(robots, robots, func(device.ID) time.Time { return time.Time{} }, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	now := time.Now()
	for _, queued := range []time.Time{now, now.Add(-time.Minute), now} {
		h.executeInTime(t.Context(), "a0b1c2d3e4f5", request{act: Abort{}, by: "purr"}, queued)
	}
	if got := strings.Count(log.String(), "could not act"); got != 1 {
		t.Errorf("logged:\n%s", log.String())
	}
}

// TestTooManyActs checks that acts beyond the length of the queue are dropped and logged.
func TestTooManyActs(t *testing.T) {
	withBehaviours(t, func(o *Options) {
		o.Tuning.Gaze.On = false
		do := append(slices.Repeat([]Act{Lights{1, 2, 3}}, 18), RefreshFace{}, Abort{})
		o.Rules = []Rule{{Name: "one", When: When{Event: "x"}, Every: time.Second, Do: do},
			{Name: "two", When: When{Event: "x"}, Every: time.Second, Do: do}}
	}, func(t *testing.T, h *running) {
		h.slow = time.Second
		h.play(t, "1s x {}; 100s .")
		if got := strings.Count(h.all(), "set_led_color map[blue:3 green:2 red:1]"); got != 30 || strings.Count(h.all(), "abort") != 1 {
			t.Errorf("%d lights: %s", got, h.all())
		}
		if got := h.log.String(); strings.Count(got, "could not act") != 1 || !strings.Contains(got, "behaviour=two") ||
			!strings.Contains(got, "32 acts are already waiting") {
			t.Errorf("logged:\n%s", got)
		}
	})
}

// TestMissedEventsEndATalk checks that a conversation counts as ended after missed events, because its end may be among
// them.
func TestMissedEventsEndATalk(t *testing.T) {
	bus := event.NewBus()
	defer bus.Close()
	b := &Behaviours{o: Options{Tuning: DefaultTuning(), Zone: time.UTC, Bus: bus}, reactors: map[device.ID]*reactor{}}
	executor := newExecutor(nil, nil, b.movedAt, b.o)
	b.handleEvent(t.Context(), executor, envelope(noon, event.RobotOnline{}))
	b.handleEvent(t.Context(), executor, envelope(noon, event.Heard{Text: "x"}))
	if c := b.reactors[chan1]; !c.state.inConversation(noon, 0) {
		t.Fatal("nobody talks")
	}
	b.handleEvent(t.Context(), executor, event.Envelope{At: noon, Event: event.Missed{N: 9}})
	if c := b.reactors[chan1]; c.state.inConversation(noon, 0) || !c.state.Online {
		t.Error("the talk goes on for ever")
	}
}

// TestACheckInStartsNoState checks that a check-in creates no state, because it may come from one of many strangers.
func TestACheckInStartsNoState(t *testing.T) {
	bus := event.NewBus()
	defer bus.Close()
	board := NewStates(newJSONTable())
	b := &Behaviours{o: Options{Zone: time.UTC, Bus: bus}, reactors: map[device.ID]*reactor{}}
	for n, e := range []event.Event{event.RobotSeen{}, event.RobotDisconnected{}, event.RobotForgotten{}, event.RobotOnline{}} {
		e := event.Envelope{At: noon, Robot: device.ID(fmt.Sprintf("%012x", n)), Event: e}
		board.HandleEvent(e)
		b.handleEvent(t.Context(), newExecutor(nil, nil, b.movedAt, b.o), e)
	}
	if robots := board.Robots(); !slices.Equal(robots, []device.ID{"000000000003"}) || len(b.reactors) != 1 {
		t.Errorf("%v have a state, %d are followed", robots, len(b.reactors))
	}
}

// TestRobotsAreBounded checks that the number of robots with a state is bounded.
func TestRobotsAreBounded(t *testing.T) {
	bus := event.NewBus()
	defer bus.Close()
	board := NewStates(nil)
	b := &Behaviours{o: Options{Zone: time.UTC, Bus: bus}, reactors: map[device.ID]*reactor{}}
	for n := range maxRobots + 50 {
		e := envelope(noon, event.RobotOnline{})
		e.Robot = device.ID(fmt.Sprintf("%012x", n))
		board.HandleEvent(e)
		b.handleEvent(t.Context(), newExecutor(nil, nil, b.movedAt, b.o), e)
	}
	if states, _ := board.Snapshot(noon); len(states) != maxRobots || len(b.reactors) != maxRobots {
		t.Errorf("%d and %d are followed", len(states), len(b.reactors))
	}
}

// TestBehavioursEnd checks that Run returns when its context ends, even while a robot does not respond, and when the bus
// is closed.
func TestBehavioursEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRunning(t, nil)
		h.slow = time.Hour
		h.play(t, "1s sound left; 2s pet")
		h.stop()
		if time.Since(h.began) != 2*time.Second {
			t.Errorf("they end after %s", time.Since(h.began))
		}

		h = newRunning(t, nil)
		h.slow, h.deaf = 5*time.Second, true
		h.play(t, "1s sound left; 2s .")
		h.stop()
		if time.Since(h.began) != 6*time.Second {
			t.Errorf("they end after %s, and not with what they do", time.Since(h.began))
		}

		bus := event.NewBus()
		b, err := NewBehaviours(Options{Tuning: DefaultTuning(), Bus: bus, Log: slog.New(slog.DiscardHandler)})
		must.Succeed(t, err)
		bus.Close()
		b.Run(t.Context(), h.fakeRobots, h.fakeRobots)
	})
}

// TestApply checks that a new tuning and new rules are used from the next event on, and that a sleeping robot is woken at
// the end of the new quiet hours.
func TestApply(t *testing.T) {
	tuning := DefaultTuning()
	tuning.Quiet = QuietTuning{Hours{From: 0, To: hour}, true}
	withBehaviours(t, func(o *Options) { o.Tuning = tuning }, func(t *testing.T, h *running) {
		h.play(t, "1s mode idle; 2s .")
		if got := h.all(); !strings.Contains(got, modeSleep) {
			t.Fatalf("it is not put to sleep: %s", got)
		}
		tuning.Quiet.Hours.To = 2 * minute
		h.Apply(tuning, []Rule{{When: When{Event: petStarted}, Do: []Act{Publish{Topic: "x", Payload: "y"}}}})
		h.play(t, "3s mode sleep; 4s pet; 4m .")
		got := h.all()
		if !strings.Contains(got, modeIdle) || !strings.Contains(got, "x y") {
			t.Errorf("after a change: %s", got)
		}
	})
}
