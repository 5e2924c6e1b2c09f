package openclaw

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
	"perch/limit"
	"perch/plain"
	"perch/socket"
)

// connection is the connection of one client. One goroutine receives frames, and one goroutine for
// each text that is being answered passes on the reply. The goroutine that runs serve handles the
// frames and sends all messages. Only this goroutine may use the field asking and the fields after it.
type connection struct {
	server *Server
	conn   *socket.Conn
	remote string // address of the client, host:port
	log    *slog.Logger
	id     string // random ID of the connection, for the client

	frames   chan frame     // received frames
	chats    chan chatEvent // events about replies in progress
	ended    chan endedText // replies that have ended
	replying sync.WaitGroup // counts texts that are being answered

	asking    map[string]bool // IDs of the runs of texts that are being answered
	finals    *finals
	handshake handshake    // zero before the client has connected
	view      *feed.Viewer // nil unless the client has the scope scopeRead
	runs      *runs
	seq       int // number of the latest event
}

// frame is a WebSocket message from the client. OpenClaw calls it a frame.
type frame struct {
	isText bool
	text   []byte
}

// endedText is the end of the reply to a text.
type endedText struct {
	run     string    // ID of the run
	last    chatEvent // last event about the reply
	request string    // ID of the agent request that waits for its final response; empty for chat.send
	err     error     // error of the turn
}

// chatEvent is an event about the reply to a text, for the client that has sent the text.
type chatEvent struct {
	RunID   string       `json:"runId"`
	Session string       `json:"sessionKey"`
	Seq     int          `json:"seq"`   // number of the event in the run, from 1
	State   string       `json:"state"` // delta, final or error
	Delta   string       `json:"deltaText,omitempty"`
	Message *chatMessage `json:"message,omitempty"`
	Error   string       `json:"errorMessage,omitempty"`
}

// chatMessage is the text of the reply so far.
type chatMessage struct {
	Role    string        `json:"role"`
	Content []chatContent `json:"content"`
	At      int64         `json:"timestamp"` // Unix milliseconds
}

type chatContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func newConnection(s *Server, conn *socket.Conn, remote string) *connection {
	return &connection{server: s, conn: conn, remote: remote, log: s.o.Log.With("address", remote), id: rand.Text(),
		frames: make(chan frame), chats: make(chan chatEvent), ended: make(chan endedText), asking: map[string]bool{}, finals: newFinals(),
		runs: newRuns(s.texts.nameRun)}
}

// errClosed is the error of functions that have closed the connection.
var errClosed = errors.New("the connection is closed")

// serve serves the client until it disconnects or ctx ends. It returns once all goroutines of the
// connection have ended.
func (c *connection) serve(ctx context.Context) {
	appliance := ctx
	ctx, cancel := context.WithCancel(ctx)
	var receiving sync.WaitGroup
	receiving.Go(func() {
		defer cancel()
		c.receive(ctx)
	})
	if c.shakeHands(ctx) == nil {
		c.run(ctx)
	}
	cancel()
	if appliance.Err() != nil {
		c.conn.Close(socket.GoingAway, httpserver.GoingAway)
	}
	c.conn.Drop()
	receiving.Wait()
	c.replying.Wait()
	if c.view != nil {
		c.view.Leave()
	}
}

// receive receives frames until the connection ends.
func (c *connection) receive(ctx context.Context) {
	for {
		isText, text, err := c.conn.Receive()
		if errors.Is(err, socket.ErrTooBig) {
			c.log.Info("disconnecting a client that sent too large a frame", "limit", limit.Body)
		}
		if err != nil {
			return
		}
		select {
		case c.frames <- frame{isText, slices.Clone(text)}:
		case <-ctx.Done():
			return
		}
	}
}

// shakeHands sends the challenge, and handles the connect request. If no request arrives in time, it
// closes the connection. If it returns nil, the client is connected.
func (c *connection) shakeHands(ctx context.Context) error {
	err := c.send(eventMessage{Type: "event", Event: "connect.challenge", Payload: map[string]any{"nonce": rand.Text(), "ts": time.Now().UnixMilli()}})
	if err != nil {
		return err
	}
	timer := time.NewTimer(c.server.timings.handshake)
	defer timer.Stop()
	select {
	case f := <-c.frames:
		return c.connect(f)
	case <-timer.C:
		c.conn.Close(socket.Violation, "handshake timeout")
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connect handles the first frame. If the frame is not a valid connect request, connect responds with
// an error, closes the connection, and returns errClosed.
func (c *connection) connect(f frame) error {
	r, _, bad := parseRequest(f.isText, f.text)
	if bad == nil && r.Method != "connect" {
		bad = invalid("invalid handshake: first request must be connect")
	}
	var p connectParams
	if bad == nil {
		bad = r.decodeParams(&p)
	}
	if bad != nil {
		return c.refuse(r.ID, violation(bad))
	}
	o := c.server.o
	var checkToken func(string) error
	if o.Token != nil {
		checkToken = func(token string) error { return o.Token(c.remote, token) }
	}
	h, refused := p.check(checkToken)
	if refused != nil {
		c.log.Info("refusing a client", "err", refused.Message)
		return c.refuse(r.ID, refused)
	}
	c.handshake = h
	if h.scopes.require(scopeRead) == nil {
		c.view = o.Feed.Join(feed.Filter{Kinds: []string{feed.KindState, feed.KindTool, feed.KindSaid}, AllStates: true})
	}
	return c.send(newResponse(r.ID, c.hello(), nil))
}

// refuse responds to a request with an error, closes the connection, and returns errClosed.
func (c *connection) refuse(id string, r *refusal) error {
	if err := c.send(newResponse(id, nil, r.failure)); err != nil {
		return err
	}
	c.conn.Close(r.closeCode, r.Message)
	return errClosed
}

// run handles requests and sends messages until the connection ends.
func (c *connection) run(ctx context.Context) {
	tick := time.NewTicker(c.server.timings.tick)
	defer tick.Stop()
	defer c.finals.timer.Stop()
	var news <-chan struct{}
	if c.view != nil {
		news = c.view.News()
	}
	for {
		var err error
		select {
		case f := <-c.frames:
			err = c.handleFrame(ctx, f)
		case e := <-c.chats:
			err = c.sendEvent("chat", e)
		case e := <-c.ended:
			delete(c.asking, e.run)
			err = c.finish(e)
		case <-c.finals.timer.C:
			err = c.sendAll(c.finals.takeAll())
		case <-news:
			err = c.sendQueued()
		case now := <-tick.C:
			if err = c.sendEvent("tick", map[string]any{"ts": now.UnixMilli()}); err == nil {
				err = c.conn.Ping()
			}
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// sendQueued sends the agent events for all queued frames of the feed.
func (c *connection) sendQueued() error {
	for {
		f, late := c.view.Pop()
		switch {
		case late:
			c.log.Info("disconnecting a client that does not read fast enough")
			c.conn.Close(socket.TryLater, "you do not read fast enough; reconnect")
			return errClosed
		case f == nil:
			return nil
		}
		for _, e := range c.runs.handleFrame(f, time.Now()) {
			if err := c.sendEvent("agent", e); err != nil {
				return err
			}
			if err := c.sendAll(c.finals.takeAfter(e)); err != nil {
				return err
			}
		}
	}
}

// sendEvent sends an event with the next number.
func (c *connection) sendEvent(name string, payload any) error {
	c.seq++
	return c.send(eventMessage{"event", name, payload, c.seq})
}

func (c *connection) send(v any) error { return c.conn.SendText(httpserver.Encode(v)) }

// handleFrame carries out a request, and sends the response.
func (c *connection) handleFrame(ctx context.Context, f frame) error {
	r, needsResponse, bad := parseRequest(f.isText, f.text)
	if !needsResponse {
		return nil
	}
	var payload any
	if bad == nil {
		payload, bad = c.call(ctx, r)
	}
	return c.send(newResponse(r.ID, payload, bad))
}

// method carries out a request, and returns the payload of the response or an error.
type method func(context.Context, request) (any, *failure)

// methods returns the supported methods by name.
func (c *connection) methods() map[string]method {
	return map[string]method{
		"agent": c.agent, "agents.list": c.readMethod(c.listAgents), "chat.history": c.readMethod(c.history), "chat.send": c.chat,
		"commands.list": c.readMethod(always(map[string]any{"commands": []any{}})), "health": c.readMethod(c.health),
		"plugin.approval.list": c.readMethod(always([]any{})), "question.list": c.readMethod(always(map[string]any{"questions": []any{}})),
		"sessions.describe": c.readMethod(c.describeSession), "sessions.list": c.readMethod(c.listSessions),
		"sessions.subscribe": c.readMethod(always(map[string]any{"subscribed": true})), "status": c.readMethod(c.status)}
}

// call carries out a request, and returns the payload of the response or an error.
func (c *connection) call(ctx context.Context, r request) (payload any, bad *failure) {
	if method := c.methods()[r.Method]; method != nil {
		return method(ctx, r)
	}
	if r.Method == "connect" {
		return nil, invalid("connect is only valid as the first request")
	}
	return nil, invalid("unknown method: %s", plain.Clip(r.Method, limit.ID))
}

// chat implements the method chat.send: it sends a text to an agent. The client gets chat events
// with the reply.
func (c *connection) chat(ctx context.Context, r request) (any, *failure) {
	var p struct {
		Key            string `json:"sessionKey"`
		Text           string `json:"message"`
		IdempotencyKey string `json:"idempotencyKey"`
	}
	if bad := r.decodeParams(&p); bad != nil {
		return nil, bad
	}
	status, bad := c.startText(ctx, r.Method, text{key: p.Key, text: p.Text, idempotencyKey: p.IdempotencyKey})
	if bad != nil {
		return nil, bad
	}
	return map[string]any{"runId": p.IdempotencyKey, "status": status}, nil
}

// text is a text from the client.
type text struct {
	key            string // key of the session
	text           string
	idempotencyKey string // also the ID of the run that answers the text
	request        string // as in endedText
}

// startText starts to answer a text on another goroutine, unless a text with the same idempotency
// key was sent before. It returns the status of the text. method is the name of the request's method.
func (c *connection) startText(ctx context.Context, method string, t text) (status string, bad *failure) {
	if bad := c.handshake.scopes.require(scopeWrite); bad != nil {
		return "", bad
	}
	switch {
	case t.key == "" || len(t.key) > limit.Session:
		return "", invalid("invalid %s params: sessionKey must have 1 to %d bytes", method, limit.Session)
	case t.idempotencyKey == "" || len(t.idempotencyKey) > limit.Name:
		return "", invalid("invalid %s params: idempotencyKey must have 1 to %d bytes", method, limit.Name)
	case strings.TrimSpace(t.text) == "":
		return "", invalid("invalid %s params: message is empty", method)
	}
	character, conversation := parseKey(t.key)
	if character == mainName {
		character = ""
	} else if all := c.server.o.Characters; all == nil || !all.Exists(character) {
		return "", invalid("there is no agent %q; use agents.list to list the agents", plain.Clip(character, 60))
	}
	session, err := c.server.o.Chat.SessionOf(conversation)
	if err != nil {
		return "", newFailure(err)
	}
	if len(c.asking) >= maxTexts {
		return "", &failure{Code: unavailable, Message: "too many of your messages are being answered; wait for one", Retryable: true,
			RetryAfter: retryAfter}
	}
	status = c.server.texts.start(session, t.key, t.idempotencyKey)
	if status == statusStarted {
		c.asking[t.idempotencyKey] = true
		c.replying.Go(func() {
			reply := &reply{c: c, quiet: t.request != "", event: chatEvent{RunID: t.idempotencyKey, Session: t.key}}
			err := c.server.o.Chat.Chat(ctx, conversation, character, t.text, func(r agent.Reply) error { return reply.add(ctx, r) })
			status := statusOK
			switch {
			case ctx.Err() != nil:
				status = "" // the client has disconnected, and may send the text again
			case err != nil:
				status = statusError
				c.log.Info("the agent could not answer a client's text", "err", err)
			}
			c.server.texts.finish(t.idempotencyKey, status)
			select {
			case c.ended <- endedText{t.idempotencyKey, reply.last(err), t.request, err}:
			case <-ctx.Done():
			}
		})
	}
	return status, nil
}

// reply collects the reply to a text.
type reply struct {
	c     *connection
	quiet bool            // whether to send no chat events
	event chatEvent       // template of the chat events, with the latest Seq
	text  strings.Builder // text so far
}

// add adds a sentence to the reply, and sends a chat event unless the reply is quiet.
func (p *reply) add(ctx context.Context, r agent.Reply) error {
	sentence, ok := r.(agent.Say)
	if !ok {
		return nil // chat events contain only text; agent events report tools and states
	}
	delta := sentence.Text
	if p.text.Len() > 0 {
		delta = " " + delta
	}
	p.text.WriteString(delta)
	if p.quiet {
		return nil
	}
	select {
	case p.c.chats <- p.next("delta", delta):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// last returns the event for the end of the reply. err is the error of the turn.
func (p *reply) last(err error) chatEvent {
	if err == nil {
		return p.next("final", "")
	}
	e := p.next("error", "")
	e.Message, e.Error = nil, newFailure(err).Message
	return e
}

func (p *reply) next(state, delta string) chatEvent {
	p.event.Seq++
	e := p.event
	e.State, e.Delta = state, delta
	e.Message = &chatMessage{"assistant", []chatContent{{"text", p.text.String()}}, time.Now().UnixMilli()}
	return e
}

// hello returns the payload of the response to the connect request.
func (c *connection) hello() any {
	return map[string]any{
		"type": "hello-ok", "protocol": c.handshake.protocol,
		"server":   map[string]any{"version": c.server.o.Version, "connId": c.id},
		"features": map[string]any{"methods": slices.Sorted(maps.Keys(c.methods())), "events": []string{"agent", "chat", "tick"}},
		"snapshot": map[string]any{"presence": []any{}, "health": map[string]any{}, "stateVersion": map[string]any{"presence": 0, "health": 0},
			"uptimeMs": time.Since(c.server.started).Milliseconds(),
			"sessionDefaults": map[string]any{"defaultAgentId": mainName, "mainKey": mainName, "mainSessionKey": mainKey,
				"scope": "per-sender"}},
		"auth":   map[string]any{"role": operator, "scopes": c.handshake.scopes},
		"policy": map[string]any{"maxPayload": limit.Body, "maxBufferedBytes": limit.Body, "tickIntervalMs": c.server.timings.tick.Milliseconds()},
	}
}
