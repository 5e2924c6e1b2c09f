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

// Limits of a character that is connected by WebSocket.
const (
	maxCategories = 32              // stored perceptions, one for each category
	sendTimeout   = 5 * time.Second // for sending an action
)

// subprotocol is the WebSocket subprotocol that the response selects. A web page requests it
// together with a second subprotocol, which contains the page's key (httpserver.InUpgrade).
const subprotocol = "vccp.v1"

// client is a character that is connected by WebSocket.
type client struct {
	conn    *socket.Conn
	address string // host:port
	since   time.Time
	sending sync.Mutex // held while an action is sent

	mu     sync.Mutex
	can    json.RawMessage // data of the latest capability message; nil before the first one
	latest []message       // latest perception of each category, in the order that the categories first appeared
}

// capability implements character.
func (c *client) capability() json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.can
}

// perceptions implements character.
func (c *client) perceptions(time.Time) []message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.latest)
}

// play sends an action. A character that does not read the action in time is disconnected.
func (c *client) play(_ context.Context, action message) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := c.conn.SendText(httpserver.Encode(action)); err != nil {
		c.conn.Close(socket.TryLater, "you do not read fast enough")
		return fmt.Errorf("send the action to the character: %w", err)
	}
	return nil
}

// handleMessage stores a perception or a capability. A capability replaces the previous one and discards
// all perceptions. handleMessage drops everything else: invalid messages, messages of other types,
// perceptions that arrive before the capability, and perceptions of a new category if maxCategories are
// stored.
func (c *client) handleMessage(text []byte, now time.Time) {
	m, err := parseMessage(text, now)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Type == typeSystem && m.Category == capability:
		c.can, c.latest = m.Data, nil
	case m.Type == typePerception && c.can != nil:
		i := slices.IndexFunc(c.latest, func(stored message) bool { return stored.Category == m.Category })
		switch {
		case i >= 0:
			c.latest[i] = m
		case len(c.latest) < maxCategories:
			c.latest = append(c.latest, m)
		}
	}
}

// ping sends pings until stop is closed; every is the interval. The pongs show that a silent character
// is still connected.
func (c *client) ping(every time.Duration, stop <-chan struct{}) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = c.conn.Ping() // if it fails, Receive fails too
		case <-stop:
			return
		}
	}
}

// serveCharacter serves the WebSocket of a character until the connection ends.
func (s *Server) serveCharacter(w http.ResponseWriter, r *http.Request, session string) {
	conn, err := socket.Accept(w, r, socket.Options{MaxMessage: limit.Instructions, SendWithin: sendTimeout, Quiet: s.quiet, PerSecond: maxMessages,
		Subprotocols: []string{subprotocol}})
	if err != nil {
		return // socket.Accept has sent the response
	}
	if session == "" {
		conn.Close(socket.Violation, "Session ID required")
		return
	}
	defer context.AfterFunc(r.Context(), func() { conn.Close(socket.GoingAway, "access has ended") })()
	c := &client{conn: conn, address: r.RemoteAddr, since: time.Now()}
	if err := s.attach(session, c); err != nil {
		conn.Close(socket.Violation, err.Error())
		return
	}
	defer s.publishConnections()
	defer s.detach(session, c)
	s.publishConnections()
	var pinging sync.WaitGroup
	defer pinging.Wait()
	ended := make(chan struct{})
	defer close(ended)
	pinging.Go(func() { c.ping(s.quiet/2, ended) })
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

// publishConnections publishes that a character has connected or disconnected.
func (s *Server) publishConnections() { s.o.Bus.Publish("", "", event.Changed{What: "connections"}) }

// Character is a character that is connected by WebSocket.
type Character struct {
	Address string // host:port
	Since   time.Time
}

// Connected returns the characters that are connected by WebSocket, oldest connection first.
func (s *Server) Connected() []Character {
	s.mu.Lock()
	defer s.mu.Unlock()
	characters := []Character{}
	for c := range s.sockets {
		characters = append(characters, Character{c.address, c.since})
	}
	slices.SortFunc(characters, func(a, b Character) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Address, b.Address)) })
	return characters
}
