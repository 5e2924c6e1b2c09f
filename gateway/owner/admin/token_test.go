package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"perch/device"
	"perch/must"
)

// TestTokenOfARobot checks that the owner gets the address and a token for a client of an adopted robot, and that
// neither is logged.
func TestTokenOfARobot(t *testing.T) {
	h := newAppliance(t)
	const path = "/api/v1/devices/A0:B1:C2:D3:E4:F5/token"
	refused := func(when, body string, status int, code, cure string) {
		t.Helper()
		if got, text := h.ask(http.MethodPost, path, body); got != status || !strings.Contains(text, `"`+code+`"`) || !strings.Contains(text, cure) {
			t.Errorf("%s: %d %s", when, got, text)
		}
	}
	refused("unknown", `{}`, 404, "unknown_robot", "")
	h.visit(t, robotA, "one")
	refused("waiting", `{"client_id":"one"}`, 409, "not_adopted", "perch robot adopt a0b1c2d3e4f5")
	must.Value(h.robots.Adopt(string(robotA), met))(t)
	token := h.visit(t, robotA, "one").Token
	refused("another client", `{"client_id":"two"}`, 409, "other_client", "adopt --replace")
	refused("no object", `[]`, 400, "bad_body", "")
	refused("too long", `{"client_id":"`+strings.Repeat("x", 129)+`"}`, 400, "bad_body", "128")
	want := `{"robot":"a0b1c2d3e4f5","device_id":"a0:b1:c2:d3:e4:f5","client_id":"one","address":"ws://perch.local:8003/xiaozhi/v1/","token":"` +
		token + `"}`
	for _, body := range []string{`{"client_id":"one"}`, `{}`, ``} {
		h.wants(t, http.MethodPost, path, body, 200, "="+want)
	}
	h.wants(t, http.MethodGet, path, "", 405, "")
	if strings.Contains(h.log.String(), token) {
		t.Errorf("the log shows it: %s", h.log)
	}
}

// TestTokenOfARobotThatHasNotCheckedIn checks the error for a robot that has not checked in since it was adopted, so
// that the address at which it reaches the appliance is unknown.
func TestTokenOfARobotThatHasNotCheckedIn(t *testing.T) {
	h := newAppliance(t)
	_, a := h.robots.CheckIn(device.CheckIn{ID: robotA, Client: device.NewClient("one"), Address: "192.168.1.40"}, met)
	must.Value(h.robots.Adopt(a.Code, met))(t)
	h.wants(t, http.MethodPost, "/api/v1/devices/a0b1c2d3e4f5/token", `{}`, 409, "has not checked in")
}

// TestRobotIsAddedByHand checks that the owner gets an address and a token for a new robot with a name, that the robot
// is adopted, and that the token is not logged.
func TestRobotIsAddedByHand(t *testing.T) {
	h := newAppliance(t)
	add := func(body string, status int, says string) {
		t.Helper()
		h.wants(t, http.MethodPost, "/api/v1/devices", body, status, says)
	}
	add(`{"name":""}`, 400, "1 to 32 characters")
	add(`{"name":"desk"}`, 201, `"address":"ws://192.168.1.2:8003/xiaozhi/v1/","token":"`)
	add(`{"name":"Desk"}`, 409, "is called")
	robots := h.robots.List()
	if len(robots) != 1 || !robots[0].Adopted() || robots[0].Settings.Name != "desk" {
		t.Fatalf("%+v", robots)
	}
	_, token, err := h.robots.Token(robots[0].ID, device.Client{})
	must.Succeed(t, err)
	h.wants(t, http.MethodPost, "/api/v1/devices/desk/token", `{"client_id":"any"}`, 200, token)
	if strings.Contains(h.log.String(), token) {
		t.Errorf("the log shows it: %s", h.log)
	}
}
