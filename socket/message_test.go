package socket_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"perch/must"
	"perch/socket"
)

// TestRoundTrip sends messages whose sizes are around the limits of the three encodings of a frame's length (RFC 6455
// section 5.2) and around the sizes of the buffers.
func TestRoundTrip(t *testing.T) {
	appliance, robot := pair(t, socket.Options{MaxMessage: 1 << 20})
	for _, ends := range [][2]*socket.Conn{{appliance, robot}, {robot, appliance}} {
		for _, size := range []int{0, 1, 125, 126, 1023, 1024, 1025, 4096, 65535, 65536, 1 << 20, 3} {
			sent := bytes.Repeat([]byte{byte(size), 0xff}, size/2+1)[:size]
			for _, text := range []bool{true, false} {
				done := make(chan error, 1)
				go func() {
					if text {
						done <- ends[0].SendText(sent)
					} else {
						done <- ends[0].SendBinary(sent)
					}
				}()
				isText, got, err := ends[1].Receive()
				if err != nil || isText != text || !bytes.Equal(got, sent) {
					t.Fatalf("%d bytes, text %t: received %d bytes, text %t (%v)", size, text, len(got), isText, err)
				}
				must.Succeed(t, <-done)
			}
		}
	}
}

func TestFragmentsAreOneMessage(t *testing.T) {
	appliance, peer, _ := raw(t, socket.Options{MaxMessage: 100})
	send(t, peer, "one ", "two ", "three")
	if isText, got, err := appliance.Receive(); err != nil || !isText || string(got) != "one two three" {
		t.Errorf("received %q, text %t (%v)", got, isText, err)
	}
}

// send sends a message in fragments.
func send(t *testing.T, peer *websocket.Conn, fragments ...string) {
	t.Helper()
	w, err := peer.NextWriter(websocket.TextMessage)
	must.Succeed(t, err)
	for _, f := range fragments {
		_, err := w.Write([]byte(f))
		must.Succeed(t, err)
	}
	must.Succeed(t, w.Close())
}

func TestTooBig(t *testing.T) {
	small := bytes.Repeat([]byte("x"), 5000)
	for name, message := range map[string][]byte{
		"by one byte": append(bytes.Clone(small), 'x'),
		"by far":      bytes.Repeat(small, 20),
	} {
		t.Run(name, func(t *testing.T) {
			appliance, peer, _ := raw(t, socket.Options{MaxMessage: 5000})
			must.Succeed(t, peer.WriteMessage(websocket.BinaryMessage, small))
			if _, got, err := appliance.Receive(); err != nil || len(got) != 5000 {
				t.Fatalf("at the limit: %d bytes (%v)", len(got), err)
			}
			must.Succeed(t, peer.WriteMessage(websocket.BinaryMessage, message))
			if _, got, err := appliance.Receive(); !errors.Is(err, socket.ErrTooBig) || got != nil {
				t.Fatalf("over the limit: %d bytes (%v)", len(got), err)
			}
			if _, _, err := appliance.Receive(); !errors.Is(err, socket.ErrTooBig) {
				t.Errorf("the error is not final: %v", err)
			}
			if _, _, err := peer.ReadMessage(); !websocket.IsCloseError(err, socket.TooBig) {
				t.Errorf("the other side learns %v, want close code 1009", err)
			}
		})
	}
}

// TestTooBigInFragments checks that MaxMessage limits the whole message, and not each fragment.
func TestTooBigInFragments(t *testing.T) {
	appliance, peer, _ := raw(t, socket.Options{MaxMessage: 9000})
	// The library sends a fragment whenever its buffer of 4096 bytes is full.
	send(t, peer, string(make([]byte, 4096)), string(make([]byte, 4096)), string(make([]byte, 4096)))
	if _, _, err := appliance.Receive(); !errors.Is(err, socket.ErrTooBig) {
		t.Errorf("received with %v", err)
	}
}

// TestPingIsAnswered checks that a running Receive responds to a ping.
func TestPingIsAnswered(t *testing.T) {
	appliance, peer, _ := raw(t, socket.Options{MaxMessage: 100})
	received := make(chan error)
	go func() { _, _, err := appliance.Receive(); received <- err }()
	pong := errors.New("pong")
	peer.SetPongHandler(func(text string) error {
		if text != "are you there" {
			t.Errorf("pong %q", text)
		}
		return pong
	})
	must.Succeed(t, peer.WriteControl(websocket.PingMessage, []byte("are you there"), time.Now().Add(5*time.Second)))
	if _, _, err := peer.ReadMessage(); !errors.Is(err, pong) {
		t.Errorf("no pong: %v", err)
	}
	must.Succeed(t, peer.Close())
	if err := <-received; err != io.EOF {
		t.Errorf("received %v", err)
	}
}

// TestInvalidFramesEndTheSocket checks that for an invalid frame Receive returns neither a message nor io.EOF, but
// another error.
func TestInvalidFramesEndTheSocket(t *testing.T) {
	for name, bytes := range map[string]string{
		"without a mask":    "\x82\x01x",
		"reserved bits":     "\xf2\x81\x00\x00\x00\x00x",
		"a reserved opcode": "\x83\x81\x00\x00\x00\x00x",
		"a lone fragment":   "\x80\x81\x00\x00\x00\x00x",
		"a long ping":       "\x89\xfe\x00\x7e\x00\x00\x00\x00",
		"a torn ping":       "\x09\x81\x00\x00\x00\x00x",
		"negative length":   "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00",
		"HTTP":              "GET / HTTP/1.1\r\n\r\n",
	} {
		appliance, _, tcp := raw(t, socket.Options{MaxMessage: 100})
		_, err := tcp.Write([]byte(bytes))
		must.Succeed(t, err)
		if _, got, err := appliance.Receive(); err == nil || err == io.EOF || got != nil {
			t.Errorf("%s: received %q (%v)", name, got, err)
		}
	}
}
