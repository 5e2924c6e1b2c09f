package appliancetest

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/must"
	"perch/socket"
)

// Avatar is an avatar program that receives messages by WebSocket. Like Warudo it answers none,
// unless a test has it answer.
type Avatar struct {
	Address string
	answer  func(text string) (answer string) // may be nil; an empty answer is not sent

	server   *http.Server
	serving  sync.WaitGroup
	mu       sync.Mutex
	messages []Transcript
	open     []*socket.Conn
}

// Transcript is a message that an avatar program has received.
type Transcript struct {
	At   time.Time
	Text string
}

// NewAvatar starts an avatar program at an address, or at a free one if that is empty. It ends with
// the test. After Kill another one can be started at the address.
func NewAvatar(t testing.TB, address string) *Avatar {
	t.Helper()
	return AnsweringAvatar(t, address, nil)
}

// AnsweringAvatar starts an avatar program that answers messages.
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
			a.messages = append(a.messages, Transcript{time.Now(), string(text)})
			a.mu.Unlock()
			if a.answer == nil {
				continue
			}
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

// All returns the messages that the program has received, in their order.
func (a *Avatar) All() []Transcript {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.messages)
}

// Of returns the messages that contain a text.
func (a *Avatar) Of(part string) []Transcript {
	return slices.DeleteFunc(a.All(), func(m Transcript) bool { return !strings.Contains(m.Text, part) })
}
