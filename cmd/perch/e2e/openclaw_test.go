package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/listener"
	"perch/gateway/avatar/avatartest"
	"perch/must"
	"perch/socket"
)

// openClawAt returns the listener for programs made for OpenClaw's gateway.
func openClawAt(t *testing.T, h *running) *listener.Server {
	t.Helper()
	for _, s := range h.Listeners.Servers {
		if s.Key == "skins.openclaw" {
			return s
		}
	}
	t.Fatal("it has no listener")
	return nil
}

// openClawClient connects like such a program, with a token unless it is empty. It returns the response to the request
// connect, which may be an error.
func openClawClient(t *testing.T, url, token string) (c *avatartest.Client, answer string) {
	t.Helper()
	c, _ = avatartest.DialOpenClaw(t, url, func(message string) string { return message })
	c.Send(avatartest.Connect("1", func(params map[string]any) {
		if params["maxProtocol"] = 4; token != "" {
			params["auth"] = map[string]any{"token": token}
		}
	}))
	return c, c.Next()
}

// TestAnAvatarOfOpenClaw: the appliance's agent answers a text from a program made for OpenClaw's gateway, and the
// program receives the events of the turn.
func TestAnAvatarOfOpenClaw(t *testing.T) {
	c := appliancetest.Config()
	c.Skins.OpenClaw = "127.0.0.1:0"
	h := open(t, c, t.TempDir())
	at := openClawAt(t, h).Listener.Addr().String()
	client, hello := openClawClient(t, "ws://"+at, "")
	if !strings.Contains(hello, `"protocol":4`) {
		t.Fatal(hello)
	}
	client.Send(`{"type":"req","id":"2","method":"chat.send","params":{"sessionKey":"agent:main:desk","message":"hello","idempotencyKey":"k"}}`)
	seen := map[string]bool{}
	for !seen["final"] || !seen["end"] {
		var f struct {
			Event   string
			Payload struct {
				RunID, SessionKey, Stream, State string
				Data                             struct{ Phase, Text string }
			}
		}
		text := client.Next()
		must.Succeed(t, json.Unmarshal([]byte(text), &f))
		if p := f.Payload; f.Event == "agent" && (p.RunID != "k" || p.SessionKey != "agent:main:desk") || p.State == "error" {
			t.Fatal(text)
		}
		seen[f.Payload.State], seen[f.Payload.Data.Phase] = true, true
		seen["said"] = seen["said"] || f.Payload.Data.Text != ""
	}
	if !seen["start"] || !seen["delta"] || !seen["said"] {
		t.Errorf("it was told %v", seen)
	}
	for _, p := range h.Parts() {
		if p.Name == "openclaw" && (!p.OK || !strings.Contains(p.Note, at+"; 1 programs")) {
			t.Errorf("its condition: %+v", p)
		}
	}
}

// TestOpenClawOnTheNetwork: on an address for the network, the token is the skins' key. Web pages and foreign host
// names are refused.
func TestOpenClawOnTheNetwork(t *testing.T) {
	c := appliancetest.Config()
	c.Skins.Key, c.Skins.OpenClaw = "the-key-of-the-skins", "0.0.0.0:0"
	h := open(t, c, t.TempDir())
	s := openClawAt(t, h)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	must.Succeed(t, err)
	url := "ws://127.0.0.1:" + port
	for token, want := range map[string]string{"": "AUTH_TOKEN_MISSING", "guess": "AUTH_TOKEN_MISMATCH", c.Skins.Key: "hello-ok"} {
		if _, answer := openClawClient(t, url, token); !strings.Contains(answer, want) {
			t.Errorf("with the token %q: %s, want %s", token, answer, want)
		}
	}
	for header, want := range map[[2]string]string{{"Origin", "https://evil.example"}: "403", {"Host", "evil.example:18789"}: "421"} {
		_, err := socket.Dial(t.Context(), url+"/", socket.Options{Header: http.Header{header[0]: {header[1]}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", header, err)
		}
	}
}
