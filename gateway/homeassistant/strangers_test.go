package homeassistant

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/state"
	"perch/must"
	"perch/store/storetest"
)

// comes makes a stranger check in, and publishes the event that package ota publishes for a check-in.
func (h *harness) comes(id device.ID) {
	h.pass(id)
	h.happens(id, "", event.RobotSeen{New: true, Address: "192.168.1.66", Board: "m5stack\x1b[2J"})
}

// info returns the latest document on bridge/info.
func (s *script) info(t *testing.T) (i state.BridgeInfo) {
	t.Helper()
	all := s.on("perch/bridge/info")
	must.Succeed(t, json.Unmarshal(all[len(all)-1].Payload, &i))
	return i
}

// about returns the topics that contain a text, such as a robot's ID, and have a message that is not empty.
func (s *script) about(text string) (topics []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.got {
		if strings.Contains(d.Topic, text) && len(d.Payload) > 0 {
			topics = append(topics, d.Topic)
		}
	}
	return topics
}

// TestStrangersAreANumber tests that many invented robots get no devices, and that the number of events about them is
// bounded.
func TestStrangersAreANumber(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		const many = 900
		before := len(s.on("perch/bridge/info"))
		for i := range many { // within nine seconds
			id := device.ID(fmt.Sprintf("0200000%05x", i))
			h.comes(id)
			h.happens(id, "s", event.RobotOnline{}, event.ToolsListed{Count: 200}, event.ListeningStarted{}, event.Heard{Text: "x"},
				event.Perceived{Name: "face_detected"}, event.Notification{ID: string(id), Text: "x"})
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if topics := s.about("0200000"); len(topics) > 0 {
			t.Errorf("strangers have the topics %q", topics)
		}
		if i := s.info(t); i.Strangers != 200 || i.Robots != 0 { // the registry knows no more
			t.Errorf("%+v", i)
		}
		if n := len(s.on("perch/bridge/info")) - before; n > 15 {
			t.Errorf("the number is published %d times", n)
		}
		came := s.on("perch/bridge/robot")
		if len(came) < 20 || len(came) > 40 {
			t.Errorf("%d are published", len(came))
		}
		want := `{"event_type":"came","robot":"020000000000","mac":"02:00:00:00:00:00","address":"192.168.1.66","board":"m5stack[2J"}`
		if got := string(came[0].Payload); got != want {
			t.Errorf("of the first is published %s", got)
		}
		if n := strings.Count(h.log.String(), "level=WARN"); n > 0 {
			t.Errorf("%d warnings:\n%s", n, h.log)
		}
	})
}

// TestAStrangerIsPublishedOnce tests that one event is published for a stranger that checks in several times, and that
// the event tells whether the stranger waits to be adopted.
func TestAStrangerIsPublishedOnce(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		h.pass(stranger)
		for range 5 {
			h.happens(stranger, "", event.RobotSeen{Waiting: true})
			time.Sleep(time.Minute)
		}
		if came := s.on("perch/bridge/robot"); len(came) != 1 || !has(`"event_type":"waits"`)(string(came[0].Payload)) {
			t.Errorf("%+v", came)
		}
	})
}

// TestAStrangerIsAdoptedAndForgotten tests that the device is announced and removed at once.
func TestAStrangerIsAdoptedAndForgotten(t *testing.T) {
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		h.comes(stranger)
		synctest.Wait()
		if sent := s.about(string(stranger)); len(sent) > 0 {
			t.Errorf("of a stranger is published %q", sent)
		}
		if i := s.info(t); i.Strangers != 1 {
			t.Errorf("%+v", i)
		}
		for _, topic := range []string{"say", "volume", "reboot"} {
			confirmed := make(chan struct{}, 1)
			s.take(incoming{Topic: "perch/" + string(stranger) + "/" + topic + "/set", Payload: []byte("20"),
				Confirm: func() { confirmed <- struct{}{} }})
			synctest.Wait()
			select {
			case <-confirmed:
			default:
				t.Errorf("the broker keeps what nobody will do: %s", topic)
			}
		}
		if calls := h.talk.calls(); len(calls) > 0 || h.log.Lines("perch robot adopt ROBOT") != 3 {
			t.Errorf("a stranger did %q; the log:\n%s", calls, h.log)
		}
		s.take(incoming{Topic: "perch/bridge/request/notify", Payload: fmt.Appendf(nil, `{"text":"x","robot":%q}`, stranger)})
		s.take(incoming{Topic: "perch/bridge/request/devices", Payload: []byte("{}")})
		synctest.Wait()
		if got := s.on("perch/bridge/response/notify"); len(got) != 1 || !has("perch robot adopt "+string(stranger))(string(got[0].Payload)) {
			t.Errorf("a notification for a stranger: %+v", got)
		}
		if got := s.on("perch/bridge/response/devices"); len(got) != 1 || !has(`"adopted":false`, `"adopted":true`, `"more":0`)(
			string(got[0].Payload)) {
			t.Errorf("%+v", got)
		}

		must.Value(h.registry.Adopt(string(stranger), time.Now()))(t)
		h.happens(stranger, "", event.RobotAdopted{})
		synctest.Wait()
		if len(s.on("homeassistant/device/perch_"+string(stranger)+"/config")) != 1 || len(s.on("perch/"+string(stranger)+"/state")) != 1 {
			t.Errorf("adopted, it is published with %q", s.about(string(stranger)))
		}
		time.Sleep(2 * time.Second)
		if i := s.info(t); i.Strangers != 0 {
			t.Errorf("%+v", i)
		}

		must.Succeed(t, h.registry.Forget(stranger))
		h.happens(stranger, "s", event.RobotOffline{Why: "forgotten"})
		synctest.Wait()
		all := s.on("homeassistant/device/perch_" + string(stranger) + "/config")
		if last := all[len(all)-1]; len(last.Payload) != 0 || !last.Retained {
			t.Errorf("forgotten, its card is %s", last.Payload)
		}
	})
}

// TestTheButtonAdoptsNewRobots tests that the button adopts robots that checked in shortly before or after. It does not
// adopt a robot that has to show a code or that came long ago, and adopts none if many have come.
func TestTheButtonAdoptsNewRobots(t *testing.T) {
	press := func(s *script) string {
		s.take(incoming{Topic: "perch/bridge/request/adopt", Payload: []byte(`{"new": true}`)})
		synctest.Wait()
		return s.last("perch/bridge/response/adopt")
	}
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		const early, waits, soon, late = device.ID("020000000001"), device.ID("020000000002"), device.ID("020000000003"), device.ID("020000000004")
		h.comes(early)
		time.Sleep(10 * time.Minute)
		h.comes(stranger)
		h.comes(waits)
		h.registry.CheckIn(device.CheckIn{ID: waits, Client: device.NewClient("another"), Board: "x"}, time.Now())
		if got := press(s); !has(`"status":"ok"`, `"robots":["`+string(stranger)+`"]`)(got) {
			t.Errorf("pressed: %s", got)
		}
		time.Sleep(3 * time.Minute)
		h.comes(soon)
		time.Sleep(2 * time.Minute)
		h.comes(late)
		synctest.Wait()
		for id, adopted := range map[device.ID]bool{early: false, waits: false, stranger: true, soon: true, late: false} {
			if h.registry.Trusts(id) != adopted || (s.last("perch/"+string(id)+"/state") != "") != adopted {
				t.Errorf("%s is adopted: %t, and a device: %q", id, h.registry.Trusts(id), s.last("perch/"+string(id)+"/state"))
			}
		}
		if c := s.last("homeassistant/device/perch_bridge/config"); !has(`"payload_press":"{\"new\": true}"`, `"Adopt by code"`)(c) {
			t.Errorf("announced is %s", c)
		}
	})
	inBubble(t, asItIsThen, func(t *testing.T, h *harness, s *script) {
		for i := range 9 {
			h.comes(device.ID(fmt.Sprintf("02000000010%x", i)))
		}
		if got := press(s); !has(`"status":"error"`, "9 robots have come")(got) || h.registry.Trusts("020000000100") {
			t.Errorf("nine at once: %s", got)
		}
	})
}

// TestCommandsAreConfirmedOnceTheyAreKept tests when a command is confirmed to the broker: a command that makes no sense
// later at once, other commands when they are carried out, stored or refused.
func TestCommandsAreConfirmedOnceTheyAreKept(t *testing.T) {
	for name, c := range map[string]struct {
		open, full, slow bool
		thing, payload   string
		confirmed        bool
		kept             bool
	}{
		"said by an open robot":          {open: true, thing: "say", payload: "hello", confirmed: true},
		"for a closed one":               {thing: "volume", payload: "20", confirmed: true, kept: true},
		"for a closed one on a full one": {full: true, thing: "volume", payload: "20", confirmed: true},
		"of this moment, slow":           {open: true, slow: true, thing: "volume", payload: "20", confirmed: true},
		"said behind what is slow":       {open: true, slow: true, thing: "say", payload: "hello"},
		"nonsense":                       {thing: "volume", payload: "loud", confirmed: true},
		"no such thing":                  {thing: "nothing", payload: "x", confirmed: true},
	} {
		t.Run(name, func(t *testing.T) {
			kept := &storetest.Table[[]Waiting]{}
			inBubble(t, func(h *harness, _ *script) {
				h.options.WaitingCommands = kept
				if c.full {
					kept.RefuseDurable(errors.New("no room on the disk"))
				}
			}, func(t *testing.T, h *harness, s *script) {
				h.hello(chan1, "s1")
				synctest.Wait()
				if !c.open {
					h.bye(chan1, "s1")
					synctest.Wait()
				}
				h.talk.set(func() { h.talk.slow = c.slow })
				if c.slow {
					s.take(incoming{Topic: "perch/a0b1c2d3e4f4/brightness/set", Payload: []byte("1")})
				}
				confirmed := make(chan bool, 1)
				s.take(incoming{Topic: "perch/a0b1c2d3e4f4/" + c.thing + "/set", Payload: []byte(c.payload), Confirm: func() {
					list, _, _ := kept.Get(string(chan1))
					confirmed <- len(list) > 0
				}})
				synctest.Wait()
				select {
				case there := <-confirmed:
					if !c.confirmed || there != c.kept {
						t.Errorf("it is confirmed, and kept: %t", there)
					}
				default:
					if c.confirmed {
						t.Error("it is not confirmed")
					}
				}
				if c.full && len(s.on(conversation1)) == 0 {
					t.Error("that it cannot be kept is not published")
				}
			})
		})
	}
}

// TestAWaitingCommandIsStoredUntilItIsDone tests that a stored command is not lost if the power fails or Perch ends while
// the robot carries out the command.
func TestAWaitingCommandIsStoredUntilItIsDone(t *testing.T) {
	for name, answers := range map[string]bool{"the robot answers": true, "the power goes": false} {
		t.Run(name, func(t *testing.T) {
			kept := &storetest.Table[[]Waiting]{}
			stored := func() (things []string) {
				list, _, _ := kept.Get(string(chan1))
				for _, w := range list {
					things = append(things, w.Thing+" "+w.Payload)
				}
				return things
			}
			inBubble(t, func(h *harness, _ *script) { h.options.WaitingCommands = kept }, func(t *testing.T, h *harness, s *script) {
				h.talk.open(chan1, false)
				s.take(incoming{Topic: "perch/a0b1c2d3e4f4/volume/set", Payload: []byte("20"), Confirm: func() {}})
				synctest.Wait()
				h.talk.open(chan1, true)
				h.talk.set(func() { h.talk.slow = !answers })
				h.hello(chan1, "s1")
				synctest.Wait()
				if answers {
					time.Sleep(time.Second)
					synctest.Wait()
					if got := stored(); len(got) > 0 {
						t.Errorf("done, and stored is %q", got)
					}
					return
				}
				if got := stored(); !slices.Equal(got, []string{"volume 20"}) {
					t.Errorf("while the robot does it, stored is %q", got)
				}
			})
			if got := stored(); !answers && len(got) != 1 {
				t.Errorf("after the end, stored is %q", got)
			}
		})
	}
}
