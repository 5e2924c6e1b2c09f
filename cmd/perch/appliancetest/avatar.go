package appliancetest

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/must"
	"perch/socket"
)

// Avatar is an avatar program that takes messages by WebSocket. As Warudo, it answers
// nothing unless a test has it.
type Avatar struct {
	Address string
	answer  func(text string) (answer string) // empty is none

	server  *http.Server
	serving sync.WaitGroup
	mu      sync.Mutex
	told    []Transcript
	open    []*socket.Conn
}

// Transcript is a message to an avatar program, and when it came.
type Transcript struct {
	At   time.Time
	Text string
}

// NewAvatar starts one at an address, or anywhere where that is empty. It ends with the
// test. Once it was killed, its address is free for it to be started there again.
func NewAvatar(t testing.TB, address string) *Avatar {
	t.Helper()
	return AnsweringAvatar(t, address, func(string) string { return "" })
}

// AnsweringAvatar starts one that answers.
func AnsweringAvatar(t testing.TB, address string, answer func(text string) string) *Avatar {
	t.Helper()
	if address == "" {
		address = FreeAddress(t)
	}
	l := must.Value(net.Listen("tcp", address))(t)
	a := &Avatar{Address: l.Addr().String(), answer: answer}
	a.server = &http.Server{Handler: http.HandlerFunc(a.serve)}
	a.serving.Go(func() { _ = a.server.Serve(l) })
	t.Cleanup(a.Kill)
	return a
}

func (a *Avatar) serve(w http.ResponseWriter, r *http.Request) {
	c, err := socket.Accept(w, r, socket.Options{MaxMessage: 1 << 16})
	if err != nil {
		return
	}
	a.mu.Lock()
	a.open = append(a.open, c)
	a.mu.Unlock()
	a.serving.Go(func() {
		defer c.Drop()
		for {
			_, text, err := c.Receive()
			if err != nil {
				return
			}
			a.mu.Lock()
			a.told = append(a.told, Transcript{time.Now(), string(text)})
			a.mu.Unlock()
			if answer := a.answer(string(text)); answer != "" && c.SendText([]byte(answer)) != nil {
				return
			}
		}
	})
}

// Kill ends the program with all its connections.
func (a *Avatar) Kill() {
	_ = a.server.Close()
	a.mu.Lock()
	for _, c := range a.open {
		c.Drop()
	}
	a.mu.Unlock()
	a.serving.Wait()
}

// All is what it was told so far, in its order.
func (a *Avatar) All() []Transcript {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Transcript(nil), a.told...)
}

// Of are the messages that contain a part.
func (a *Avatar) Of(part string) (all []Transcript) {
	for _, m := range a.All() {
		if strings.Contains(m.Text, part) {
			all = append(all, m)
		}
	}
	return all
}
