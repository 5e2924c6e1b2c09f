package appliance_test

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/cmd/perch/config"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/socket"
)

const initializeModel = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// freeLocalhost returns a localhost address with a port that is free on all addresses of localhost.
func freeLocalhost(t *testing.T) string {
	_, port, err := net.SplitHostPort(appliancetest.FreeAddress(t))
	must.Succeed(t, err)
	return "localhost:" + port
}

// TestVCCPPort checks that a model and a character can connect at VCCP's own port as at an address in local, and that
// the port serves nothing else.
func TestVCCPPort(t *testing.T) {
	const page = "http://localhost:5173"
	c := appliancetest.Config()
	c.Skins.VCCP, c.AllowedOrigins = freeLocalhost(t), []string{page}
	h := appliancetest.Start(t, c, t.TempDir())
	addresses := h.Listeners.At("skins.vccp")
	if len(addresses) == 0 {
		t.Fatalf("nothing listens at %s", c.Skins.VCCP)
	}
	for _, address := range append(addresses, h.Listeners.At("local")[0]) {
		ask := func(method, path, body string, header ...string) *http.Response {
			t.Helper()
			answer, _ := httpservertest.Ask(t, method, "http://"+address+path, body,
				append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}, header...)...)
			return answer
		}
		session := ask(http.MethodPost, "/mcp", initializeModel).Header.Get("Mcp-Session-Id")
		ask(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", session)
		ask(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"register-agent","arguments":{}}}`,
			"Mcp-Session-Id", session)
		conn, err := socket.Dial(t.Context(), "ws://"+address+"/vccp/"+session, socket.Options{Header: http.Header{"Origin": {page}}})
		if err != nil {
			t.Errorf("a character at %s: %v", address, err)
			continue
		}
		conn.Close(socket.Normal, "")
		if stranger := ask(http.MethodPost, "/mcp", initializeModel, "Origin", "http://elsewhere.example"); stranger.StatusCode != http.StatusForbidden {
			t.Errorf("a page from elsewhere at %s: %s", address, stranger.Status)
		}
	}
	for _, path := range []string{"/", "/api/v1/status", "/client-ws", "/state"} {
		if answer, _ := httpservertest.Ask(t, http.MethodGet, "http://"+addresses[0]+path, ""); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s is at the port of VCCP: %s", path, answer.Status)
		}
	}
}

// TestVCCPPortOfAnother checks that Perch does not listen at VCCP's port, and logs a warning, if another program has
// the port or the configuration says that another program will use it.
func TestVCCPPortOfAnother(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, c *config.Config){
		"taken on 127.0.0.1": func(t *testing.T, c *config.Config) {
			take(t, strings.Replace(c.Skins.VCCP, "localhost", "127.0.0.1", 1))
		},
		"taken on ::1": func(t *testing.T, c *config.Config) { take(t, strings.Replace(c.Skins.VCCP, "localhost", "[::1]", 1)) },
		"a page":       func(_ *testing.T, c *config.Config) { c.AllowedOrigins = []string{"http://" + c.Skins.VCCP} },
		"a relay": func(_ *testing.T, c *config.Config) {
			c.Relays = config.Relays{{Kind: "aituberkit", URL: "http://" + strings.Replace(c.Skins.VCCP, "localhost", "127.0.0.1", 1)}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := appliancetest.Config()
			c.Skins.VCCP = freeLocalhost(t)
			change(t, &c)
			h := appliancetest.Start(t, c, t.TempDir())
			if at := h.Listeners.At("skins.vccp"); len(at) > 0 {
				t.Errorf("it listens at %v", at)
			}
			if !strings.Contains(h.Logged.String(), "clients of VCCP find Perch only at the addresses in local") {
				t.Errorf("the log says nothing:\n%s", h.Logged)
			}
			if answer, _ := httpservertest.Ask(t, http.MethodPost, "http://"+h.Listeners.At("local")[0]+"/mcp", initializeModel,
				"Content-Type", "application/json", "Accept", "application/json, text/event-stream"); answer.StatusCode != http.StatusOK {
				t.Errorf("a model at local: %s", answer.Status)
			}
		})
	}
}

// take listens at an address until the test ends. It skips the test if the machine does not have the address, as
// without IPv6.
func take(t *testing.T, address string) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
		t.Skipf("this machine has no address %s: %v", address, err)
	}
	must.Succeed(t, err)
	t.Cleanup(func() { _ = l.Close() })
}
