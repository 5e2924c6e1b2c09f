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

// connection is the connection of one client. One goroutine receives; another sends and owns
// everything else; each text being answered has its own. Sending blocks only the goroutines
// of the same client.
type connection struct {
	server *Server
	conn   *socket.Conn
	remote string
	log    *slog.Logger
	id     string

	frames  chan frame      // received
	chatted chan chatEvent  // of texts being answered
	chats   sync.WaitGroup  // texts being answered
	ended   chan ending     // of texts
	asking  map[string]bool // ids of the texts being answered
	finals  *finals
	nonce   string       // of the challenge
	agreed  agreed       // after the handshake
	view    *feed.Viewer // nil unless the client may read
	runs    *runs
	seq     int // of the last event
}

// frame is a frame of a client.
type frame struct {
	isText bool
	text   []byte
}

// ending is the end of a text's answer.
type ending struct {
	run  string
	last chatEvent
	call string // id of the call of agent to answer, or ""
	err  error
}

// chatEvent is an event about the answer to a text, for the client that has sent it.
type chatEvent struct {
	RunID   string       `json:"runId"`
	Session string       `json:"sessionKey"`
	Seq     int          `json:"seq"`   // within the run, from 1
	State   string       `json:"state"` // delta, final or error
	Delta   string       `json:"deltaText,omitempty"`
	Message *chatMessage `json:"message,omitempty"`
	Error   string       `json:"errorMessage,omitempty"`
}

// chatMessage is the answer so far.
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
	c := &connection{server: s, conn: conn, remote: remote, log: s.o.Log.With("address", remote), id: rand.Text(),
		frames: make(chan frame), chatted: make(chan chatEvent), ended: make(chan ending), asking: map[string]bool{}, finals: newFinals(),
		nonce: rand.Text()}
	c.runs = newRuns(s.chats.name)
	return c
}

// errOver ends the goroutine of a connection that was closed.
var errOver = errors.New("over")

// serve serves the client until it leaves or ctx ends, and waits for all its goroutines.
func (c *connection) serve(ctx context.Context) {
	appliance := ctx
	ctx, cancel := context.WithCancel(ctx)
	var receiving sync.WaitGroup
	receiving.Go(func() {
		defer cancel()
		c.receive(ctx)
	})
	if c.greet(ctx) == nil {
		c.run(ctx)
	}
	cancel()
	if appliance.Err() != nil {
		c.conn.Close(socket.GoingAway, httpserver.GoingAway)
	}
	c.conn.Drop()
	receiving.Wait()
	c.chats.Wait()
	if c.view != nil {
		c.view.Leave()
	}
}

// receive receives frames until the connection ends.
func (c *connection) receive(ctx context.Context) {
	for {
		isText, text, err := c.conn.Receive()
		if errors.Is(err, socket.ErrTooBig) {
			c.log.Info("a client sent a frame that is too big; it is disconnected", "limit", limit.Body)
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

// greet challenges the client and waits for its handshake.
func (c *connection) greet(ctx context.Context) error {
	err := c.send(message{Type: "event", Event: "connect.challenge", Payload: map[string]any{"nonce": c.nonce, "ts": time.Now().UnixMilli()}})
	if err != nil {
		return err
	}
	timer := time.NewTimer(c.server.paces.handshake)
	defer timer.Stop()
	select {
	case f := <-c.frames:
		return c.connect(f)
	case <-timer.C:
		c.conn.Close(socket.Violation, "handshake timeout")
		return errOver
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connect answers the first frame, which must be a connect request. Any other ends the
// connection.
func (c *connection) connect(f frame) error {
	r, _, bad := parseRequest(f.isText, f.text)
	if bad == nil && r.Method != "connect" {
		bad = invalid("invalid handshake: first request must be connect")
	}
	var p connectParams
	if bad == nil {
		bad = r.into(&p)
	}
	if bad != nil {
		return c.refuse(r.ID, violation(bad))
	}
	o := c.server.o
	token := func(token string) error { return o.Token(c.remote, token) }
	agreed, refused := p.agree(c.nonce, time.Now(), o.Token != nil, token)
	if refused != nil {
		c.log.Info("a client was not let in", "err", refused.Message)
		return c.refuse(r.ID, refused)
	}
	c.agreed = agreed
	if agreed.scopes.lack(mayRead) == nil {
		c.view = o.Feed.Join(feed.Filter{Kinds: []string{feed.KindState, feed.KindTool, feed.KindSaid}, AllStates: true})
	}
	return c.send(newResponse(r.ID, c.hello(), nil))
}

// refuse answers a request with an error, and closes the connection.
func (c *connection) refuse(id string, r *refusal) error {
	if err := c.send(newResponse(id, nil, r.failure)); err != nil {
		return err
	}
	c.conn.Close(r.close, r.Message)
	return errOver
}

// run answers and sends until the connection ends.
func (c *connection) run(ctx context.Context) {
	tick := time.NewTicker(c.server.paces.tick)
	defer tick.Stop()
	defer c.finals.late.Stop()
	var news <-chan struct{}
	if c.view != nil {
		news = c.view.News()
	}
	for {
		var err error
		select {
		case f := <-c.frames:
			err = c.answer(ctx, f)
		case e := <-c.chatted:
			err = c.event("chat", e)
		case e := <-c.ended:
			delete(c.asking, e.run)
			err = c.finish(e)
		case <-c.finals.late.C:
			err = c.sendAll(c.finals.all())
		case <-news:
			err = c.sendEvents()
		case now := <-tick.C:
			if err = c.event("tick", map[string]any{"ts": now.UnixMilli()}); err == nil {
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

// sendEvents sends the events for the frames that wait.
func (c *connection) sendEvents() error {
	for {
		f, late := c.view.Pop()
		switch {
		case late:
			c.log.Info("a client cannot keep up; it is disconnected")
			c.conn.Close(socket.TryLater, "you do not read fast enough; come back")
			return errOver
		case f == nil:
			return nil
		}
		for _, e := range c.runs.handleFrame(f, time.Now()) {
			if err := c.event("agent", e); err != nil {
				return err
			}
			if err := c.sendAll(c.finals.after(e)); err != nil {
				return err
			}
		}
	}
}

func (c *connection) event(name string, payload any) error {
	c.seq++
	return c.send(message{"event", name, payload, c.seq})
}

func (c *connection) send(v any) error { return c.conn.SendText(httpserver.Encode(v)) }

// answer answers a frame.
func (c *connection) answer(ctx context.Context, f frame) error {
	r, asks, bad := parseRequest(f.isText, f.text)
	if !asks {
		return nil
	}
	var payload any
	if bad == nil {
		payload, bad = c.call(ctx, r)
	}
	return c.send(newResponse(r.ID, payload, bad))
}

// methods returns the supported methods.
func (c *connection) methods() map[string]func(context.Context, request) (any, *failure) {
	return map[string]func(context.Context, request) (any, *failure){
		"agent": c.agent, "agents.list": c.listAgents, "chat.send": c.chat, "sessions.list": c.listSessions}
}

// call carries out a request.
func (c *connection) call(ctx context.Context, r request) (payload any, bad *failure) {
	if method := c.methods()[r.Method]; method != nil {
		return method(ctx, r)
	}
	if r.Method == "connect" {
		return nil, invalid("connect is only valid as the first request")
	}
	return nil, invalid("unknown method: %s", plain.Clip(r.Method, limit.ID))
}

// agentShown is an agent in the gateway's shape.
type agentShown struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

func (c *connection) listAgents(context.Context, request) (any, *failure) {
	if bad := c.agreed.scopes.lack(mayRead); bad != nil {
		return nil, bad
	}
	all := []agentShown{{household, c.server.o.Name()}}
	if named := c.server.o.Characters; named != nil {
		for _, name := range named.Names() {
			if name != household {
				all = append(all, agentShown{ID: name})
			}
		}
	}
	return map[string]any{"defaultId": household, "mainKey": household, "scope": "per-sender", "agents": all}, nil
}

// sessionShown is a session in the gateway's shape.
type sessionShown struct {
	Key     string `json:"key"`
	Kind    string `json:"kind"`
	Updated int64  `json:"updatedAt"`
	Status  string `json:"status"` // running or done
	Active  bool   `json:"hasActiveRun"`
}

func (c *connection) listSessions(_ context.Context, r request) (any, *failure) {
	if bad := c.agreed.scopes.lack(mayRead); bad != nil {
		return nil, bad
	}
	var p struct {
		Minutes float64 `json:"activeMinutes"`
		Limit   int     `json:"limit"`
	}
	if bad := r.into(&p); bad != nil {
		return nil, bad
	}
	now := time.Now()
	all := []sessionShown{}
	for _, s := range c.runs.latest() {
		if p.Limit > 0 && len(all) == p.Limit || p.Minutes > 0 && float64(now.UnixMilli()-s.at) > p.Minutes*60_000 {
			break
		}
		shown := sessionShown{Key: s.key, Kind: "direct", Updated: s.at, Status: "done"}
		if s.run != nil {
			shown.Status, shown.Active = "running", true
		}
		all = append(all, shown)
	}
	return map[string]any{"ts": now.UnixMilli(), "path": "perch", "count": len(all), "sessions": all,
		"defaults": map[string]any{"modelProvider": nil, "model": nil, "contextTokens": nil}}, nil
}

// chat answers a text by events.
func (c *connection) chat(ctx context.Context, r request) (any, *failure) {
	var p struct {
		Key  string `json:"sessionKey"`
		Text string `json:"message"`
		Once string `json:"idempotencyKey"`
	}
	if bad := r.into(&p); bad != nil {
		return nil, bad
	}
	status, bad := c.ask(ctx, r.Method, text{key: p.Key, text: p.Text, once: p.Once})
	if bad != nil {
		return nil, bad
	}
	return map[string]any{"runId": p.Once, "status": status}, nil
}

// text is a text of a client.
type text struct {
	key  string // of its session
	text string
	once string // idempotency key
	call string // as in ending
}

// ask starts the answer to a text, and returns its status.
func (c *connection) ask(ctx context.Context, method string, t text) (status string, bad *failure) {
	if bad := c.agreed.scopes.lack(mayWrite); bad != nil {
		return "", bad
	}
	switch {
	case t.key == "" || len(t.key) > limit.Session:
		return "", invalid("invalid %s params: sessionKey has 1 to %d bytes", method, limit.Session)
	case t.once == "" || len(t.once) > limit.Name:
		return "", invalid("invalid %s params: idempotencyKey has 1 to %d bytes", method, limit.Name)
	case strings.TrimSpace(t.text) == "":
		return "", invalid("invalid %s params: message is empty", method)
	}
	who, talk := talkOf(t.key)
	if who == household {
		who = ""
	} else if named := c.server.o.Characters; named == nil || !named.Exists(who) {
		return "", invalid("there is no agent %q; agents.list has them", plain.Clip(who, 60))
	}
	session, err := c.server.o.Talks.SessionOf(talk)
	if err != nil {
		return "", failed(err)
	}
	if len(c.asking) >= mostChats {
		return "", &failure{Code: unavailable, Message: "too many of your messages are being answered; wait for one", Retryable: true,
			RetryAfter: busyFor}
	}
	status = c.server.chats.start(session, t.key, t.once)
	if status == started {
		c.asking[t.once] = true
		c.chats.Go(func() {
			answer := &answered{c: c, quiet: t.call != "", event: chatEvent{RunID: t.once, Session: t.key}}
			err := c.server.o.Talks.Chat(ctx, talk, who, t.text, func(r agent.Reply) error { return answer.add(ctx, r) })
			status := done
			switch {
			case ctx.Err() != nil:
				status = "" // the client is gone, and may send it again
			case err != nil:
				status = unsaid
				c.log.Info("a client's text was not answered", "err", err)
			}
			c.server.chats.finish(t.once, status)
			select {
			case c.ended <- ending{t.once, answer.last(err), t.call, err}:
			case <-ctx.Done():
			}
		})
	}
	return status, nil
}

// answered collects the answer to a text.
type answered struct {
	c     *connection
	quiet bool // only the end is reported
	event chatEvent
	text  strings.Builder
}

// add adds a sentence to the answer, and sends it unless quiet.
func (a *answered) add(ctx context.Context, r agent.Reply) error {
	said, is := r.(agent.Say)
	if !is {
		return nil // agent events report the rest
	}
	delta := said.Text
	if a.text.Len() > 0 {
		delta = " " + delta
	}
	a.text.WriteString(delta)
	if a.quiet {
		return nil
	}
	select {
	case a.c.chatted <- a.next("delta", delta):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// last returns the event for the end of the answer.
func (a *answered) last(err error) chatEvent {
	if err == nil {
		return a.next("final", "")
	}
	e := a.next("error", "")
	e.Message, e.Error = nil, failed(err).Message
	return e
}

func (a *answered) next(state, delta string) chatEvent {
	a.event.Seq++
	e := a.event
	e.State, e.Delta = state, delta
	e.Message = &chatMessage{"assistant", []chatContent{{"text", a.text.String()}}, time.Now().UnixMilli()}
	return e
}

// hello returns the response to a connect request.
func (c *connection) hello() any {
	return map[string]any{
		"type": "hello-ok", "protocol": c.agreed.protocol,
		"server":   map[string]any{"version": c.server.o.Version, "connId": c.id},
		"features": map[string]any{"methods": slices.Sorted(maps.Keys(c.methods())), "events": []string{"agent", "chat", "tick"}},
		"snapshot": map[string]any{"presence": []any{}, "health": map[string]any{}, "stateVersion": map[string]any{"presence": 0, "health": 0},
			"uptimeMs": time.Since(c.server.began).Milliseconds(),
			"sessionDefaults": map[string]any{"defaultAgentId": household, "mainKey": household, "mainSessionKey": mainKey,
				"scope": "per-sender"}},
		"auth":   map[string]any{"role": operator, "scopes": c.agreed.scopes},
		"policy": map[string]any{"maxPayload": limit.Body, "maxBufferedBytes": limit.Body, "tickIntervalMs": c.server.paces.tick.Milliseconds()},
	}
}
