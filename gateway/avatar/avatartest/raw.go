package avatartest

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perch/gateway/httpserver/httpservertest"
	"perch/must"
)

// Raw is the client's side of a WebSocket (RFC 6455). The test reads every frame, including pings and
// the close frame, and Raw does not respond to them.
type Raw struct {
	net.Conn
	R *bufio.Reader
	t testing.TB
}

// DialRaw opens a WebSocket at a path of the server that url names, and closes the connection when the
// test ends. headers are lines such as "Authorization: Bearer x".
func DialRaw(t testing.TB, url, path string, headers ...string) *Raw {
	t.Helper()
	_, host, _ := strings.Cut(url, "://")
	conn, err := net.Dial("tcp", host)
	must.Succeed(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return Upgrade(t, conn, path, headers...)
}

// Pipe calls run, which runs a server until the test ends, and returns a WebSocket to the server's
// handler open. The connection is in memory, so that it works in a synctest bubble.
func Pipe(t testing.TB, run func(context.Context), open func(http.ResponseWriter, *http.Request) error, headers ...string) *Raw {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return Upgrade(t, httpservertest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := open(w, r); err != nil {
			t.Error(err)
		}
	})), "/", headers...)
}

// NewRaw returns a Raw for a connection. The caller must then call Handshake.
func NewRaw(t testing.TB, conn net.Conn) *Raw { return &Raw{conn, bufio.NewReader(conn), t} }

// Upgrade does the handshake on a connection, and returns its Raw.
func Upgrade(t testing.TB, conn net.Conn, path string, headers ...string) *Raw {
	t.Helper()
	r := NewRaw(t, conn)
	if response := r.Handshake(path, headers...); response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%s: %s", path, response.Status)
	}
	return r
}

// Handshake requests an upgrade, and returns the response.
func (r *Raw) Handshake(path string, headers ...string) *http.Response {
	r.t.Helper()
	host := r.RemoteAddr().String()
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = "127.0.0.1" // conn is a pipe, which has no host
	}
	fmt.Fprintf(r, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n", path, host,
		strings.Join(append(headers, ""), "\r\n"))
	response, err := http.ReadResponse(r.R, nil)
	must.Succeed(r.t, err)
	return response
}

// ReadFrame reads a frame, whose data must have at most 64 KB.
func (r *Raw) ReadFrame() (opcode byte, data []byte, err error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(r.R, head); err != nil {
		return 0, nil, err
	}
	size := int(head[1] & 0x7f)
	if size == 126 {
		long := make([]byte, 2)
		if _, err := io.ReadFull(r.R, long); err != nil {
			return 0, nil, err
		}
		size = int(binary.BigEndian.Uint16(long))
	}
	data = make([]byte, size)
	_, err = io.ReadFull(r.R, data)
	return head[0] & 0x0f, data, err
}

// ReadClose reads frames up to the close frame. It returns the code and the reason of that frame, and
// the text messages that preceded it.
func (r *Raw) ReadClose() (code int, reason string, texts []string) {
	r.t.Helper()
	must.Succeed(r.t, r.SetReadDeadline(time.Now().Add(20*time.Second)))
	for {
		opcode, data, err := r.ReadFrame()
		switch {
		case err != nil:
			r.t.Fatalf("after %d texts: %v", len(texts), err)
		case opcode == 8:
			return int(binary.BigEndian.Uint16(data)), string(data[2:]), texts
		case opcode == 1:
			texts = append(texts, string(data))
		}
	}
}

// SendShort sends a text message, which must have less than 126 bytes. The mask is all zeros.
func (r *Raw) SendShort(text string) {
	r.t.Helper()
	_, err := r.Write(append([]byte{0x81, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...))
	must.Succeed(r.t, err)
}

// CheckKeepAlive checks, on virtual time, that the server keeps a connection while it responds to
// pings, and ends the connection after the time quiet without a message or pong. The client sends
// text before it stops responding. connected must return the server's number of connections.
// CheckKeepAlive returns the text messages that were received.
func (r *Raw) CheckKeepAlive(quiet time.Duration, text string, connected func() int) (texts []string) {
	r.t.Helper()
	var dead atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			opcode, data, err := r.ReadFrame()
			switch {
			case err != nil:
				return
			case opcode == 1:
				texts = append(texts, string(data))
			case opcode == 9 && !dead.Load():
				_, _ = r.Write([]byte{0x8a, 0x80, 0, 0, 0, 0})
			}
		}
	}()
	time.Sleep(10 * quiet)
	r.SendShort(text)
	synctest.Wait()
	dead.Store(true)
	time.Sleep(quiet - 1)
	if synctest.Wait(); connected() != 1 {
		r.t.Error("the server ended the connection too early")
	}
	time.Sleep(time.Nanosecond)
	if synctest.Wait(); connected() != 0 {
		r.t.Error("the server did not end the connection")
	}
	<-ended
	return texts
}
