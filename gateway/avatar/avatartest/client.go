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

// Client is a connected program. It records the messages it receives.
type Client struct {
	Conn *socket.Conn

	t       testing.TB
	plain   func(message string) string
	reading sync.WaitGroup

	mu       sync.Mutex
	received []string
}

// mostMessage allows for a sentence with its sound.
const mostMessage = 16 << 20

// Dial connects until the test ends. plain, if not nil, removes from a message what is
// different each time; if it returns "", the message is skipped.
func Dial(t testing.TB, url string, plain func(message string) string) *Client {
	t.Helper()
	conn, err := socket.Dial(context.Background(), url, socket.Options{MaxMessage: mostMessage})
	must.Succeed(t, err)
	c := &Client{Conn: conn, t: t, plain: plain}
	t.Cleanup(c.Leave)
	return c
}

// Leave ends the connection, and waits for Listen.
func (c *Client) Leave() {
	c.Conn.Drop()
	c.reading.Wait()
}

func (c *Client) Send(text string) {
	c.t.Helper()
	must.Succeed(c.t, c.Conn.SendText([]byte(text)))
}

// Next returns the next message, after plain.
func (c *Client) Next() string {
	c.t.Helper()
	for {
		isText, message, err := c.Conn.Receive()
		if err != nil || !isText {
			c.t.Fatalf("no message came: text %t (%v)", isText, err)
		}
		if line := c.format(string(message)); line != "" {
			return line
		}
	}
}

// Expect checks the next messages.
func (c *Client) Expect(want ...string) {
	c.t.Helper()
	for i, w := range want {
		if got := c.Next(); got != w {
			c.t.Fatalf("message %d is\n%s, want\n%s", i, got, w)
		}
	}
}

// WaitClosed waits until the connection has ended, and returns the error.
func (c *Client) WaitClosed() error {
	for {
		if _, _, err := c.Conn.Receive(); err != nil {
			return err
		}
	}
}

// Listen records messages from now on, until the connection has ended.
func (c *Client) Listen() {
	c.reading.Go(func() {
		for {
			_, message, err := c.Conn.Receive()
			if err != nil {
				return
			}
			c.format(string(message))
		}
	})
}

// Transcript returns the recorded messages, one a line.
func (c *Client) Transcript() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.received, "\n")
}

func (c *Client) format(message string) (line string) {
	if line = message; c.plain != nil {
		line = c.plain(message)
	}
	if line != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.received = append(c.received, line)
	}
	return line
}

// Redial connects once the server has room: a previous connection may still be ending.
func Redial(t testing.TB, url string) *socket.Conn {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); ; {
		conn, err := socket.Dial(context.Background(), url, socket.Options{})
		var full *socket.Refusal
		if err == nil {
			return conn
		}
		if !errors.As(err, &full) || full.Status != http.StatusServiceUnavailable || time.Now().After(late) {
			t.Fatal(err)
		}
	}
}
