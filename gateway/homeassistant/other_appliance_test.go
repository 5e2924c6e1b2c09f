package homeassistant

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"perch/gateway/homeassistant/connection"
	"perch/must"
	"perch/waittest"
)

func TestTwoAppliances(t *testing.T) {
	b := newMosquitto(t).start()
	first, second, third := over(b), over(b), over(b)
	second.options.ID, second.options.Started = "ffffffff", time.Now().Add(time.Minute)
	third.options.ID, third.options.Base = "eeeeeeee", "attic"
	e := b.listen("perch/#", "attic/#", "homeassistant/#")
	m1, end1 := first.run(t)
	waittest.For(t, "the first", func() bool { return m1.Status().Connected })
	first.hello(chan1, "s1")
	e.await("perch/bridge/info", has(`"id":"0a1b2c3d"`, `"robots":1`))
	m2, _ := second.run(t)
	waittest.For(t, "the second keeps off", func() bool { return strings.Contains(fmt.Sprint(m2.Status().Cause), `id "0a1b2c3d"`) })
	if s := m2.Status(); s.Connected || !strings.Contains(fmt.Sprint(s.Cause), "mqtt.base_topic") {
		t.Errorf("%+v", s)
	}
	m3, _ := third.run(t)
	waittest.For(t, "the third", func() bool { return m3.Status().Connected })
	e.await("homeassistant/device/attic_bridge/config", has("eeeeeeee"))
	e.await("attic/a0b1c2d3e4f4/status", equals("online"))
	b.publish("perch/a0b1c2d3e4f4/say/set", "for the first alone")
	first.talk.await(t, "say for the first alone")
	if calls := append(second.talk.calls(), third.talk.calls()...); len(calls) > 0 {
		t.Errorf("done by others: %q", calls)
	}
	for _, payload := range e.on("perch/bridge/info") {
		if strings.Contains(payload, "ffffffff") {
			t.Errorf("the second has published %s", payload)
		}
	}
	if m1.Status().Cause != nil {
		t.Errorf("the first: %+v", m1.Status())
	}
	// The second continues to try. It takes over once the first has ended and the retained info of the first was deleted.
	end1()
	e.await("perch/bridge/status", equals("offline"))
	b.retain("perch/bridge/info", "")
	waittest.For(t, "the second serves", func() bool { return m2.Status().Connected })
	e.await("perch/bridge/info", has(`"id":"ffffffff"`))
}

// TestTwoAppliancesStartTogether tests that of two appliances that connect at the same time, exactly one stays connected:
// if both have published, the one that was started first, and otherwise the one that has published.
func TestTwoAppliancesStartTogether(t *testing.T) {
	b := newMosquitto(t).start()
	first, second := over(b), over(b)
	second.options.ID, second.options.Started = "00000000", time.Now().Add(time.Minute)
	m1, _ := first.run(t)
	m2, _ := second.run(t)
	stays := ""
	waittest.For(t, "one keeps off", func() bool {
		switch {
		case m1.Status().Connected && strings.Contains(fmt.Sprint(m2.Status().Cause), "publishes nothing"):
			stays = `"id":"0a1b2c3d"`
		case m2.Status().Connected && strings.Contains(fmt.Sprint(m1.Status().Cause), "publishes nothing"):
			stays = `"id":"00000000"`
		}
		return stays != ""
	})
	e := b.listen("perch/bridge/#")
	e.await("perch/bridge/info", has(stays))
	e.await("perch/bridge/status", equals("online"))
}

func TestForeignStatusIsCorrected(t *testing.T) {
	b, _, e, _ := mirrored(t, unchanged)
	b.retain("perch/bridge/status", "offline")
	e.await("perch/bridge/status", equals("offline"))
	e.forget()
	b.retain("perch/bridge/status", "offline")
	e.await("perch/bridge/status", equals("online"))
}

func TestEmbedded(t *testing.T) {
	needMosquitto(t)
	t.Parallel()
	h, port := newHarness(), freePort(t)
	h.options.Broker, h.options.Listen, h.options.User, h.options.Password = "embedded", fmt.Sprint("127.0.0.1:", port), user, password
	m, end := h.run(t)
	waittest.For(t, "connected", func() bool { return m.Status().Connected })
	b := &mosquitto{t: t, dir: t.TempDir(), port: port}
	e := b.listen("perch/#")
	e.await("perch/bridge/status", equals("online"))
	h.hello(chan1, "s1")
	e.await(state1, has(`"volume":70`))
	b.publish("perch/a0b1c2d3e4f4/volume/set", "12")
	e.await(state1, has(`"volume":12`))
	other := newHarness()
	other.options.Broker, other.options.Listen, other.options.User, other.options.Password = "embedded", h.options.Listen, user, password
	m2, end2 := other.run(t)
	waittest.For(t, "the port's cause", func() bool { return strings.Contains(fmt.Sprint(m2.Status().Cause), "taken by another program") })
	end2()
	for _, c := range []struct{ user, password string }{{"", ""}, {user, "wrong"}, {"nobody", password}} {
		d := over(b).options
		d.User, d.Password = c.user, c.password
		stranger := must.Value(New(d))(t)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		l, err := stranger.connection.Dial(ctx, connection.Session{Clean: true, Receive: func(incoming) bool { return true }})
		cancel()
		if err == nil {
			l.Close()
			t.Errorf("%q came in", c.user)
		} else if !strings.Contains(err.Error(), "mqtt.password") {
			t.Error(err)
		}
		d.Bus.Close()
	}
	end()
	if strings.Contains(h.log.String()+other.log.String(), password) {
		t.Error("a password in the log")
	}
}

func TestBrokenOptions(t *testing.T) {
	h := newHarness()
	defer h.bus.Close()
	for name, c := range map[string]struct {
		change func(*Options)
		why    string
	}{
		"prefix":         {func(o *Options) { o.Prefix = "home/#" }, "mqtt.discovery_prefix"},
		"base":           {func(o *Options) { o.Base = "+" }, "mqtt.base_topic"},
		"empty base":     {func(o *Options) { o.Base = "" }, "mqtt.base_topic"},
		"same":           {func(o *Options) { o.Prefix = o.Base }, "must differ"},
		"scheme":         {func(o *Options) { o.Broker = "http://x" }, "mqtt://"},
		"no host":        {func(o *Options) { o.Broker = "mqtt://" }, "mqtt.broker"},
		"secret in url":  {func(o *Options) { o.Broker = "mqtt://u:canary@x" }, "mqtt.password"},
		"no CA":          {func(o *Options) { o.Broker, o.CA = "mqtts://x", []byte("x") }, "mqtt.ca"},
		"no credentials": {func(o *Options) { o.Broker = "embedded" }, "needs a user"},
	} {
		o := h.options
		o.Broker = "mqtt://127.0.0.1"
		c.change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), c.why) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := h.options
	o.Broker = "none"
	m := must.Value(New(o))(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := m.Run(ctx); err != nil || m.Status().Connected {
		t.Errorf("none: %v, %+v", err, m.Status())
	}
}

// TestHostInBridgeInfo tests that the name on the network is published again when it changes.
func TestHostInBridgeInfo(t *testing.T) {
	h := newHarness()
	defer h.bus.Close()
	host, taken := "perch.local", ""
	h.options.Broker = "none"
	h.options.Host = func() (string, string) { return host, taken }
	h.options.URL = func() string { return "http://" + host + ":8003" }
	m := must.Value(New(h.options))(t)
	hub := newHub(&m.o, m.connection, &m.lanes)
	m.connection.Out.Open()
	sent := func(topic string) (last string) {
		hub.bridge.refresh()
		m.connection.Out.Republish()
		for _, m := range hub.drained() {
			if m.Topic == topic {
				last = string(m.Payload)
			}
		}
		return last
	}
	if info := sent("perch/bridge/info"); !strings.Contains(info, `"host":"perch.local"`) || strings.Contains(info, "taken") {
		t.Errorf("it tells %s", info)
	}
	host, taken = "perch-2.local", "perch.local"
	if info := sent("perch/bridge/info"); !strings.Contains(info, `"host":"perch-2.local","taken":"perch.local"`) {
		t.Errorf("it tells %s", info)
	}
	if card := sent("homeassistant/device/perch_bridge/config"); !strings.Contains(card, "http://perch-2.local:8003") {
		t.Errorf("it is found at %s", card)
	}
}

// TestProbe tests that Probe returns an error for another appliance that publishes under the base topic, and no error for
// the appliance itself or for another one that has gone offline.
func TestProbe(t *testing.T) {
	b := newMosquitto(t).start()
	look := func(id string) error {
		h := over(b)
		defer h.bus.Close()
		h.options.ID = id
		m := must.Value(New(h.options))(t)
		return m.Probe(t.Context())
	}
	if err := look("ffffffff"); err != nil {
		t.Errorf("an empty broker: %v", err)
	}
	h := over(b)
	m, end := h.run(t)
	waittest.For(t, "it serves", func() bool { return m.Status().Connected })
	e := b.listen("perch/bridge/#")
	e.await("perch/bridge/info", has(`"id":"0a1b2c3d"`))
	if err := look("ffffffff"); err == nil || !strings.Contains(err.Error(), `id "0a1b2c3d"`) ||
		!strings.Contains(err.Error(), "another mqtt.base_topic") {
		t.Errorf("beside another: %v", err)
	}
	if err := look("0a1b2c3d"); err != nil {
		t.Errorf("beside itself: %v", err)
	}
	end()
	e.await("perch/bridge/status", equals("offline"))
	if err := look("ffffffff"); err != nil {
		t.Errorf("after another: %v", err)
	}
}
