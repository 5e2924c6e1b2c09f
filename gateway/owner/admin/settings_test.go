package admin_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"perch/device"
	"perch/event"
	"perch/gateway/owner/admin"
	"perch/must"
)

// TestRobotNameInPaths checks that the routes of a robot accept its name, and that responses contain the name.
func TestRobotNameInPaths(t *testing.T) {
	h := newAppliance(t)
	h.adopts(t, robotA, "one")
	status, body := h.ask(http.MethodPut, "/api/v1/devices/a0:b1:c2:d3:e4:f5", `{"name":"Wohn Zimmer"}`)
	var shown admin.Device
	if err := json.Unmarshal([]byte(body), &shown); status != http.StatusOK || err != nil || shown.Name != "Wohn Zimmer" || shown.ID != robotA {
		t.Fatalf("named: %d %s", status, body)
	}
	for _, c := range each {
		h := newAppliance(t)
		h.talk.picture = &device.Picture{Type: "image/png", Data: []byte("x")}
		h.talk.err = errors.New("busy")
		h.adopts(t, robotA, "one")
		must.Value(h.robots.Configure(robotA, device.Change{Name: new("Wohn Zimmer")}))(t)
		if status, body := h.ask(c.method, "/api/v1/devices/wohn%20zimmer"+c.path, c.body); status == http.StatusBadRequest ||
			status == http.StatusNotFound {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, body)
		}
	}
	for _, d := range get[[]admin.Device](t, h, "/api/v1/devices") {
		if d.Name != "Wohn Zimmer" {
			t.Errorf("in the list it is %q", d.Name)
		}
	}
	h.wants(t, http.MethodPost, "/api/v1/notifications", `{"text":"tea","robot":"WOHN ZIMMER"}`, http.StatusAccepted, "")
	h.wants(t, http.MethodPost, "/api/v1/adopt", `{"robot":"wohn zimmer"}`, http.StatusOK, `"Wohn Zimmer"`)
	h.wants(t, http.MethodDelete, "/api/v1/conversations/wohn%20zimmer", "", http.StatusOK, "")
	h.visit(t, robotA, "two")
	if status, body := h.ask(http.MethodPost, "/api/v1/adopt", `{"robot":"wohn zimmer","replace":true}`); status != http.StatusOK ||
		strings.Contains(body, "Wohn") {
		t.Errorf("replaced by its name: %d %s", status, body)
	}
}

// TestRobotSettingsAreChecked checks that an invalid change is refused with a sentence, and that no part of it is made.
func TestRobotSettingsAreChecked(t *testing.T) {
	h := newAppliance(t)
	h.adopts(t, robotA, "one")
	h.adopts(t, robotB, "two")
	h.visit(t, "020000000003", "three")
	h.robots.SetFixed(map[device.ID]device.Settings{robotB: {Name: "hall"}})
	for _, c := range []struct {
		id, body string
		status   int
		word     string
	}{
		{"hall", `{"name":"attic"}`, 409, "set_in_file"},
		{string(robotA), `{"name":"HALL"}`, 409, "name_taken"},
		{string(robotA), `{"name":"a0b1c2d3e4f6"}`, 400, "bad_name"},
		{string(robotA), `{"name":"kitchen","voice":"a\u0000b"}`, 400, "bad_setting"},
		{string(robotA), `{"nmae":"kitchen"}`, 400, "bad_body"},
		{string(robotA), `{"name":7}`, 400, "bad_body"},
		{string(robotA), `[]`, 400, "bad_body"},
		{string(robotA), ``, 400, "bad_body"},
		{"020000000003", `{"name":"kitchen"}`, 409, "not_adopted"},
		{"020000000009", `{"name":"kitchen"}`, 404, "unknown_robot"},
		{"kitchen", `{"name":"kitchen"}`, 400, "bad_robot_id"},
	} {
		h.wants(t, http.MethodPut, "/api/v1/devices/"+c.id, c.body, c.status, `"`+c.word+`"`)
	}
	if s := h.robots.Settings(robotA); s != (device.Settings{}) {
		t.Errorf("set is %+v", s)
	}
	if status, body := h.ask(http.MethodPut, "/api/v1/devices/"+string(robotA),
		`{"name":"kitchen","voice":"af_heart","brain":"openai","persona":"cook","language":"de"}`); status != 200 {
		t.Errorf("all of them: %d %s", status, body)
	}
	if status, body := h.ask(http.MethodPut, "/api/v1/devices/kitchen", `{"voice":"","name":null}`); status != 200 || !strings.Contains(body,
		`"language":"de"`) || strings.Contains(body, "voice") {
		t.Errorf("the voice alone: %d %s", status, body)
	}
}

// TestEventsNameTheirRobot checks that events and states contain the name of their robot.
func TestEventsNameTheirRobot(t *testing.T) {
	h := newAppliance(t)
	h.adopts(t, robotA, "one")
	must.Value(h.robots.Configure(robotA, device.Change{Name: new("kitchen")}))(t)
	h.publish(t, robotA, "s1", event.RobotOnline{Framing: 1})
	l := h.listen(t, "")
	if m := l.next(); m.event != "snapshot" || len(m.data.States) != 1 || m.data.States[0].Name != "kitchen" {
		t.Errorf("the snapshot: %+v", m)
	}
	h.publish(t, robotA, "s1", event.Misheard{})
	if m := l.next(); m.event != "misheard" || m.data.Name != "kitchen" || m.data.Robot != string(robotA) {
		t.Errorf("an event: %+v", m)
	}
	h.publish(t, robotB, "s2", event.Misheard{})
	if m := l.next(); m.data.Name != "" || m.data.Robot != string(robotB) {
		t.Errorf("an event of one without a name: %+v", m)
	}
}
