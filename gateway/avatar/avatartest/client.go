package avatartest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"perch/must"
	"perch/socket"
)

// Client is a program that is connected to a door. It notes what it is told.
type Client struct {
	Conn *socket.Conn

	t       testing.TB
	plain   func(message string) string
	reading sync.WaitGroup

	mu   sync.Mutex
	told []string
}

// mostMessage is what a client reads of one message: a sentence with its sound.
const mostMessage = 16 << 20

// Dial connects. plain is a message without what no two have alike, or nothing for one
// that is not looked at; nil takes messages as they are.
func Dial(t testing.TB, url string, plain func(message string) string) *Client {
	t.Helper()
	conn, err := socket.Dial(context.Background(), url, socket.Options{MaxMessage: mostMessage})
	must.Succeed(t, err)
	c := &Client{Conn: conn, t: t, plain: plain}
	t.Cleanup(c.Leave)
	return c
}

// Leave ends the connection, and returns when nothing is read any more.
func (c *Client) Leave() {
	c.Conn.Drop()
	c.reading.Wait()
}

// Send sends a message.
func (c *Client) Send(text string) {
	c.t.Helper()
	must.Succeed(c.t, c.Conn.SendText([]byte(text)))
}

// Next is the next message, plainly.
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

// Expect compares the messages that come next.
func (c *Client) Expect(want ...string) {
	c.t.Helper()
	for i, w := range want {
		if got := c.Next(); got != w {
			c.t.Fatalf("message %d is\n%s, want\n%s", i, got, w)
		}
	}
}

// WaitClosed waits until the connection is over, and returns why.
func (c *Client) WaitClosed() error {
	for {
		if _, _, err := c.Conn.Receive(); err != nil {
			return err
		}
	}
}

// Listen reads what comes from now on, until the connection is over.
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

// Transcript is what was read so far, plainly, a message a line.
func (c *Client) Transcript() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.told, "\n")
}

func (c *Client) format(message string) (line string) {
	if line = message; c.plain != nil {
		line = c.plain(message)
	}
	if line != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.told = append(c.told, line)
	}
	return line
}
