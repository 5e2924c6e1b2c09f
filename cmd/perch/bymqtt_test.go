package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/firmware-tools/simrobot"
)

// byMQTT is an appliance with a broker whose robots use MQTT, and a robot of that
// kind which does not talk.
func byMQTT(t *testing.T, o simrobot.Options) (*appliancetest.Appliance, *appliancetest.Listener, *appliancetest.Robot) {
	t.Helper()
	c := appliancetest.WithBroker(t)
	c.Robots.Transport = string(device.MQTT)
	h := appliancetest.Start(t, c, t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	l := h.Listen()
	o.Asleep, o.Transport = true, device.MQTT
	r := h.Companion(o)
	h.Await(r, "the robot is connected", func(e simrobot.Observation) bool { _, is := e.(simrobot.Connected); return is })
	h.KnowsTools(r.ID())
	return h, l, r
}

// subtitles are those that a robot has shown, with their times.
func subtitles(r *appliancetest.Robot) (all []simrobot.SentenceShown) {
	for _, e := range r.Seen() {
		if s, is := e.(simrobot.SentenceShown); is {
			all = append(all, s)
		}
	}
	return all
}

func over(e simrobot.Observation) bool { return e == simrobot.NotificationOver{} }

// overs counts the notifications that a robot has played to their end.
func overs(r *appliancetest.Robot) (n int) {
	for _, e := range r.Seen() {
		if over(e) {
			n++
		}
	}
	return n
}

// TestAnIdleRobotSpeaks: a notification of Home Assistant's is spoken by a robot
// that nobody talks to, with its subtitles at their times, and told as spoken once it
// was played.
func TestAnIdleRobotSpeaks(t *testing.T) {
	h, l, r := byMQTT(t, simrobot.Options{Firmware: "2.5", Record: true})
	h.Publish("perch/a0b1c2d3e4f5/notify/set", `{"text": "The washing is done. Somebody should hang it up now."}`)
	h.Await(r, "the notification is played to its end", over)
	heard := time.Duration(0)
	for _, e := range r.Seen() {
		if n, is := e.(simrobot.NotificationHeard); is {
			heard = n.After
		}
	}
	t.Logf("the first sound came %s after notify, of which %s are the robot's own popup sound", heard, 480*time.Millisecond)
	shown := subtitles(r)
	if len(shown) != 2 || shown[0].Text != "The washing is done." || shown[1].Text != "Somebody should hang it up now." {
		t.Fatalf("shown is %+v", shown)
	}
	if shown[0].At > 60*time.Millisecond || shown[1].At < 600*time.Millisecond || shown[1].At > 3*time.Second {
		t.Errorf("shown at %s and %s", shown[0].At, shown[1].At)
	}
	h.Eventually("it is told as spoken", func() bool { return l.Has("perch/a0b1c2d3e4f5/notification", `"spoken"`) })
	if n := r.Stats().Underruns; n > 0 && r.Late < appliancetest.TooLate {
		t.Errorf("the speaker ran dry %d times", n)
	}
}

// TestCutByAWakeWord: what a person has cut off by talking to the robot is told
// afterwards, once.
func TestCutByAWakeWord(t *testing.T) {
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

// TestThirtyNotifications: those that come at once are spoken in their order.
func TestThirtyNotifications(t *testing.T) {
	h, l, r := byMQTT(t, simrobot.Options{Firmware: "2.5"})
	var want []string
	for i := range 30 {
		text := fmt.Sprintf("Number %d.", i+1)
		want = append(want, text)
		h.Publish("perch/a0b1c2d3e4f5/notify/set", `{"text": "`+text+`"}`)
	}
	defer func() { t.Log(overs(r), l.Lines()) }()
	appliancetest.Within(t, 100*time.Second, "all are spoken", func() bool { return overs(r) == 30 })
	var shown []string
	for _, s := range subtitles(r) {
		shown = append(shown, s.Text)
	}
	if !slices.Equal(shown, want) {
		t.Errorf("spoken are\n%s", strings.Join(shown, "\n"))
	}
}
