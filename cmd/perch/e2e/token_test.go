package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/must"
)

// TestTokenCommand: a client can connect with the values that perch robot token prints, as docs/robots.md describes.
func TestTokenCommand(t *testing.T) {
	c := appliancetest.Config()
	c.Adoption = "code"
	h := open(t, c, t.TempDir())
	const mac = "03:00:00:00:00:01"
	h.Expect(http.StatusOK, "", http.MethodPost, "/xiaozhi/ota/", "{}", "Device-Id", mac, "Client-Id", "page")
	h.byNetwork("robot token "+mac+" --client page", exitFailed, "perch robot adopt 030000000001")
	h.byNetwork("robot adopt "+mac, exitDone)
	h.byNetwork("robot token "+mac+" --client other", exitFailed, "another Client-Id")
	text := h.byNetwork("robot token "+mac+" --client page", exitDone)
	shown := regexp.MustCompile(
		`(?m)^address +(ws://127\.0\.0\.1:\d+/xiaozhi/v1/)\ntoken +(\S{43})\nDevice-Id +03:00:00:00:00:01\nClient-Id +page\n`).FindStringSubmatch(
		text)
	if shown == nil {
		t.Fatal(text)
	}
	var told struct{ Address, Token string }
	if text := h.byNetwork("robot token "+mac+" --json", exitDone); json.Unmarshal([]byte(text), &told) != nil ||
		told.Address != shown[1] || told.Token != shown[2] {
		t.Errorf("as JSON: %s", text)
	}
	if shown[1] != "ws"+strings.TrimPrefix(h.URL("/xiaozhi/v1/"), "http") {
		t.Errorf("the address is %s", shown[1])
	}
	conn := must.Value(h.dial(t, url.Values{"device-id": {mac}, "client-id": {"page"}, "token": {shown[2]}}))(t)
	send(t, conn, `{"type":"hello"}`)
	next(t, conn, "hello")
	if _, err := h.dial(t, url.Values{"device-id": {mac}, "client-id": {"other"}, "token": {shown[2]}}); err == nil ||
		!strings.Contains(err.Error(), "401") {
		t.Errorf("with another Client-Id: %v", err)
	}
	if strings.Contains(h.Logged.String(), shown[2]) {
		t.Error("the log tells the token")
	}
}

// TestAddCommand: a robot that does not check in can connect with the values that perch robot add prints. Before that,
// the robot is refused, and perch robot list shows the refusal with the command to run.
func TestAddCommand(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	if _, err := h.dial(t, url.Values{"device-id": {"02:00:00:00:00:07"}, "client-id": {"client-1"}}); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("before: %v", err)
	}
	h.command("robot list", exitDone, `"02:00:00:00:00:07"`, "perch robot add NAME")
	text := h.byNetwork("robot add desk", exitDone)
	shown := regexp.MustCompile(`(?m)^address +ws://\S+:\d+/xiaozhi/v1/\ntoken +(\S{43})\nDevice-Id +02:\S+\nClient-Id +\S+\n`).FindStringSubmatch(text)
	if shown == nil {
		t.Fatal(text)
	}
	conn := must.Value(h.dial(t, url.Values{"device-id": {"physical-1"}, "client-id": {"client-1"}, "token": {shown[1]}}))(t)
	send(t, conn, `{"type":"hello","version":1,"transport":"websocket"}`)
	next(t, conn, "hello")
	h.command("robot show desk", exitDone, "desk", "adopted")
}

// TestStrangerWithTheMACOfARobotAddedByHand: a stranger that checks in with the Device-Id of a robot added by perch
// robot add gets no token, cannot connect, and does not change the robot's entry.
func TestStrangerWithTheMACOfARobotAddedByHand(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	text := h.byNetwork("robot add desk", exitDone)
	shown := regexp.MustCompile(`(?m)^token +(\S{43})\nDevice-Id +(\S+)\n`).FindStringSubmatch(text)
	if shown == nil {
		t.Fatal(text)
	}
	_, answer := h.Request(http.MethodPost, "/xiaozhi/ota/", `{"application":{"name":"x","version":"9.9.9"},"board":{"type":"other"}}`,
		"Device-Id", shown[2], "Client-Id", "stranger")
	if strings.Contains(answer, shown[1]) || regexp.MustCompile(`"token":"[^"]`).MatchString(answer) {
		t.Errorf("the check-in is answered with %s", answer)
	}
	for _, token := range []string{"", "guess"} {
		if _, err := h.dial(t, url.Values{"device-id": {shown[2]}, "client-id": {"stranger"}, "token": {token}}); err == nil ||
			!strings.Contains(err.Error(), "401") {
			t.Errorf("with the token %q: %v", token, err)
		}
	}
	var robots []struct {
		Board, Firmware, Name string
		Adopted               bool
	}
	_, list := h.Owner(http.MethodGet, "/api/v1/devices", "")
	if err := json.Unmarshal([]byte(list), &robots); err != nil || len(robots) != 1 || robots[0].Board != "" || robots[0].Firmware != "" ||
		robots[0].Name != "desk" || !robots[0].Adopted {
		t.Errorf("the robot is %s, %v", list, err)
	}
	conn := must.Value(h.dial(t, url.Values{"device-id": {"any"}, "client-id": {"any"}, "token": {shown[1]}}))(t)
	send(t, conn, `{"type":"hello","version":1,"transport":"websocket"}`)
	next(t, conn, "hello")
}

// TestARefusedToken: if the admin token is missing or wrong, the command names the source of the token that it used and
// where the right one is on the appliance's machine. It prints neither the token nor the data directory of the
// appliance.
func TestARefusedToken(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	file := filepath.Join(t.TempDir(), "token")
	must.Succeed(t, os.WriteFile(file, []byte("not the one at all"), 0o600))
	t.Setenv("PERCH_TOKEN", "")
	for line, words := range map[string][]string{
		"robot list --url " + h.URL("") + " --token-file " + file: {"refuses the token in " + file},
		"robot list --url " + h.URL(""):                           {"requires its admin token", "--token-file FILE"},
	} {
		out := bare(t, line, 1)
		for _, word := range append(words, h.URL(""), "sudo cat /var/lib/perch/admin-token", "on the machine with the service") {
			if !strings.Contains(out, word) {
				t.Errorf("%s says %q, not %q", line, out, word)
			}
		}
		if strings.Contains(out, "in the data directory") || strings.Contains(out, h.Data) || strings.Contains(out, "not the one at all") {
			t.Errorf("%s says %q", line, out)
		}
	}
	t.Setenv("PERCH_TOKEN", "another that is wrong")
	bare(t, "robot list --url "+h.URL(""), 1, "refuses the token in PERCH_TOKEN")
}

// TestARefusalSaysWhereTheKeyIs: a response with status 401 names the file of the admin token, but contains neither the
// token nor the path of the data directory.
func TestARefusalSaysWhereTheKeyIs(t *testing.T) {
	t.Chdir(t.TempDir())
	h := open(t, appliancetest.Config(), "data") // a relative path, as after a start without the Debian package
	for _, path := range []string{"/admin/devices", "/xiaozhi/admin/devices", "/api/v1/status", "/metrics"} {
		status, text := h.Request("GET", path, "")
		if status != 401 || !strings.Contains(text, "the file admin-token in the data directory") || strings.Contains(text, h.Data+"/") ||
			strings.Contains(text, h.Secret("admin-token")) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}
