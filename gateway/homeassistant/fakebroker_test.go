package homeassistant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/homeassistant/connection"
	"perch/gateway/homeassistant/state"
	"perch/must"
	"perch/waittest"
)

// script is a fake broker.
type script struct {
	mu     sync.Mutex
	refuse error
	stuck  bool // the broker receives messages and confirms none
	stall  bool // Publish blocks and then fails, as if the broker received nothing
	slow   time.Duration
	dials  []time.Time
	got    []delivered
	link   *scriptLink
	take   func(incoming) bool
	will   *message
}

type delivered struct {
	message
	at time.Time
}

type scriptLink struct {
	script *script
	ended  chan error
	closed chan struct{}
	once   sync.Once
}

func (s *script) Dial(_ context.Context, how connection.Session) (connection.Link, error) {
	time.Sleep(s.slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials = append(s.dials, time.Now())
	if s.refuse != nil {
		return nil, s.refuse
	}
	s.link, s.take, s.will = &scriptLink{script: s, ended: make(chan error, 1), closed: make(chan struct{})}, how.Receive, how.Will
	return s.link, nil
}

func (l *scriptLink) Subscribe(byte, ...string) error { return nil }
func (l *scriptLink) Lost() <-chan error              { return l.ended }
func (l *scriptLink) Close()                          { l.once.Do(func() { close(l.closed) }) }

func (l *scriptLink) Publish(m message) connection.Receipt {
	s := l.script
	s.mu.Lock()
	stuck, stall := s.stuck, s.stall
	if !stall {
		s.got = append(s.got, delivered{m, time.Now()})
	}
	s.mu.Unlock()
	r := &slip{done: make(chan struct{})}
	switch {
	case stall:
		select {
		case <-time.After(10 * time.Second):
		case <-l.closed:
		}
		r.err = errors.New("publish was broken by timeout")
		close(r.done)
	case !stuck:
		close(r.done)
	}
	return r
}

// slip implements connection.Receipt.
type slip struct {
	done chan struct{}
	err  error
}

func (s *slip) Done() <-chan struct{} { return s.done }
func (s *slip) Error() error          { return s.err }

// on returns the messages published on a topic.
func (s *script) on(topic string) (list []delivered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.got {
		if d.Topic == topic {
			list = append(list, d)
		}
	}
	return list
}

func (s *script) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// texts returns the payloads published on a topic.
func (s *script) texts(topic string) (all []string) {
	for _, d := range s.on(topic) {
		all = append(all, string(d.Payload))
	}
	return all
}

// last returns the latest payload published on a topic, or "".
func (s *script) last(topic string) string {
	all := s.texts(topic)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// inBubble runs a mirror with a fake broker in a synctest bubble. It calls change before the start and play after it.
func inBubble(t *testing.T, change func(*harness, *script), play func(*testing.T, *harness, *script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h, s := newHarness(), &script{}
		change(h, s)
		m := must.Value(New(h.options))(t)
		m.connection.Dial = s.Dial
		end := h.start(t, m)
		time.Sleep(time.Second)
		synctest.Wait()
		play(t, h, s)
		end()
		h.bus.Close()
	})
}

func asItIsThen(*harness, *script) {}

func TestEveryStateIsPublished(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		h.hello(chan1, "s1")
		for _, e := range talkOf() { // all at the same time
			h.happens(chan1, "s1", e)
		}
		synctest.Wait()
		want := []string{"idle", "listening", "thinking", "working", "thinking", "speaking", "attention", "listening"}
		if got := states(s.texts(state1)); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		tool := `{"type":"tool_status","session_id":"s1","tool_id":"1","tool_name":"clock","status":`
		if got := s.texts("perch/a0b1c2d3e4f4/tool"); !slices.Equal(got, []string{tool + `"running"}`, tool + `"completed"}`}) {
			t.Errorf("published of its tool: %q", got)
		}
		var types []string
		for _, payload := range s.texts(conversation1) {
			var c state.Event
			if err := json.Unmarshal([]byte(payload), &c); err != nil || c.Text != nil {
				t.Errorf("%v in %s: transcripts are not shared", err, payload)
			}
			types = append(types, c.Type)
		}
		if want := []string{"wake", "heard", "tool_called", "replied", "turn_ended"}; !slices.Equal(types, want) {
			t.Errorf("published of the conversation: %q, want %q", types, want)
		}
		at := time.Now()
		h.happens(chan1, "s1", event.Heard{}, event.SpeakingStarted{}, event.TurnEnded{End: event.EndDone})
		h.bye(chan1, "s1")
		time.Sleep(10 * time.Second)
		want = append(want, "thinking", "speaking", "attention", "idle")
		if got := states(s.texts(state1)); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		all := s.on(state1)
		if last := all[len(all)-1]; last.at.Sub(at) != 4*time.Second {
			t.Errorf("attention ended after %s", last.at.Sub(at))
		}
		if last := s.last(state1); !has(`"connected":false`, `"volume":70`, `"battery":82`, `"head_yaw":0`, `"last_heard":null`)(last) {
			t.Errorf("the last document is %s", last)
		}
		var document map[string]any
		must.Succeed(t, json.Unmarshal([]byte(s.last(state1)), &document))
		for _, key := range strings.Fields("agent_state emotion session_id connected face identity volume brightness mute head_yaw head_pitch led " +
			"battery charging signal temperature booted firmware last_heard") {
			if _, there := document[key]; !there {
				t.Errorf("%s is not in %v", key, document)
			}
		}
	})
}

// TestEndsInTime tests that a mirror that handles events late publishes the end of a transient state before the next
// state.
func TestEndsInTime(t *testing.T) {
	h := newHarness()
	defer h.bus.Close()
	hub := h.hub(t)
	hub.start(time.Now())
	s := &script{}
	hub.out.Open()
	at := time.Now()
	seq := hub.states.Seq()
	publish := func(after time.Duration, e event.Event) {
		seq++
		hub.onEvent(context.Background(), event.Envelope{Seq: seq, At: at.Add(after), Robot: chan1, Session: "s1", Event: e})
	}
	publish(0, event.RobotOnline{})
	publish(1, event.SpeakingStarted{})
	publish(2, event.TurnEnded{End: event.EndDone})
	publish(time.Minute, event.ListeningStarted{})
	for p, some := hub.out.Next(time.Now()); some; p, some = hub.out.Next(time.Now()) {
		s.got = append(s.got, delivered{message: p.Message})
	}
	if got, want := states(s.texts(state1)), []string{"idle", "speaking", "attention", "idle", "listening"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTelemetryIsCoalesced(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		h.hello(chan1, "s1")
		time.Sleep(time.Second)
		synctest.Wait()
		before := len(s.on(state1))
		for i := range 1000 { // for a second
			volume := i % 97
			h.happens(chan1, "s1", event.RobotStatus{Volume: &volume})
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		all := s.on(state1)[before:]
		if len(all) < 9 || len(all) > 11 {
			t.Errorf("%d documents in a second, want ten", len(all))
		}
		for i := range all[1:] {
			if gap := all[i+1].at.Sub(all[i].at); gap < stateInterval {
				t.Errorf("two within %s", gap)
			}
		}
		if last := s.last(state1); !has(`"volume":29`)(last) {
			t.Errorf("the last is %s", last)
		}
		// A new agent_state is published at once, together with the other changes.
		volume := 5
		h.happens(chan1, "s1", event.RobotStatus{Volume: &volume}, event.RobotStatus{Volume: &volume}, event.ListeningStarted{})
		synctest.Wait()
		if last := s.last(state1); !has(`"listening"`, `"volume":5`)(last) {
			t.Errorf("the last is %s", last)
		}
	})
}

// stops returns functions that stop a broker in different ways (on is true) or resume it.
func stops() map[string]func(s *script, on bool) {
	return map[string]func(*script, bool){
		"confirms nothing": func(s *script, on bool) { s.stuck = on },
		"takes nothing":    func(s *script, on bool) { s.stall = on },
	}
}

// TestStoppedBroker tests that a broker that stops delays no other reader of the bus, and gets the present states when
// it works again.
func TestStoppedBroker(t *testing.T) {
	for name, stop := range stops() {
		t.Run(name, func(t *testing.T) {
			inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
				h.hello(chan1, "s1")
				time.Sleep(time.Second)
				s.set(func() { stop(s, true) })
				for range 10_000 { // if anything waited for a reader, the bubble's time would advance
					at := time.Now()
					h.happens(chan1, "s1", event.ListeningStarted{}, event.Heard{}, event.SpeakingStarted{}, event.TurnEnded{End: event.EndDone})
					synctest.Wait()
					if !time.Now().Equal(at) {
						t.Fatal("somebody waited")
					}
				}
				h.happens("", "", event.Notification{ID: "n1", Text: "the wash is done", Urgency: "normal"})
				h.happens(chan1, "s1", event.ListeningStarted{})
				time.Sleep(30 * time.Second) // until the mirror has closed the connection
				s.set(func() { stop(s, false) })
				time.Sleep(time.Minute)
				if all := s.texts(state1); !has(`"listening"`)(all[len(all)-1]) || len(all) > 3000 {
					t.Errorf("%d documents, the last %s", len(all), all[len(all)-1])
				}
				if n := len(s.on("perch/bridge/notification")); n < 1 || n > 3 {
					t.Errorf("the notification came %d times", n)
				}
			})
		})
	}
}

// TestTheGoodbyeOfAStoppedBroker tests that a mirror that ends waits only for a limited time for a stopped broker.
func TestTheGoodbyeOfAStoppedBroker(t *testing.T) {
	for name, stop := range stops() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, s := newHarness(), &script{}
				m := must.Value(New(h.options))(t)
				m.connection.Dial = s.Dial
				end := h.start(t, m)
				h.hello(chan1, "s1")
				time.Sleep(10 * time.Second)
				s.set(func() { stop(s, true) })
				for range 128 {
					h.happens(chan1, "s1", event.ListeningStarted{}, event.Heard{}, event.SpeakingStarted{}, event.TurnEnded{End: event.EndDone})
				}
				synctest.Wait()
				if !m.Status().Connected {
					t.Error("it is not connected")
				}
				began := time.Now()
				end()
				if took := time.Since(began); took != 2*time.Second {
					t.Errorf("the end took %s", took)
				}
			})
		})
	}
}

func TestRetries(t *testing.T) {
	inBubble(t, func(_ *harness, s *script) { s.refuse = errors.New("nobody is there") }, func(t *testing.T, h *harness, s *script) {
		for i := range 200 {
			h.happens("", "", event.Notification{ID: fmt.Sprint(i), Text: "x", Urgency: "low", ExpiresAt: time.Now().Add(2 * time.Hour)})
			h.happens(chan1, "s1", event.Said{Text: "x"})
		}
		time.Sleep(10 * time.Minute)
		s.mu.Lock()
		dials := s.dials
		s.mu.Unlock()
		if len(dials) < 20 || len(dials) > 40 {
			t.Errorf("tried %d times in ten minutes", len(dials))
		}
		for i := range dials[1:] {
			if gap := dials[i+1].Sub(dials[i]); gap > 30*time.Second || gap < time.Second/2 {
				t.Errorf("tried again after %s", gap)
			}
		}
		if n := h.log.Lines("nobody is there"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		s.set(func() { s.refuse = nil })
		time.Sleep(time.Minute)
		if n := len(s.on("perch/bridge/notification")); n != 100 {
			t.Errorf("%d notifications were kept, not %d", n, 100)
		}
		if len(s.on(conversation1)) > 0 {
			t.Error("telemetry was kept")
		}
	})
	inBubble(t, func(_ *harness, s *script) { s.refuse = errors.New("nobody is there") }, func(t *testing.T, h *harness, s *script) {
		h.happens("", "", event.Notification{ID: "old", Text: "x", Urgency: "low", ExpiresAt: time.Now().Add(5 * time.Minute)})
		time.Sleep(10 * time.Minute)
		s.set(func() { s.refuse = nil })
		time.Sleep(time.Minute)
		if got := s.on("perch/bridge/notification"); len(got) > 0 {
			t.Errorf("published late: %s", got[0].Payload)
		}
	})
}

// TestConnecting tests that a connection is not reported as a fault before its first attempt has ended.
func TestConnecting(t *testing.T) {
	for name, refuse := range map[string]error{"a broker": nil, "none": errors.New("nobody is there")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, s := newHarness(), &script{refuse: refuse, slow: time.Second}
				m := must.Value(New(h.options))(t)
				m.connection.Dial = s.Dial
				if c := m.Status(); !c.Connecting || c.Connected {
					t.Errorf("before it runs: %+v", c)
				}
				end := h.start(t, m)
				time.Sleep(time.Second / 2)
				if c := m.Status(); !c.Connecting || c.Connected {
					t.Errorf("in the first try: %+v", c)
				}
				time.Sleep(10 * time.Second)
				if c := m.Status(); c.Connecting || c.Connected != (refuse == nil) || c.Connected == (c.Cause != nil) {
					t.Errorf("after it: %+v", c)
				}
				s.set(func() { s.refuse = errors.New("gone") })
				if refuse == nil {
					s.link.ended <- errors.New("gone")
				}
				synctest.Wait()
				if c := m.Status(); c.Connecting || c.Connected || c.Cause == nil {
					t.Errorf("once it is lost: %+v", c)
				}
				end()
				h.bus.Close()
			})
		})
	}
}

func TestAway(t *testing.T) {
	inBubble(t, func(h *harness, _ *script) { h.options.Away = time.Hour }, func(t *testing.T, h *harness, s *script) {
		words := func() []string { return s.texts("perch/a0b1c2d3e4f4/status") }
		h.hello(chan1, "s1")
		time.Sleep(2 * time.Hour) // the robot's channel is open
		if got := words(); !slices.Equal(got, []string{"online"}) {
			t.Fatalf("%q", got)
		}
		h.bye(chan1, "s1")
		time.Sleep(59 * time.Minute)
		if got := words(); !slices.Equal(got, []string{"online"}) {
			t.Fatalf("quiet, and taken to be gone: %q", got)
		}
		time.Sleep(2 * time.Minute)
		if got := words(); !slices.Equal(got, []string{"online", "offline"}) {
			t.Fatalf("%q", got)
		}
		h.hello(chan1, "s2")
		synctest.Wait()
		if got := words(); !slices.Equal(got, []string{"online", "offline", "online"}) {
			t.Fatalf("%q", got)
		}
	})
}

func TestBirth(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		before := len(s.on(config1))
		s.take(incoming{Topic: "homeassistant/status", Payload: []byte("online"), Retained: true})
		s.take(incoming{Topic: "homeassistant/status", Payload: []byte("offline")})
		time.Sleep(10 * time.Second)
		if n := len(s.on(config1)); n != before {
			t.Error("announced without a birth")
		}
		s.take(incoming{Topic: "homeassistant/status", Payload: []byte("online")})
		s.take(incoming{Topic: "homeassistant/status", Payload: []byte("online")})
		synctest.Wait()
		if n := len(s.on(config1)); n != before {
			t.Error("announced at once")
		}
		time.Sleep(5 * time.Second)
		if n := len(s.on(config1)); n != before+1 {
			t.Errorf("announced %d times", n-before)
		}
		if s.will == nil || string(s.will.Payload) != "offline" || !s.will.Retained {
			t.Errorf("the will is %+v", s.will)
		}
	})
}

func TestLongTouch(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		h.happens(chan1, "s1", event.RobotOnline{}, event.Perceived{Name: "head_pet_started"})
		time.Sleep(3 * time.Second)
		h.happens(chan1, "s1", event.Perceived{Name: "head_pet_ended"})
		synctest.Wait()
		published := s.texts("perch/a0b1c2d3e4f4/touch")
		want := []string{`{"event_type":"press_start"}`, `{"event_type":"long_press_start"}`, `{"event_type":"long_press_end"}`,
			`{"event_type":"press_end"}`}
		if !slices.Equal(published, want) {
			t.Errorf("%q", published)
		}
	})
}

// TestFirstTouch tests that a first touch is published after a delay. Home Assistant needs some time to make the entity
// that the first touch announces, and drops earlier events.
func TestFirstTouch(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		touch := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if published := s.texts("perch/a0b1c2d3e4f4/touch"); !slices.Equal(published, want) {
				t.Errorf("published is %q", published)
			}
		}
		h.happens(chan1, "s1", event.RobotOnline{}, event.Perceived{Name: "head_pet_started"})
		time.Sleep(newEntityDelay - time.Second)
		h.happens(chan1, "s1", event.Perceived{Name: "head_pet_ended"})
		touch()
		time.Sleep(time.Second)
		touch(`{"event_type":"press_start"}`, `{"event_type":"press_end"}`)
		h.happens(chan1, "s1", event.Perceived{Name: "head_pet_started"})
		touch(`{"event_type":"press_start"}`, `{"event_type":"press_end"}`, `{"event_type":"press_start"}`)
	})
}

// TestSlowRobot tests that a robot that does not answer delays no other robot.
func TestSlowRobot(t *testing.T) {
	inBubble(t, func(h *harness, _ *script) { h.meet(chan2); h.talk.slow = true }, func(t *testing.T, h *harness, s *script) {
		h.hello(chan1, "s1")
		for i := range 100 {
			s.take(incoming{Topic: "perch/a0b1c2d3e4f4/volume/set", Payload: fmt.Append(nil, i)})
			synctest.Wait()
		}
		s.take(incoming{Topic: "perch/a0b1c2d3e4f6/say/set", Payload: []byte("hello")})
		synctest.Wait()
		if !slices.Contains(h.talk.calls(), "say hello") {
			t.Error("the other waits")
		}
		refused := 0
		for _, d := range s.on(conversation1) {
			if strings.Contains(string(d.Payload), "too many commands") {
				refused++
			}
		}
		if refused != 20 {
			t.Errorf("%d refusals were published", refused)
		}
	})
}

// TestMissedEvents tests that the states are read from the board after events were lost.
func TestMissedEvents(t *testing.T) {
	h := newHarness()
	defer h.bus.Close()
	hub := h.hub(t)
	hub.start(time.Now())
	h.happens(chan1, "s1", event.RobotOnline{}, event.ListeningStarted{})
	waittest.For(t, "the board", func() bool { return h.board.Robot(chan1).At(time.Now()) == agent.Listening })
	hub.onEvent(context.Background(), event.Envelope{At: time.Now(), Event: event.Missed{N: 3}})
	if v := hub.robots.views[chan1]; v.Shown != agent.Listening || !v.State.Online {
		t.Errorf("%+v", v.Shown)
	}
	// An event that the board has handled already is ignored.
	_, seq := h.board.Snapshot()
	hub.onEvent(context.Background(), event.Envelope{Seq: seq - 1, At: time.Now(), Robot: chan1, Session: "s1", Event: event.RobotOffline{}})
	if v := hub.robots.views[chan1]; v.Shown != agent.Listening {
		t.Errorf("%+v", v.Shown)
	}
}

// TestDevicesOfForgottenRobots tests that the device of a robot that was forgotten while MQTT was off is removed, and
// that the announced senses of the other robot stay.
func TestDevicesOfForgottenRobots(t *testing.T) {
	inBubble(t, func(h *harness, _ *script) {
		h.options.Announced.PutSoon("a0b1c2d3e4aa", []string{"sensor/agent_state"})
		h.options.Announced.PutSoon(string(chan1), []string{"sensor/agent_state", "sensor/battery", "number/gone"})
	}, func(t *testing.T, h *harness, s *script) {
		if got := s.on("homeassistant/device/perch_a0b1c2d3e4aa/config"); len(got) != 1 || len(got[0].Payload) != 0 || !got[0].Retained {
			t.Errorf("the ghost: %v", got)
		}
		got := s.on("homeassistant/device/perch_a0b1c2d3e4f4/config")
		if len(got) == 0 || !has(`"battery":{`)(string(got[len(got)-1].Payload)) {
			t.Errorf("the battery is gone: %v", got)
		}
		must.Succeed(t, h.registry.Forget(chan1))
		time.Sleep(reconcileInterval)
		synctest.Wait()
		for _, topic := range []string{"homeassistant/device/perch_a0b1c2d3e4f4/config", state1, "perch/a0b1c2d3e4f4/status",
			"perch/a0b1c2d3e4f4/led"} {
			if all := s.on(topic); len(all) == 0 || len(all[len(all)-1].Payload) > 0 {
				t.Errorf("%s is still there", topic)
			}
		}
		if ids, there, _ := h.options.Announced.Get(string(chan1)); there {
			t.Errorf("still remembered: %q", ids)
		}
	})
}
