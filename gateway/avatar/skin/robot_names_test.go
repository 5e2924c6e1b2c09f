package skin

import (
	"net/http"
	"strings"
	"testing"

	"perch/device"
	"perch/event"
)

// called knows robotA by its name, too.
func called(o *Options) {
	o.Find = func(robot string) (device.ID, error) {
		if strings.EqualFold(robot, "kitchen") {
			return robotA, nil
		}
		return device.ParseID(robot)
	}
}

// TestASkinNamesARobot by the name that its owner has given it: to join its talk,
// to take its sessions, and to have it speak a notification.
func TestASkinNamesARobot(t *testing.T) {
	h := newHarness(t, called)
	c := h.connect(t)
	c.send(`{"type":"subscribe","states":"all","session_ids":["robot:Kitchen"]}`)
	c.answered()
	h.bus.Publish(robotB, "s2", event.RobotOnline{})
	h.bus.Publish(robotB, "s2", event.Heard{Text: "x"})
	h.bus.Publish(robotA, "s1", event.RobotOnline{})
	h.bus.Publish(robotA, "s1", event.Heard{Text: "x"})
	if frames := strings.Join(c.until(), "\n"); !strings.Contains(frames, "s1") || strings.Contains(frames, "s2") {
		t.Errorf("shown is %s", frames)
	}
	for session, want := range map[string]string{"robot:kitchen": string(robotA), "kitchen": "", "vtb_kitchen": ""} {
		answer, body := h.ask(t, http.MethodPost, chatPath, chatOf(""), "X-Session-Id", session)
		if got := answer.Header.Get("X-Session-Id"); answer.StatusCode != http.StatusOK || strings.Contains(got, string(robotA)) != (want != "") {
			t.Errorf("%s: %d, session %q: %s", session, answer.StatusCode, got, body)
		}
	}
	if answer, body := h.ask(t, http.MethodPost, "/v1/vtuber/notifications",
		`{"text":"tea","robot":"KITCHEN"}`); answer.StatusCode != http.StatusAccepted {
		t.Errorf("a notification: %d %s", answer.StatusCode, body)
	}
}
