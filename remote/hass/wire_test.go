package hass

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const canary = "eyCanary-token_0123456789abcdef.x"

// peer is Home Assistant's end of a WebSocket, byte by byte: what no library
// would send can be sent.
type peer struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

// serve runs a script for each connection to /api/websocket.
func serve(t testing.TB, script func(*peer)) *Client {
	t.Helper()
	var running sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/websocket" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		key := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		running.Add(1)
		defer running.Done()
		defer func() { _ = conn.Close() }()
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
			base64.StdEncoding.EncodeToString(key[:]))
		script(&peer{t, conn, rw.Reader})
	}))
	t.Cleanup(func() { running.Wait(); server.Close() })
	return client(t, server.URL, Options{})
}

func client(t testing.TB, url string, o Options) *Client {
	t.Helper()
	o.URL, o.Token = url, canary
	c, err := New(o)
	must.Succeed(t, err)
	t.Cleanup(c.Close)
	return c
}

// dial connects, until the test ends.
func dial(t testing.TB, c *Client) *Conn {
	t.Helper()
	conn, err := c.Dial(t.Context())
	must.Succeed(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// frame writes one frame, without a mask as servers do.
func (p *peer) frame(first byte, payload string) {
	head := []byte{first}
	switch n := len(payload); {
	case n < 126:
		head = append(head, byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 127), uint64(n))
	}
	_, _ = p.conn.Write(append(head, payload...)) // the other side may have left
}

func (p *peer) text(format string, args ...any) { p.frame(0x81, fmt.Sprintf(format, args...)) }

// split sends a message in fragments of three bytes, each byte a write.
func (p *peer) split(message string) {
	var wire []byte
	for i := 0; i < len(message); i += 3 {
		end, first := min(i+3, len(message)), byte(0)
		if i == 0 {
			first = 1
		}
		if end == len(message) {
			first |= 0x80
		}
		wire = append(append(wire, first, byte(end-i)), message[i:end]...)
	}
	for i := range wire {
		_, _ = p.conn.Write(wire[i : i+1])
	}
}

// read returns the next frame of the client's; opcode 8 at the end.
func (p *peer) read() (opcode byte, payload []byte) {
	var head [14]byte
	if _, err := io.ReadFull(p.r, head[:2]); err != nil {
		return 8, nil
	}
	n, at := int(head[1]&0x7f), 2
	switch n {
	case 126:
		_, _ = io.ReadFull(p.r, head[2:4])
		n, at = int(binary.BigEndian.Uint16(head[2:])), 4
	case 127:
		_, _ = io.ReadFull(p.r, head[2:10])
		n, at = int(binary.BigEndian.Uint64(head[2:])), 10
	}
	mask := head[at : at+4]
	_, _ = io.ReadFull(p.r, mask)
	payload = make([]byte, n)
	if _, err := io.ReadFull(p.r, payload); err != nil {
		return 8, nil
	}
	for i := range payload {
		payload[i] ^= mask[i%4]
	}
	return head[0] & 0xf, payload
}

// command reads a command; nil at the end.
func (p *peer) command() map[string]any {
	for {
		opcode, payload := p.read()
		switch opcode {
		case 8:
			return nil
		case 1:
			var m map[string]any
			if err := json.Unmarshal(payload, &m); err != nil {
				p.t.Error(err)
			}
			return m
		}
	}
}

// greet lets the client in.
func (p *peer) greet() {
	p.text(`{"type":"auth_required","ha_version":"2026.11.0"}`)
	if m := p.command(); m["type"] != "auth" || m["access_token"] != canary {
		p.t.Errorf("authenticated with %v", m)
	}
	p.text(`{"type":"auth_ok","ha_version":"2026.11.0"}`)
}

// hangUp waits until the client leaves.
func (p *peer) hangUp() {
	for {
		if opcode, _ := p.read(); opcode == 8 {
			return
		}
	}
}

// sentence asks for one that holds some words, and no token.
func sentence(t testing.TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %q", words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if text := err.Error(); strings.Contains(text, canary[2:20]) || strings.ContainsAny(text, "\n\r") || len(text) > 600 {
		t.Errorf("not a sentence, or holds the token: %q", text)
	}
}

const soon = 5 * time.Second
