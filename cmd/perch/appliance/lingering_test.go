package appliance_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/must"
)

// TestRobotsCloseFirst checks that after a response on one of the robots' HTTP routes the server waits for the robot to
// close the connection, and that it closes connections of other routes itself.
func TestRobotsCloseFirst(t *testing.T) {
	h := appliancetest.Start(t, appliancetest.Config(), t.TempDir())
	ask := func(line string) (net.Conn, *bufio.Reader) {
		t.Helper()
		conn := must.Value(net.Dial("tcp", h.Listeners.Addresses()[0]))(t)
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn,
			line+" HTTP/1.1\r\nHost: 127.0.0.1\r\nDevice-Id: a0:b1:c2:d3:e4:f5\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(conn)
		answer := must.Value(http.ReadResponse(r, nil))(t)
		must.Value(io.ReadAll(answer.Body))(t)
		_ = answer.Body.Close()
		return conn, r
	}
	for n, line := range []string{
		"POST /xiaozhi/ota/", "GET /xiaozhi/ota", "POST /xiaozhi/ota/activate", "GET /xiaozhi/ota/firmware/none.bin", "POST /xiaozhi/vision/explain",
	} {
		conn, _ := ask(line)
		for h.Listeners.Lingering.Counts().Kept != uint64(n+1) {
			select {
			case <-t.Context().Done():
				t.Fatalf("%s: %+v", line, h.Listeners.Lingering.Counts())
			case <-time.After(time.Millisecond):
			}
		}
		_ = conn.Close()
	}
	before := h.Listeners.Lingering.Counts().Kept
	if _, r := ask("GET /health"); !isEnd(r) || h.Listeners.Lingering.Counts().Kept != before {
		t.Error("a route that is none of the robots' leaves its connection open")
	}
	if _, text := h.Request(http.MethodGet, "/health", ""); text == "" || strings.Contains(text, "panic") {
		t.Error("it does not go on")
	}
}

func isEnd(r *bufio.Reader) bool {
	_, err := r.ReadByte()
	return err == io.EOF
}
