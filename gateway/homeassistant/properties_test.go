package homeassistant

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/state"
	"perch/must"
	"perch/store/storetest"
)

// drained removes all messages from the hub's outbox and returns them.
func (h *hub) drained() (all []message) {
	for p, some := h.out.Next(time.Now()); some; p, some = h.out.Next(time.Now()) {
		all = append(all, p.Message)
	}
	return all
}

// TestStatesFitTheirAnnouncement tests that for any tools and any status of a robot, every published state is allowed by
// the announcement, and no number is published for an unknown value.
func TestStatesFitTheirAnnouncement(t *testing.T) {
	harness := newHarness()
	defer harness.bus.Close()
	percent := rapid.Ptr(rapid.OneOf(rapid.IntRange(0, 100), rapid.SampledFrom([]int{-1, 101, 255, 9999})), true)
	degrees := rapid.Ptr(rapid.OneOf(rapid.Float64Range(-200, 200), rapid.SampledFrom([]float64{0, -9999, 1e9, 12.5})), true)
	rapid.Check(t, func(t *rapid.T) {
		harness.talk.tools = append(rapid.SliceOfN(anyTool(), 0, 6).Draw(t, "tools"), stackChan().Tools[:rapid.IntRange(0, 6).Draw(t, "its own")]...)
		harness.options.Announced = &storetest.Table[[]string]{}
		hub := harness.hub(t)
		defer hub.commands.lanes.Wait() // the jobs read the tools, which the next check changes
		hub.out.Open()
		hub.start(time.Now())
		all := hub.drained()
		v := hub.robots.views[chan1]
		answer := state.Readings{
			Status: device.Status{Volume: percent.Draw(t, "volume"), Brightness: percent.Draw(t, "brightness"), Battery: percent.Draw(t, "battery"),
				Temperature: degrees.Draw(t, "temperature"), Signal: rapid.SampledFrom([]string{"strong", "weak", "none", ""}).Draw(t, "signal")},
			HeadYaw: degrees.Draw(t, "yaw"), HeadPitch: degrees.Draw(t, "pitch"),
		}
		if rapid.Bool().Draw(t, "asked") {
			if v.SetReadings(answer) {
				hub.robots.publishDiscovery(v)
			}
			hub.robots.publishChanges(v, time.Now())
		}
		v.Face, v.Identity = rapid.Ptr(rapid.Bool(), true).Draw(t, "face"), rapid.Ptr(rapid.StringN(0, 100, 100), true).Draw(t, "identity")
		v.Registered.Firmware = rapid.String().Draw(t, "firmware")
		happens := func(e event.Event) {
			hub.onEvent(t.Context(), event.Envelope{Seq: hub.states.Seq() + 1, At: time.Now(), Robot: chan1, Session: "s1", Event: e})
		}
		happens(event.RobotOnline{})
		happens(event.RobotStatus{Volume: percent.Draw(t, "told volume"), Brightness: percent.Draw(t, "told brightness"),
			Battery: percent.Draw(t, "told battery")})
		happens(event.Emotion{Name: rapid.SampledFrom([]string{"happy", agent.Doubtful.Name, "unheard", ""}).Draw(t, "face shown")})
		harness.talk.tools = append([]device.Tool{anyTool().Draw(t, "one more tool")}, harness.talk.tools...)
		happens(event.ToolsListed{})
		hub.robots.publishState(v, time.Now())
		must.Value(hold("homeassistant", append(all, hub.drained()...)))(t)
	})
}

// TestEveryStateIsShown tests that each entity with a state reads the state from a published document that has the key,
// and is available.
func TestEveryStateIsShown(t *testing.T) {
	harness := newHarness()
	defer harness.bus.Close()
	harness.options.Announced.PutSoon(string(chan1), []string{"sensor/battery", "binary_sensor/charging", "sensor/signal", "sensor/temperature",
		"binary_sensor/face", "sensor/identity", "event/touch", "event/perception", "sensor/mood"})
	hub := harness.hub(t)
	hub.out.Open()
	hub.start(time.Now())
	r, err := hold("homeassistant", hub.drained())
	if err == nil {
		err = r.whole()
	}
	must.Succeed(t, err)
	shown := 0
	for topic, all := range r.entities {
		for key, c := range all {
			shows := c["state_topic"] != nil && c["platform"] != "event"
			if n := r.held[c["unique_id"].(string)]; shows != (n > 0) {
				t.Errorf("%s of %s was shown %d states", key, topic, n)
			}
			if shows {
				shown++
			}
		}
	}
	if shown < 20 {
		t.Errorf("only %d entities show something", shown)
	}
}

// TestPayloadsOfHomeAssistantParse tests that each payload that Home Assistant may send for an announced entity can be
// parsed.
func TestPayloadsOfHomeAssistantParse(t *testing.T) {
	n := discoveryNames()
	check := func(t rapid.TB, all ...discovery.Announcement) (settable int) {
		r := must.Value(hold("homeassistant", messagesOf(all...)))(t)
		for _, all := range r.entities {
			for key, c := range all {
				if err := obeyed(n, c); err != nil {
					t.Errorf("%s: %v", key, err)
				}
				if c["command_topic"] != nil {
					settable++
				}
			}
		}
		return settable
	}
	whole := stackChan()
	whole.Senses["firmware"] = true
	if got := check(t, discovery.Robot(n, whole, nil), discovery.Bridge(n, "1", "", nil), discovery.Agent(n, "coding-1", "1", nil)); got != 28 {
		t.Errorf("%d entities set something", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, discovery.Robot(n, discovery.Card{ID: discovered, Tools: rapid.SliceOfN(anyTool(), 1, 6).Draw(t, "tools")}, nil))
	})
}

// TestReaderSeesMistakes tests that hold and obeyed return errors for invalid messages.
func TestReaderSeesMistakes(t *testing.T) {
	robot := messagesOf(discovery.Robot(discoveryNames(), stackChan(), nil))
	for thing, payload := range map[string]string{"state": `{"agent_state":"dancing"}`, "led": `{"state":"ON","brightness":256}`, "status": "gone",
		"conversation": `{"event_type":"heard"}`} { // an error because an event must not be retained
		m := message{Topic: "perch/a0b1c2d3e4f5/" + thing, Payload: []byte(payload), Retained: true}
		if _, err := hold("homeassistant", append(robot, m)); err == nil {
			t.Errorf("%s passes on %s", payload, m.Topic)
		}
	}
}
