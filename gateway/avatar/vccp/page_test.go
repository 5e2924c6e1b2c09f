package vccp

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/must"
)

// upgrade asks for a WebSocket as a page does, which can set no other header
// than the names of subprotocols.
func (h *harness) upgrade(t *testing.T, path string, protocols ...string) *http.Response {
	t.Helper()
	host := strings.TrimPrefix(h.http.URL, "http://")
	c, err := net.Dial("tcp", host)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = c.Close() })
	must.Succeed(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n", path, host, host)
	for _, p := range protocols {
		fmt.Fprintf(c, "Sec-WebSocket-Protocol: %s\r\n", p)
	}
	fmt.Fprint(c, "\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	must.Succeed(t, err)
	return answer
}

// TestAPageComesWithItsKey: a browser breaks off where it has asked for
// subprotocols and is answered none of them, or one it has not asked for.
func TestAPageComesWithItsKey(t *testing.T) {
	h := newHarness(t)
	m := h.model(t)
	m.must("register-agent", nil)
	coded := base64.RawURLEncoding.EncodeToString([]byte(key))
	for asked, want := range map[string]string{"vccp.v1, bearer." + coded: "vccp.v1", "bearer." + coded + ", vccp.v1": "vccp.v1",
		"bearer." + coded: ""} {
		a := h.upgrade(t, "/vccp/"+m.ID(), asked)
		if got := a.Header.Get("Sec-Websocket-Protocol"); a.StatusCode != http.StatusSwitchingProtocols || got != want {
			t.Errorf("%.12s...: %s, in %q", asked, a.Status, got)
		}
	}
	for _, asked := range []string{"vccp.v1", "vccp.v1, bearer.d3Jvbmc"} {
		if a := h.upgrade(t, "/vccp/"+m.ID(), asked); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s", asked, a.Status)
		}
	}
}
