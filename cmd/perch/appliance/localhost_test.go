package appliance_test

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"testing"

	"perch/cmd/perch/appliancetest"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/socket"
)

// TestLocalhost checks VCCP on an address localhost in local, which means 127.0.0.1 and ::1: a model and a character
// can connect, and the character may be a web page in allowed_origins. The owner's routes refuse such a page.
func TestLocalhost(t *testing.T) {
	const page = "http://localhost:5173"
	_, port, err := net.SplitHostPort(appliancetest.FreeAddress(t))
	must.Succeed(t, err)
	at := "localhost:" + port
	c := appliancetest.Config()
	c.Local, c.AllowedOrigins = []string{at}, []string{page}
	h := appliancetest.Start(t, c, t.TempDir())
	if six, err := net.Listen("tcp", "[::1]:0"); err == nil {
		six.Close()
		if got := h.Listeners.At("local"); !slices.Equal(got, []string{"127.0.0.1:" + port, "[::1]:" + port}) {
			t.Errorf("it listens on %v", got)
		}
	}
	for _, address := range h.Listeners.At("local") {
		// The Host header is localhost, whichever address the client has resolved the name to.
		send := func(method, path, body string, header ...string) *http.Response {
			t.Helper()
			answer, _ := httpservertest.Ask(t, method, "http://"+address+path, body,
				append([]string{"Host", at, "Content-Type", "application/json", "Accept", "application/json, text/event-stream"}, header...)...)
			return answer
		}
		const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
		answer := send(http.MethodPost, "/mcp", initialize)
		session := answer.Header.Get("Mcp-Session-Id")
		if session == "" {
			t.Errorf("a model at %s: %s", address, answer.Status)
			continue
		}
		send(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", session)
		send(http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"register-agent","arguments":{}}}`,
			"Mcp-Session-Id", session)
		for origin, want := range map[string]int{"": 0, page: 0, "http://" + at: 0, "http://localhost:5174": 403, "null": 403} {
			header := http.Header{"Host": {at}}
			if origin != "" {
				header.Set("Origin", origin)
			}
			character, err := socket.Dial(t.Context(), "ws://"+address+"/vccp/"+session, socket.Options{Header: header})
			var refused *socket.Refusal
			switch {
			case want == 0 && err != nil, want != 0 && (!errors.As(err, &refused) || refused.Status != want):
				t.Errorf("a character at %s, of a page of %q: %v", address, origin, err)
			case err == nil:
				character.Close(socket.Normal, "")
			}
		}
		for _, path := range []string{"/api/v1/status", "/metrics", "/admin/devices"} {
			if program, shown := send(http.MethodGet, path, ""), send(http.MethodGet, path, "", "Origin", page); program.StatusCode != 200 ||
				shown.StatusCode != 403 {
				t.Errorf("%s at %s is %s, and to the page %s", path, address, program.Status, shown.Status)
			}
		}
		if got := send(http.MethodGet, "/v1/models", "", "Origin", page); got.StatusCode != 200 ||
			got.Header.Get("Access-Control-Allow-Origin") != page {
			t.Errorf("at %s the page is shown %s %v", address, got.Status, got.Header)
		}
	}
}
