package avatartest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/must"
	"perch/socket"
)

// Client is a connected program. It records the messages that it receives.
type Client struct {
	Conn *socket.Conn

	t         testing.TB
	normalize func(message string) string // parameter of Dial; may be nil
	listening sync.WaitGroup              // counts goroutines of Listen

	mu       sync.Mutex
	received []string // normalized messages
}

// maxMessage is the maximum size of a message in bytes, enough for a sentence with its sound.
const maxMessage = 16 << 20

// Dial connects, and closes the connection when the test ends. normalize removes the parts of a
// message that differ in each run; if it returns "", the message is skipped. normalize may be nil.
func Dial(t testing.TB, url string, normalize func(message string) string) *Client {
	t.Helper()
	conn, err := socket.Dial(context.Background(), url, socket.Options{MaxMessage: maxMessage})
	must.Succeed(t, err)
	c := &Client{Conn: conn, t: t, normalize: normalize}
	t.Cleanup(c.Leave)
	return c
}

// Leave ends the connection, and waits until Listen has stopped recording.
func (c *Client) Leave() {
	c.Conn.Drop()
	c.listening.Wait()
}

// Send sends a text message.
func (c *Client) Send(text string) {
	c.t.Helper()
	must.Succeed(c.t, c.Conn.SendText([]byte(text)))
}

// Next returns the next message, normalized.
func (c *Client) Next() string {
	c.t.Helper()
	for {
		isText, message, err := c.Conn.Receive()
		if err != nil || !isText {
			c.t.Fatalf("no text message was received: text %t (%v)", isText, err)
		}
		if line := c.record(string(message)); line != "" {
			return line
		}
	}
}

// Expect checks that the next messages are want.
func (c *Client) Expect(want ...string) {
	c.t.Helper()
	for i, w := range want {
		if got := c.Next(); got != w {
			c.t.Fatalf("message %d is\n%s, want\n%s", i, got, w)
		}
	}
}

// WaitClosed discards messages until the connection has ended, and returns the error with which
// receiving has failed.
func (c *Client) WaitClosed() error {
	for {
		if _, _, err := c.Conn.Receive(); err != nil {
			return err
		}
	}
}

// Listen records messages on another goroutine until the connection has ended.
func (c *Client) Listen() {
	c.listening.Go(func() {
		for {
			_, message, err := c.Conn.Receive()
			if err != nil {
				return
			}
			c.record(string(message))
		}
	})
}

// Transcript returns the recorded messages, one per line.
func (c *Client) Transcript() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.received, "\n")
}

// record normalizes and records a message. It returns "" for a message to skip.
func (c *Client) record(message string) (line string) {
	if line = message; c.normalize != nil {
		line = c.normalize(message)
	}
	if line != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.received = append(c.received, line)
	}
	return line
}

// Redial connects. If the server refuses because previous connections are still ending, Redial tries
// again for up to 20 s.
func Redial(t testing.TB, url string) *socket.Conn {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		conn, err := socket.Dial(context.Background(), url, socket.Options{})
		var refusal *socket.Refusal
		if err == nil {
			return conn
		}
		if !errors.As(err, &refusal) || refusal.Status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
