package vccp

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"perch/must"
)

// raw is a WebSocket by hand (RFC 6455): one that sees how it is closed.
type raw struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func (h *harness) raw(t testing.TB, path string) *raw {
	t.Helper()
	host := strings.TrimPrefix(h.http.URL, "http://")
	c, err := net.Dial("tcp", host)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = c.Close() })
	must.Succeed(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", path, host, key)
	r := &raw{t, c, bufio.NewReader(c)}
	answer, err := http.ReadResponse(r.in, nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%s: %v, %v", path, answer, err)
	}
	return r
}

// send sends a short text, with a mask of zeros.
func (r *raw) send(text string) {
	r.t.Helper()
	frame := append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
	if _, err := r.conn.Write(frame); err != nil || len(text) > 125 {
		r.t.Fatal(err)
	}
}

// ended reads how it is closed.
func (r *raw) ended() (code int, why string) {
	r.t.Helper()
	head := make([]byte, 2)
	if _, err := io.ReadFull(r.in, head); err != nil || head[0] != 0x88 || head[1] < 2 || head[1] > 125 {
		r.t.Fatalf("it ended with %x, %v", head, err)
	}
	text := make([]byte, head[1])
	if _, err := io.ReadFull(r.in, text); err != nil {
		r.t.Fatal(err)
	}
	return int(binary.BigEndian.Uint16(text)), string(text[2:])
}
