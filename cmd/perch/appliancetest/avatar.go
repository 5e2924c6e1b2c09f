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

// Avatar is a fake avatar program that receives messages by WebSocket. It replies only if it was made by
// NewReplyingAvatar.
type Avatar struct {
	Address string
	reply   func(text string) string // returns the reply to a message, or "" for no reply; may be nil

	server   *http.Server
	serving  sync.WaitGroup
	mu       sync.Mutex
	messages []AvatarMessage
	open     []*socket.Conn
}

// AvatarMessage is a message that an Avatar has received.
type AvatarMessage struct {
	At   time.Time
	Text string
}

// NewAvatar starts an avatar program at an address, or at a free one if address is empty. The program ends with
// the test. After Kill another program can be started at the same address.
func NewAvatar(t testing.TB, address string) *Avatar {
	t.Helper()
	return NewReplyingAvatar(t, address, nil)
}

// NewReplyingAvatar starts an avatar program that replies to messages.
func NewReplyingAvatar(t testing.TB, address string, reply func(text string) string) *Avatar {
	t.Helper()
	if address == "" {
		address = FreeAddress(t)
	}
	l := must.Value(net.Listen("tcp", address))(t)
	a := &Avatar{Address: l.Addr().String(), reply: reply}
	a.server = &http.Server{Handler: http.HandlerFunc(a.serve)}
	a.serving.Go(func() { _ = a.server.Serve(l) })
	t.Cleanup(a.Kill)
	return a
}

// serve accepts a connection and records its messages.
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
			a.messages = append(a.messages, AvatarMessage{time.Now(), string(text)})
			a.mu.Unlock()
			if a.reply == nil {
				continue
			}
			if reply := a.reply(string(text)); reply != "" && c.SendText([]byte(reply)) != nil {
				return
			}
		}
	})
}

// Kill ends the program and its connections.
func (a *Avatar) Kill() {
	_ = a.server.Close()
	a.mu.Lock()
	for _, c := range a.open {
		c.Drop()
	}
	a.mu.Unlock()
	a.serving.Wait()
}

// All returns the messages that the program has received, oldest first.
func (a *Avatar) All() []AvatarMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.messages)
}

// Containing returns the messages that contain a text.
func (a *Avatar) Containing(part string) []AvatarMessage {
	return slices.DeleteFunc(a.All(), func(m AvatarMessage) bool { return !strings.Contains(m.Text, part) })
}
