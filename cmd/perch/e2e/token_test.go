package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/must"
)

// TestTokenCommand connects a client with what perch robot token prints, as the page
// about robots tells it.
func TestTokenCommand(t *testing.T) {
	c := appliancetest.Config()
	c.Adoption = "code"
	h := open(t, c, t.TempDir())
	const mac = "03:00:00:00:00:01"
	h.Expect(http.StatusOK, "", http.MethodPost, "/xiaozhi/ota/", "{}", "Device-Id", mac, "Client-Id", "page")
	if code, text := h.byNetwork("robot token", mac, "--client", "page"); code != exitFailed || !strings.Contains(text, "perch robot adopt 030000000001") {
		t.Errorf("of one that waits: %d %s", code, text)
	}
	if code, text := h.byNetwork("robot adopt", mac); code != exitDone {
		t.Fatalf("%d %s", code, text)
	}
	if code, text := h.byNetwork("robot", "token", mac, "--client", "other"); code != exitFailed || !strings.Contains(text, "another Client-Id") {
		t.Errorf("of another client: %d %s", code, text)
	}
	code, text := h.byNetwork("robot token", mac, "--client", "page")
	shown := regexp.MustCompile(
		`(?m)^address +(ws://127\.0\.0\.1:\d+/xiaozhi/v1/)\ntoken +(\S{43})\nDevice-Id +03:00:00:00:00:01\nClient-Id +page\n`).FindStringSubmatch(
		text)
	if code != exitDone || shown == nil {
		t.Fatalf("%d %s", code, text)
	}
	var told struct{ Address, Token string }
	if code, text := h.byNetwork("robot token", mac, "--json"); code != exitDone || json.Unmarshal([]byte(text), &told) != nil ||
		told.Address != shown[1] || told.Token != shown[2] {
		t.Errorf("as JSON: %d %s", code, text)
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
