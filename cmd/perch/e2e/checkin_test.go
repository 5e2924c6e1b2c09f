package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"perch/agent/notice"
	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

// TestABrowserAsARobot: a web page of an origin in allowed_origins checks in and opens a channel, with all values in
// the query and without a Client-Id, as test pages for the Xiaozhi protocol do.
func TestABrowserAsARobot(t *testing.T) {
	const panel = "https://panel.example"
	c := appliancetest.Config()
	c.AllowedOrigins = []string{panel}
	h := open(t, c, t.TempDir())
	send := func(method, path string, header ...string) (*http.Response, string) {
		t.Helper()
		r := must.Value(http.NewRequest(method, h.URL(path), nil))(t)
		r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64)")
		r.Header.Set("Origin", panel)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer := must.Value((&http.Transport{DisableKeepAlives: true}).RoundTrip(r))(t)
		var text struct {
			WebSocket struct{ Token string }
			Error     struct{ Code string }
		}
		if answer.StatusCode != http.StatusSwitchingProtocols {
			_ = json.NewDecoder(answer.Body).Decode(&text) // a response with status 204 has no body
		}
		_ = answer.Body.Close()
		return answer, text.WebSocket.Token + text.Error.Code
	}
	for _, path := range []string{"/xiaozhi/ota/", "/xiaozhi/ota", "/xiaozhi/ota/activate", "/xiaozhi/vision/explain"} {
		answer, _ := send(http.MethodOptions, path, "Access-Control-Request-Method", "POST", "Access-Control-Request-Private-Network", "true")
		if answer.StatusCode != 204 || answer.Header.Get("Access-Control-Allow-Origin") != panel ||
			answer.Header.Get("Access-Control-Allow-Private-Network") != "true" ||
			!strings.Contains(answer.Header.Get("Access-Control-Allow-Methods"), "POST") {
			t.Errorf("preflight of %s: %s %v", path, answer.Status, answer.Header)
		}
	}
	answer, code := send(http.MethodPost, "/xiaozhi/vision/explain", "Authorization", "Bearer wrong")
	if answer.StatusCode != 401 || code != "wrong_token" || answer.Header.Get("Access-Control-Allow-Origin") != panel {
		t.Errorf("a wrong token: %s %s %v", answer.Status, code, answer.Header)
	}
	if answer, code := send(http.MethodGet, "/xiaozhi/ota/?device-id=A0:B1:C2:D3:E4:F5", "Origin",
		"https://evil.example"); answer.StatusCode != 403 || code != "foreign_origin" {
		t.Errorf("a foreign page: %s %s", answer.Status, code)
	}
	for name, method := range map[string]string{"GET": http.MethodGet, "POST": http.MethodPost} {
		answer, token := send(method, "/xiaozhi/ota/?device-id=A0:B1:C2:D3:E4:F5")
		if answer.StatusCode != 200 || token == "" || answer.Header.Get("Access-Control-Allow-Origin") != panel {
			t.Fatalf("%s: %s %q %v", name, answer.Status, token, answer.Header)
		}
		query := url.Values{"device-id": {"a0:b1:c2:d3:e4:f5"}, "authorization": {"Bearer " + token}}
		answer, code := send(http.MethodGet, "/xiaozhi/v1/?"+query.Encode(), "Connection", "Upgrade", "Upgrade", "websocket",
			"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
		if answer.StatusCode != http.StatusSwitchingProtocols {
			t.Errorf("%s: its channel is not opened: %s %s", name, answer.Status, code)
		}
	}
}

// TestNotifyAndSay: the commands robot say and notification send queue a sentence and store a notification.
func TestNotifyAndSay(t *testing.T) {
	h := open(t, appliancetest.Config(), t.TempDir())
	h.RunRobot(simrobot.Options{})
	h.Eventually("the channel is closed", func() bool { return len(h.Talk.List()) == 0 })
	if out := h.command("robot say a0b1c2d3e4f5 hello there", 0); out != "queued until the robot next connects\n" {
		t.Errorf("say says %q", out)
	}
	out := h.command("notification send the laundry --urgency high is done --robot A0:B1:C2:D3:E4:F5 --silent --expires 10m", 0)
	kept := h.Notices.Open(time.Now())
	if len(kept) != 1 || out != kept[0].ID+"\n" {
		t.Fatalf("notify says %q, kept is %+v", out, kept)
	}
	n := kept[0]
	if left := time.Until(n.Expires); left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("it expires in %v", left)
	}
	want := notice.Notification{ID: n.ID, Text: "the laundry is done", Urgency: "high", Robot: "a0b1c2d3e4f5", State: n.State, Received: n.Received,
		Expires: n.Expires}
	if n != want {
		t.Errorf("kept is %+v, want %+v", n, want)
	}
	if h.command("notification send tea", 0); len(h.Notices.Open(time.Now())) != 2 || !h.Notices.Open(time.Now())[1].Speak {
		t.Errorf("kept is %+v", h.Notices.Open(time.Now()))
	}
	for line, c := range map[string]struct {
		code int
		says string
	}{
		"notification send":                              {2, "perch notification send: it takes TEXT..., but 0 arguments were given"},
		"notification send x --urgency loud":             {2, "low, normal or high"},
		"notification send x --expires 0":                {2, "a time such as"},
		"notification send x --expires soon":             {2, "a time such as"},
		"notification send x --silent=maybe":             {2, `strconv.ParseBool: parsing "maybe": invalid syntax`},
		"notification send x --robot kitchen":            {1, "not a MAC address"},
		"notification send x --robot 020000000001":       {1, "unknown robot"},
		"notification send " + strings.Repeat("x", 1001): {1, "1001 bytes"},
	} {
		if out := h.command(line, c.code); !strings.Contains(out, c.says) || strings.Count(out, "\n") != 1 {
			t.Errorf("%.40s says %s", line, out)
		}
	}
}
