package e2e

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/firmware-tools/simrobot"
	"perch/must"
	"perch/waittest"
)

// byMQTT starts an appliance with a broker whose robots use MQTT, and a connected robot that does not talk. It also
// returns a listener to the broker's messages.
func byMQTT(t *testing.T, o simrobot.Options) (*appliancetest.Appliance, *appliancetest.Listener, *appliancetest.Robot) {
	t.Helper()
	c := appliancetest.WithBroker(t)
	c.Robots.Transport = string(device.MQTT)
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	l := h.Listen()
	o.Asleep, o.Transport = true, device.MQTT
	r := h.StartCompanion(o)
	h.Await(r, "the robot is connected", appliancetest.Match(func(simrobot.Connected) bool { return true }))
	h.WaitForTools(r.ID())
	return h, l, r
}

// subtitles returns the sentences that a robot has shown, with their times.
func subtitles(r *appliancetest.Robot) []simrobot.SentenceShown {
	return appliancetest.ObservationsOf[simrobot.SentenceShown](r)
}

// over matches the end of a notification that a robot has played.
func over(e simrobot.Observation) bool { return e == simrobot.NotificationOver{} }

// overs counts the notifications that a robot has played to their end.
func overs(r *appliancetest.Robot) int {
	return len(appliancetest.ObservationsOf[simrobot.NotificationOver](r))
}

// TestAnIdleRobotSpeaks: an idle robot speaks a notification of Home Assistant, with subtitles at the right times. The
// notification is reported as spoken when the robot has played it.
func TestAnIdleRobotSpeaks(t *testing.T) {
	t.Parallel()
	h, l, r := byMQTT(t, simrobot.Options{Firmware: "2.5", Record: true})
	began := time.Now()
	h.Publish("perch/a0b1c2d3e4f5/notify/set", `{"text": "The washing is done. Somebody should hang it up now."}`)
	heard := h.Await(r, "the notification is heard", func(e simrobot.Observation) bool { _, is := e.(simrobot.NotificationHeard); return is })
	h.Await(r, "the notification is played to its end", over)
	t.Logf("the first sound came %s after mosquitto_pub was started, of which 480 ms are the robot's own popup sound",
		heard.Sub(began).Round(time.Millisecond))
	shown := subtitles(r)
	if len(shown) != 2 || shown[0].Text != "The washing is done." || shown[1].Text != "Somebody should hang it up now." {
		t.Fatalf("shown is %+v", shown)
	}
	if shown[0].At > 60*time.Millisecond || shown[1].At < 600*time.Millisecond || shown[1].At > 3*time.Second {
		t.Errorf("shown at %s and %s", shown[0].At, shown[1].At)
	}
	h.Eventually("it is told as spoken", func() bool { return l.Has("perch/a0b1c2d3e4f5/notification", `"spoken"`) })
	r.Off()
	if n := r.Stats().Underruns; n > 0 && r.Lateness() < appliancetest.MaxLateness {
		t.Errorf("the speaker ran dry %d times", n)
	}
}

// TestCutByAWakeWord: if a wake word interrupts a notification, the robot speaks the notification in the talk that
// follows.
func TestCutByAWakeWord(t *testing.T) {
	t.Parallel()
	h, l, r := byMQTT(t, simrobot.Options{Firmware: "2.5", Say: nil})
	h.Publish("perch/a0b1c2d3e4f5/notify/set",
		`{"text": "This is a long notification, which takes its time to be spoken. It goes on with a second sentence, and it ends with a third one."}`)
	h.Await(r, "the notification is heard", func(e simrobot.Observation) bool { _, is := e.(simrobot.NotificationHeard); return is })
	r.WakeWord("hey perch")
	h.Await(r, "a talk begins", func(e simrobot.Observation) bool { _, is := e.(simrobot.Welcomed); return is })
	if l.Has("perch/a0b1c2d3e4f5/notification", `"spoken"`) {
		t.Error("it is told as spoken, and was cut")
	}
	h.Eventually("it is told as spoken", func() bool { return l.Has("perch/a0b1c2d3e4f5/notification", `"spoken"`) })
	if n := len(subtitles(r)); n < 4 {
		t.Errorf("%d sentences were shown, all told", n)
	}
}

// TestThirtyNotifications: notifications that arrive at the same time are spoken in order.
func TestThirtyNotifications(t *testing.T) {
	t.Parallel()
	h, _, r := byMQTT(t, simrobot.Options{Firmware: "2.5"})
	var want []string
	for i := range 30 {
		text := fmt.Sprintf("Number %d.", i+1)
		want = append(want, text)
		h.Publish("perch/a0b1c2d3e4f5/notify/set", `{"text": "`+text+`"}`)
	}
	if !waittest.Until(3*time.Minute, func() bool { return overs(r) == 30 }) {
		t.Fatalf("%d of 30 notifications were spoken", overs(r))
	}
	var shown []string
	for _, s := range subtitles(r) {
		shown = append(shown, s.Text)
	}
	if !slices.Equal(shown, want) {
		t.Errorf("spoken are\n%s", strings.Join(shown, "\n"))
	}
}

// TestAHeadTurnsBetweenTalks: an MQTT message, as an automation of Home Assistant sends it, turns the head of an idle
// robot.
func TestAHeadTurnsBetweenTalks(t *testing.T) {
	t.Parallel()
	h, l, r := byMQTT(t, simrobot.Options{Firmware: "2.2.4"})
	h.Eventually("it is shown as connected, and not as talking", func() bool {
		return l.Has("perch/a0b1c2d3e4f5/state", `"connected":true,"talking":false`)
	})
	began := time.Now()
	h.Publish("perch/a0b1c2d3e4f5/head/set", `{"yaw": 30, "pitch": 20}`)
	at := h.Await(r, "the head turns", appliancetest.HeadAt(30, 20))
	t.Logf("the head turned %s after mosquitto_pub was started", at.Sub(began).Round(time.Millisecond))
	h.Publish("perch/a0b1c2d3e4f5/notify/set", `{"text": "Tea is ready."}`)
	h.Await(r, "a firmware without notify shows it at once",
		appliancetest.Match(func(a simrobot.Alerted) bool { return a.Message == "Tea is ready." }))
	r.Tap()
	h.Await(r, "and speaks it in the next talk", appliancetest.Shows("Tea is ready."))
	h.Eventually("it is told as spoken", func() bool { return l.Has("perch/a0b1c2d3e4f5/notification", `"spoken"`) })
}

// TestABadNetwork: a talk works although datagrams are lost, late and reordered, and the robot's port changes as
// behind a router.
func TestABadNetwork(t *testing.T) {
	t.Parallel()
	c := appliancetest.Config()
	c.Robots.Transport = string(device.MQTT)
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	r := h.RunRobot(simrobot.Options{Firmware: "2.4", Transport: device.MQTT, Say: appliancetest.Sentences(t, "what time is it", "what day is it today"),
		Network: &simrobot.Network{Loss: 0.05, Reorder: 0.1, Jitter: 30 * time.Millisecond, Rebind: 4 * time.Second, Seed: 3}})
	for _, turn := range r.Stats().Turns {
		if turn.Transcript != turn.Text || !turn.Answered {
			t.Errorf("%q was heard as %q, answered %v", turn.Text, turn.Transcript, turn.Answer)
		}
	}
	if s := r.Stats(); s.Channels != 1 || len(s.Turns) != 2 {
		t.Errorf("%d channels, %d turns", s.Channels, len(s.Turns))
	}
}

// TestTLSForRobots: a robot whose firmware trusts the certificate's authority connects over TLS. Other robots cannot
// connect.
func TestTLSForRobots(t *testing.T) {
	t.Parallel()
	c := appliancetest.Config()
	c.TLS = goodFor(t, t.TempDir(), "127.0.0.1", month)
	c.TLS.Listen = nil
	c.Robots.Transport, c.Robots.MQTT.Listen, c.Robots.MQTT.TLS = string(device.MQTT), "", "127.0.0.1:0"
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	said := appliancetest.Sentences(t, "what time is it")
	r := h.RunRobot(simrobot.Options{Firmware: "2.4", Transport: device.MQTT, Authorities: trusts(t, c.TLS.Certificate).RootCAs, Say: said})
	if s := r.Stats(); len(s.Turns) != 1 || !s.Turns[0].Answered {
		t.Errorf("%+v", s.Turns)
	}
	for name, o := range map[string]simrobot.Options{"without TLS": {}, "without the authority": {Authorities: x509.NewCertPool()}} {
		o.Firmware, o.Say = "2.4", said
		if _, err := h.TryRobot(o); err == nil {
			t.Errorf("a robot %s gets in", name)
		}
	}
}

// TestRobotsPasswords: an MQTT password is valid only for its robot and client. A robot that publishes to a topic
// other than its own is disconnected.
func TestRobotsPasswords(t *testing.T) {
	c := appliancetest.Config()
	c.Robots.Transport = string(device.MQTT)
	h := appliancetest.Start(t, c, t.TempDir())
	var given []struct {
		MQTT struct{ Endpoint, Client_ID, Username, Password, Publish_Topic string }
	}
	for i, mac := range []string{"a0:b1:c2:d3:e4:01", "a0:b1:c2:d3:e4:02"} {
		var one struct {
			MQTT struct{ Endpoint, Client_ID, Username, Password, Publish_Topic string }
		}
		_, text := h.Request("POST", "/xiaozhi/ota/", "{}", "Device-Id", mac, "Client-Id", fmt.Sprint("client-", i))
		if err := json.Unmarshal([]byte(text), &one); err != nil || one.MQTT.Password == "" {
			t.Fatalf("%s: %v", text, err)
		}
		given = append(given, one)
	}
	a, b := given[0].MQTT, given[1].MQTT
	for name, try := range map[string]struct {
		client, user, password string
		ok                     bool
	}{
		"its own":              {a.Client_ID, a.Username, a.Password, true},
		"the other's":          {a.Client_ID, a.Username, b.Password, false},
		"as the other":         {a.Client_ID, b.Username, a.Password, false},
		"by another client":    {b.Client_ID, a.Username, a.Password, false},
		"none":                 {a.Client_ID, a.Username, "", false},
		"of an unknown robot":  {a.Client_ID, "a0b1c2d3e4ff", a.Password, false},
		"of something unknown": {a.Client_ID, "somebody", a.Password, false},
	} {
		conn, err := mqttLogin(a.Endpoint, 4, try.client, try.user, try.password)
		if (err == nil) != try.ok {
			t.Errorf("%s: %v", name, err)
		}
		if conn != nil {
			_ = conn.Close()
		}
	}
	conn := must.Value(mqttLogin(a.Endpoint, 4, a.Client_ID, a.Username, a.Password))(t)
	defer conn.Close()
	topic := "perch/" + b.Username + "/say/set"
	body := append([]byte{0, byte(len(topic))}, topic+`{"text": "I am not that robot"}`...)
	must.Value(conn.Write(mqttPacket(0x30, body)))(t)
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.Copy(io.Discard, conn); err != nil { // reads earlier messages until the connection is closed
		t.Errorf("a robot that publishes elsewhere is not disconnected: %v", err)
	}
}
