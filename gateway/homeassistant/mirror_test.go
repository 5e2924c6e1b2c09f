package homeassistant

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"perch/event"
	"perch/must"
	"perch/waittest"
)

// over returns a harness whose options are for a broker.
func over(b *mosquitto) *harness {
	h := newHarness()
	h.options.Broker, h.options.User, h.options.Password = b.url(), user, password
	return h
}

// mirrored runs a mirror on a new broker until the test ends or end is called. It returns once the bridge is online. The
// subscriber receives everything that is published.
func mirrored(t *testing.T, change func(*harness)) (b *mosquitto, h *harness, e *subscriber, end func()) {
	t.Helper()
	b = newMosquitto(t).start()
	h = over(b)
	change(h)
	e = b.listen("perch/#", "homeassistant/#")
	_, end = h.run(t)
	e.await("perch/bridge/status", equals("online"))
	return b, h, e, end
}

func unchanged(*harness) {}

// works tests that a mirror comes online over a broker, carries out a command, and goes offline.
func works(t *testing.T, b *mosquitto, h *harness) {
	t.Helper()
	e := b.listen("perch/#")
	_, end := h.run(t)
	e.await("perch/bridge/status", equals("online"))
	b.publish("perch/a0b1c2d3e4f4/say/set", "hello")
	h.talk.await(t, "say hello")
	end()
	e.await("perch/bridge/status", equals("offline"))
}

// states returns the values of agent_state in the payloads, without immediate repetitions.
func states(payloads []string) (all []string) {
	for _, payload := range payloads {
		var d struct {
			State string `json:"agent_state"`
		}
		if json.Unmarshal([]byte(payload), &d) == nil {
			all = append(all, d.State)
		}
	}
	return slices.Compact(all)
}

// talkOf returns the events of one turn of a conversation with a robot.
func talkOf() []event.Event {
	return []event.Event{
		event.ListeningStarted{Mode: "auto"}, event.Heard{Text: "what time is it"}, event.ThinkingStarted{Brain: "x"},
		event.ToolStatus{ID: "1", Name: "clock", Status: event.ToolRunning}, event.ToolStatus{ID: "1", Name: "clock", Status: event.ToolDone},
		event.Emotion{Name: "happy", Emoji: "😊"}, event.SpeakingStarted{}, event.Said{Text: "it is four"}, event.TurnEnded{End: event.EndDone},
		event.ListeningStarted{Mode: "auto"},
	}
}

func TestOverTLS(t *testing.T) {
	b := newMosquitto(t)
	authority := b.secure()
	b.start()
	stranger := over(b)
	m, _ := stranger.run(t)
	waittest.For(t, "the cause", func() bool { return strings.Contains(fmt.Sprint(m.Status().Cause), "mqtt.ca") })
	h := over(b)
	h.options.CA = authority
	works(t, b, h)
}

// TestConnectionErrors tests that the error for each broker that cannot be used explains the cause and contains no
// password.
func TestConnectionErrors(t *testing.T) {
	b := newMosquitto(t).start()
	closing := serve(t, func(c net.Conn) { c.Close() })
	silentTLS := strings.Replace(b.url(), "mqtt://", "mqtts://", 1)
	for name, c := range map[string]struct{ url, password, cause string }{
		"password": {b.url(), "wrong-canary", "check mqtt.user and mqtt.password"},
		"nobody":   {fmt.Sprintf("mqtt://127.0.0.1:%d", freePort(t)), password, "nothing listens at"},
		"name":     {"mqtt://nowhere.invalid", password, "no machine in the network has the name"},
		"closes":   {"mqtt://" + closing, password, "closes the connection at once"},
		"no TLS":   {silentTLS, password, "the server at"},
	} {
		t.Run(name, func(t *testing.T) {
			h := over(b)
			h.options.Broker, h.options.Password = c.url, c.password
			m, end := h.run(t)
			waittest.For(t, c.cause, func() bool { return strings.Contains(fmt.Sprint(m.Status().Cause), c.cause) })
			s := m.Status()
			if s.Connected || strings.Contains(fmt.Sprint(s.Cause)+h.log.String(), "canary") {
				t.Errorf("%+v\n%s", s, h.log)
			}
			if n := h.log.Lines("MQTT is disconnected"); n != 1 {
				t.Errorf("logged %d times:\n%s", n, h.log)
			}
			end()
		})
	}
}

// TestLastWill tests that the broker publishes that the bridge is offline after the process was killed.
func TestLastWill(t *testing.T) {
	b := newMosquitto(t, "allow_anonymous true").start()
	e := b.listen("perch/bridge/#")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childBroker+"="+b.url())
	must.Succeed(t, child.Start())
	e.await("perch/bridge/status", equals("online"))
	_ = child.Process.Kill()
	_ = child.Wait()
	e.await("perch/bridge/status", equals("offline"))
}

func TestBrokerComesBack(t *testing.T) {
	for name, settings := range map[string]string{"forgetful": "persistence false", "persistent": "persistence true\nautosave_interval 1"} {
		t.Run(name, func(t *testing.T) {
			b := newMosquitto(t, settings).start()
			h := over(b)
			m, _ := h.run(t)
			waittest.For(t, "connected", func() bool { return m.Status().Connected })
			h.hello(chan1, "s1")
			h.happens(chan1, "s1", event.ListeningStarted{Mode: "auto"})
			before := b.listen("perch/#")
			before.await("perch/a0b1c2d3e4f4/state", has(`"agent_state":"listening"`))
			b.stop()
			waittest.For(t, "gone", func() bool { return !m.Status().Connected })
			// Of the messages for these events, only retained ones and notifications are published later.
			h.happens(chan1, "s1", event.Heard{Text: "x"}, event.ThinkingStarted{Brain: "x"})
			h.happens("", "", event.Notification{ID: "n1", Text: "the wash is done", Urgency: "normal"})
			b.start()
			e := b.listen("perch/#", "homeassistant/#")
			e.await("perch/a0b1c2d3e4f4/state", has(`"agent_state":"thinking"`))
			e.await("perch/bridge/notification", has(`"event_type":"received"`, "the wash is done"))
			e.await("perch/a0b1c2d3e4f4/status", equals("online"))
			e.await("homeassistant/device/perch_a0b1c2d3e4f4/config", has("agent_state"))
			if got := e.on("perch/a0b1c2d3e4f4/conversation"); len(got) > 0 {
				t.Errorf("published late: %q", got)
			}
			b.publish("perch/a0b1c2d3e4f4/say/set", "still here")
			h.talk.await(t, "say still here")
		})
	}
}

func TestOverWebsocket(t *testing.T) {
	b := newMosquitto(t)
	port := freePort(t)
	b.settings = fmt.Sprintf("listener %d 127.0.0.1\nprotocol websockets", port)
	b.start()
	h := over(b)
	h.options.Broker = fmt.Sprintf("ws://127.0.0.1:%d/mqtt", port)
	works(t, b, h)
}

// TestStoppedMosquitto tests that a stopped broker blocks neither the hub nor its end, and gets the present states when it
// runs again. TestStoppedBroker and TestTheGoodbyeOfAStoppedBroker test how long this takes.
func TestStoppedMosquitto(t *testing.T) {
	b := newMosquittoAlone(t).start()
	h := over(b)
	h.hello(chan1, "s1")
	e := b.listen("perch/#")
	_, end := h.run(t)
	e.await("perch/a0b1c2d3e4f4/state", has(`"connected":true`))
	_ = b.process.Process.Signal(syscall.SIGSTOP)
	for range 20_000 { // more than the network buffers hold
		h.happens(chan1, "s1", event.Heard{}, event.SpeakingStarted{}, event.Said{Text: strings.Repeat("x", 500)})
	}
	h.happens(chan1, "s1", event.TurnEnded{End: event.EndSleep}, event.Emotion{Name: "happy"})
	_ = b.process.Process.Signal(syscall.SIGCONT)
	e.await("perch/a0b1c2d3e4f4/state", has(`"agent_state":"sleeping"`, `"happy"`))
	_ = b.process.Process.Signal(syscall.SIGSTOP)
	for range 20_000 {
		h.happens(chan1, "s1", event.Heard{}, event.SpeakingStarted{}, event.Said{Text: strings.Repeat("x", 500)})
	}
	end()
}
