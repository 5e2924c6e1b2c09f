package socket_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"perch/must"
	"perch/socket"
)

// hijacked is a ResponseWriter whose Hijack returns conn, a connection in memory.
type hijacked struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}

// piped is like raw, but connects the two ends by a pipe in memory, so that it works in a synctest bubble.
func piped(t *testing.T, o socket.Options) (appliance *socket.Conn, peer *websocket.Conn, tcp net.Conn) {
	t.Helper()
	theirs, ours := net.Pipe()
	accepted := make(chan *socket.Conn, 1)
	go func() {
		defer close(accepted)
		r, err := http.ReadRequest(bufio.NewReader(ours))
		if err != nil {
			t.Error(err)
			return
		}
		c, err := socket.Accept(hijacked{httptest.NewRecorder(), ours}, r, o)
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- c
	}()
	dialer := websocket.Dialer{NetDialContext: func(context.Context, string, string) (net.Conn, error) { return theirs, nil }}
	peer, answer, err := dialer.DialContext(t.Context(), "ws://perch.local/", nil)
	must.Succeed(t, err)
	_ = answer.Body.Close() // the body is empty
	appliance = <-accepted
	t.Cleanup(appliance.Drop)
	t.Cleanup(func() { _ = theirs.Close() })
	return appliance, peer, theirs
}

// trusted returns a server's TLS configuration with a certificate for example.com that this process trusts.
func trusted(t *testing.T) *tls.Config {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	file := filepath.Join(t.TempDir(), "roots.pem")
	must.Succeed(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	t.Setenv("SSL_CERT_FILE", file) // crypto/x509 reads it only once in a process
	return &tls.Config{Certificates: server.TLS.Certificates}
}

// dialed returns a Conn that Dial has opened over a pipe in memory, and the server's end of the pipe. The connection uses
// TLS unless secure is nil.
func dialed(t *testing.T, o socket.Options, secure *tls.Config) (ours *socket.Conn, server net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	url := "ws://example.com/"
	if secure != nil {
		url, far = "wss://example.com/", tls.Server(far, secure)
	}
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		r, err := http.ReadRequest(bufio.NewReader(far))
		if err == nil {
			_, err = new(websocket.Upgrader).Upgrade(hijacked{httptest.NewRecorder(), far}, r, nil)
		}
		if err != nil {
			t.Error(err)
		}
	}()
	ours, err := socket.DialOver(t.Context(), near, url, o)
	must.Succeed(t, err)
	<-accepted
	t.Cleanup(ours.Drop)
	t.Cleanup(func() { _ = far.Close() })
	return ours, far
}

// TestControlFrames checks that the rate of idle frames is limited, for every kind of idle frame and for connections of
// Accept and of Dial, and that a message after them still arrives.
func TestControlFrames(t *testing.T) {
	secure := trusted(t)
	const (
		most = 50 // idle frames per second
		mask = "\x00\x00\x00\x00"
	)
	for end, open := range map[string]func(*testing.T, socket.Options) (*socket.Conn, net.Conn){
		"accepted": func(t *testing.T, o socket.Options) (*socket.Conn, net.Conn) {
			ours, _, tcp := piped(t, o)
			return ours, tcp
		},
		"dialed":         func(t *testing.T, o socket.Options) (*socket.Conn, net.Conn) { return dialed(t, o, nil) },
		"dialed, in TLS": func(t *testing.T, o socket.Options) (*socket.Conn, net.Conn) { return dialed(t, o, secure) },
	} {
		// Only a client's frames have a mask.
		frame := func(first, length byte, long, payload string) string {
			if end == "accepted" {
				return string([]byte{first, 0x80 | length}) + long + mask + payload
			}
			return string([]byte{first, length}) + long + payload
		}
		word, hi := frame(0x81, 2, "", "hi"), frame(0x80, 2, "", "hi")
		begun := frame(0x01, 0, "", "")
		for name, c := range map[string]struct{ first, again, last string }{
			"pings":            {"", frame(0x89, 0, "", ""), word},
			"pings with words": {"", frame(0x89, 125, "", strings.Repeat("x", 125)), word},
			"pongs":            {"", frame(0x8a, 0, "", ""), word},
			"empty fragments":  {begun, frame(0, 0, "", ""), hi},
			"a letter each":    {begun, frame(0, 1, "", "x"), hi},
			"empty, in 64 bit": {begun, frame(0, 127, "\x00\x00\x00\x00\x00\x00\x00\x00", ""), hi},
		} {
			t.Run(end+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					appliance, tcp := open(t, socket.Options{MaxMessage: 100_000, PerSecond: 250})
					go func() { _, _ = io.Copy(io.Discard, tcp) }() // discards pongs
					received := make(chan string, 1)
					go func() {
						_, data, _ := appliance.Receive()
						received <- string(data)
					}()
					_, err := io.WriteString(tcp, c.first)
					must.Succeed(t, err)
					var sent atomic.Int64
					enough := make(chan struct{})
					go func() {
						for range 10_000 {
							select {
							case <-enough:
								_, _ = io.WriteString(tcp, c.last)
								return
							default:
							}
							if _, err := io.WriteString(tcp, c.again); err != nil {
								return
							}
							sent.Add(1)
						}
					}()
					time.Sleep(time.Minute)
					if n := sent.Load(); n < 59*most || n > 62*most {
						t.Errorf("%d were read in a minute, want %d", n, 60*most)
					}
					close(enough)
					time.Sleep(time.Second)
					if len(received) != 1 || !strings.HasSuffix(<-received, "hi") {
						t.Error("the message behind it was not received")
					}
				})
			})
		}
	}
}

// TestAPacedSocketEndsAtOnce checks that Drop ends a Receive that waits because of too many idle frames.
func TestAPacedSocketEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		appliance, _, tcp := piped(t, socket.Options{})
		go func() { _, _ = io.Copy(io.Discard, tcp) }()
		go func() {
			for {
				if _, err := io.WriteString(tcp, strings.Repeat("\x8a\x80\x00\x00\x00\x00", 600)); err != nil {
					return
				}
			}
		}()
		ended := make(chan time.Time, 1)
		go func() {
			_, _, _ = appliance.Receive()
			ended <- time.Now()
		}()
		time.Sleep(5 * time.Second)
		began := time.Now()
		appliance.Drop()
		if took := (<-ended).Sub(began); took != 0 {
			t.Errorf("it went on for %v", took)
		}
	})
}

// TestHonestFramesDoNotWait checks that an ordinary mix of frames is received without a wait: a ping, a message in many
// fragments, and many whole messages.
func TestHonestFramesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		appliance, _, tcp := piped(t, socket.Options{MaxMessage: 1 << 20, PerSecond: 250})
		go func() { _, _ = io.Copy(io.Discard, tcp) }()
		const mask = "\x00\x00\x00\x00"
		large := "\x00\xfe\x10\x00" + mask + strings.Repeat("x", 4096)
		message := "\x01\x83" + mask + "one" + strings.Repeat("\x00\x83"+mask+"two", 20) + strings.Repeat(large, 100) + "\x80\x80" + mask
		go func() {
			_, _ = io.WriteString(tcp, "\x89\x80"+mask+message)
			for range 200 {
				_, _ = io.WriteString(tcp, "\x82\xa0"+mask+strings.Repeat("x", 32))
			}
		}()
		began := time.Now()
		for n := range 201 {
			if _, _, err := appliance.Receive(); err != nil {
				t.Fatalf("message %d: %v", n, err)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}
