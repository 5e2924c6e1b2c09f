package vccp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/socket"
)

// Limits of a character.
const (
	mostCategories = 32              // of perceptions that are stored
	sendWithin     = 5 * time.Second // to read an action
)

// subprotocol is requested by pages together with the subprotocol that contains their key
// (httpserver.InUpgrade); the answer names it.
const subprotocol = "vccp.v1"

// client is a character that is connected by WebSocket.
type client struct {
	conn    *socket.Conn
	address string
	since   time.Time
	sending sync.Mutex // one action at a time

	mu     sync.Mutex
	can    json.RawMessage // capability, nil until it is received
	sensed []message       // the latest of each category, in the order of their first ones
}

func (c *client) capability() json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.can
}

func (c *client) perceptions(time.Time) []message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sensed)
}

// play sends an action. A character that does not read it in time is disconnected.
func (c *client) play(_ context.Context, action message) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := c.conn.SendText(httpserver.Encode(action)); err != nil {
		c.conn.Close(socket.TryLater, "it did not read")
		return fmt.Errorf("the character does not take it: %w", err)
	}
	return nil
}

// handleMessage stores a character's capability or perception. An invalid message, and a
// perception before the capability, is dropped.
func (c *client) handleMessage(text []byte, now time.Time) {
	m, err := parseMessage(text, now)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Type == typeSystem && m.Category == capability:
		c.can, c.sensed = m.Data, nil
	case m.Type == typePerception && c.can != nil:
		i := slices.IndexFunc(c.sensed, func(known message) bool { return known.Category == m.Category })
		switch {
		case i >= 0:
			c.sensed[i] = m
		case len(c.sensed) < mostCategories:
			c.sensed = append(c.sensed, m)
		}
	}
}

// ping sends pings until over is closed. The answers keep the connection from being broken.
func (c *client) ping(every time.Duration, over <-chan struct{}) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = c.conn.Ping() // if it fails, Receive fails too
		case <-over:
			return
		}
	}
}

// serveCharacter serves the WebSocket of a character until it ends.
func (s *Server) serveCharacter(w http.ResponseWriter, r *http.Request, session string) {
	conn, err := socket.Accept(w, r, socket.Options{MaxMessage: limit.Instructions, SendWithin: sendWithin, Quiet: s.quiet, PerSecond: mostMessages,
		Subprotocols: []string{subprotocol}})
	if err != nil {
		return // Accept has answered
	}
	if session == "" {
		conn.Close(socket.Violation, "Session ID required")
		return
	}
	defer context.AfterFunc(r.Context(), func() { conn.Close(socket.GoingAway, "the key was changed") })()
	c := &client{conn: conn, address: r.RemoteAddr, since: time.Now()}
	if err := s.enter(session, c); err != nil {
		conn.Close(socket.Violation, err.Error())
		return
	}
	defer s.connectionsChanged()
	defer s.exit(session, c)
	s.connectionsChanged()
	var pinging sync.WaitGroup
	defer pinging.Wait()
	over := make(chan struct{})
	defer close(over)
	pinging.Go(func() { c.ping(s.quiet/2, over) })
	for {
		isText, text, err := conn.Receive()
		if err != nil {
			code := socket.Normal
			if err == socket.ErrTooBig {
				code = socket.TooBig
			}
			conn.Close(code, "")
			return
		}
		if isText {
			c.handleMessage(text, time.Now())
		}
	}
}

// connectionsChanged publishes that a character has connected or left.
func (s *Server) connectionsChanged() { s.o.Bus.Publish("", "", event.Changed{What: "connections"}) }

// Character is a connected character.
type Character struct {
	Address string // host:port
	Since   time.Time
}

// Connected returns the characters connected by WebSocket in the order of their connection.
func (s *Server) Connected() []Character {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Character{}
	for c := range s.sockets {
		all = append(all, Character{c.address, c.since})
	}
	slices.SortFunc(all, func(a, b Character) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Address, b.Address)) })
	return all
}
