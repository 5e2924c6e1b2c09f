package appliance_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
)

// TestTheBridge checks requests of another voice server to the bridge API, and that the robot's sensor state is kept
// across a restart.
func TestTheBridge(t *testing.T) {
	const key = "a key for the bridge"
	data := t.TempDir()
	c := appliancetest.Config()
	c.Bridge.Key = key
	h := appliancetest.Start(t, c, data)
	h.RunRobot(simrobot.Options{})
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		return h.Request(method, path, body, "Authorization", "Bearer "+key)
	}
	want := func(method, path, body string, status int, parts ...string) {
		t.Helper()
		got, text := ask(method, path, body)
		for _, part := range parts {
			if got != status || !strings.Contains(text, part) {
				t.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, got, text, status, part)
			}
		}
	}
	h.Expect(http.StatusUnauthorized, "", http.MethodPost, "/api/perception/event", "{}")
	const robot = "a0:b1:c2:d3:e4:f5"
	want("POST", "/api/perception/event", `{"name":"face_detected","data":{"x":1},"device_id":"`+robot+`"}`, 200, `{"ok":true}`)
	want("POST", "/api/perception/event", `{"name":"face_detected","device_id":"a0:b1:c2:d3:e4:00"}`, 404, "no robot")
	want("POST", "/api/perception/event", `{"name":" name ","device_id":"`+robot+`"}`, 400, "name is needed")
	h.Eventually("the face is known", func() bool {
		_, text := ask("GET", "/api/perception/state", "")
		return strings.Contains(text, `"present":true`)
	})
	want("GET", "/api/perception/recent/"+robot, "", 200, `"face_detected"`, `{"x":1}`)
	want("POST", "/api/message", `{"content":"what time is it","channel":"stackchan"}`, 200, "It is ")
	want("POST", "/api/voice/remember", `{"fact":"the spare key is under the mat"}`, 200, `{"ok":true}`)
	want("POST", "/api/voice/escalate", `{"tool":"memory_lookup","args":{"query":"spare key"}}`, 200, "under the mat")
	h.Admin(http.MethodGet, "/admin/devices", "{}", nil)
	token, text := h.Request(http.MethodPost, "/admin/say", `{"text":"hello"}`, "Authorization", "Bearer "+key)
	if token != http.StatusUnauthorized {
		t.Errorf("the bridge's key opens the owner's route: %d %s", token, text)
	}
	h.Stop()

	c.Bridge.Key = ""
	h = appliancetest.Start(t, c, data)
	if status, text := ask("GET", "/api/perception/state", ""); status != http.StatusForbidden || !strings.Contains(text, "bridge.key") {
		t.Errorf("without a key set: %d %s", status, text)
	}
	states, _ := h.Senses.Snapshot(h.Started)
	if text, err := json.Marshal(states); err != nil || !strings.Contains(string(text), `"stale":true`) ||
		!strings.Contains(string(text), robot[:2]) {
		t.Errorf("after a restart: %s, %v", text, err)
	}
	h.Admin(http.MethodDelete, "/api/v1/devices/a0b1c2d3e4f5", "", nil)
	if states, _ := h.Senses.Snapshot(h.Started); len(states) > 0 {
		t.Errorf("of a robot that was forgotten is known %+v", states)
	}
}
