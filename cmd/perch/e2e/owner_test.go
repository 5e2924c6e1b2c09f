package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/device"
	"perch/event"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

var hereIAm = appliancetest.Match(func(a simrobot.Alerted) bool { return a.Message == "Here I am." })

// showsItself checks that a robot identifies itself: by a message, by lights that go on and off, and by a nod.
func showsItself(h *appliancetest.Appliance, r *appliancetest.Robot) {
	h.T.Helper()
	h.Await(r, "it shows a message", hereIAm)
	var lights []string
	for _, c := range appliancetest.ObservationsOf[simrobot.Called](r) {
		if strings.HasSuffix(c.Name, "set_led_color") {
			lights = append(lights, c.Arguments)
		}
	}
	_, nodded := r.LastTime(appliancetest.Match(func(m simrobot.HeadMoved) bool { return m.Pitch > device.MinHeadPitch && m.Yaw == 0 }))
	if len(lights) != 7 || lights[0] == lights[1] || lights[6] != lights[1] || !strings.Contains(lights[0], "168") || !nodded {
		h.T.Errorf("the lights were told %q, the head has nodded: %v", lights, nodded)
	}
}

// identify requests that a robot identifies itself, and checks the response.
func identify(h *appliancetest.Appliance, want string) {
	h.T.Helper()
	if status, body := h.Owner(http.MethodPost, "/api/v1/devices/a0b1c2d3e4f5/identify", ""); status != http.StatusAccepted || body != want {
		h.T.Errorf("%d %s", status, body)
	}
}

// TestARobotIsIdentified: a robot identifies itself over both transports. A robot that is not connected shows the
// message when it connects.
func TestARobotIsIdentified(t *testing.T) {
	t.Run("over WebSocket", func(t *testing.T) {
		h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
		h.Adopt("A0:B1:C2:D3:E4:F5")
		identify(h, `{"ok":true,"queued":true}`)
		r := h.StartCompanion(simrobot.Options{})
		h.Await(r, "it shows on connecting what waited", hereIAm)
		h.WaitForTools(r.ID())
		identify(h, `{"ok":true,"queued":false}`)
		showsItself(h, r)
		h.Await(r, "it says so", appliancetest.Shows("Here I am."))
	})
	t.Run("over MQTT, while nobody talks to it", func(t *testing.T) {
		h, _, r := byMQTT(t, simrobot.Options{Firmware: "2.5"})
		identify(h, `{"ok":true,"queued":false}`)
		showsItself(h, r)
	})
}

// TestWhatARobotRemembersIsPublished: each change of the memory and of the timers is published once as event.Changed,
// so that pages can update themselves.
func TestWhatARobotRemembersIsPublished(t *testing.T) {
	t.Parallel()
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	h.Adopt("A0:B1:C2:D3:E4:F5")
	events := h.Bus.Read()
	h.RunRobot(simrobot.Options{Say: appliancetest.Sentences(t, "remember that my keys are in the kitchen", "set a timer for one minute")})
	var timers []struct{ ID, Text, Robot string }
	h.Admin(http.MethodGet, "/api/v1/timers", "", &timers)
	var memory []struct{ ID, Body string }
	h.Admin(http.MethodGet, "/api/v1/memory", "", &memory)
	if len(timers) != 1 || timers[0].Robot != "a0b1c2d3e4f5" || len(memory) != 1 {
		t.Fatalf("timers %+v, memory %+v", timers, memory)
	}
	var written struct{ ID string }
	h.Admin(http.MethodPost, "/api/v1/memory", `{"text":"the cat is called Miso"}`, &written)
	h.Admin(http.MethodDelete, "/api/v1/memory/"+memory[0].ID, "", nil)
	h.Bus.Publish("", "", event.Fault{Part: "the end of the test"})
	var got []string
	for done := false; !done; {
		e := must.Value(events.Next(t.Context()))(t)
		switch e := e.Event.(type) {
		case event.Changed:
			if e.What != "robot" && e.What != "voices" {
				got = append(got, e.What+" "+e.ID)
			}
		case event.Fault:
			done = true
		}
	}
	want := []string{"memory " + memory[0].ID, "timers " + timers[0].ID, "memory " + written.ID, "memory " + memory[0].ID}
	if !slices.Equal(got, want) {
		t.Errorf("published are %q, want %q", got, want)
	}
}
