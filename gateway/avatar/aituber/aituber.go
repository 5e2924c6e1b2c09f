// Package aituber is the door of aituber-kit, a web page with a VRM or Live2D character
// that has a voice of its own: it takes Perch for the server of its external linkage
// (/ws, protocol 2). What is typed or spoken there is answered by the agent, sentence by
// sentence, each with its face.
//
// The protocol is that of aituber-kit at commit 6be82fe. It knows no keys; how the page
// brings ours is the locks' (httpserver.InUpgrade).
package aituber

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"

	"perch/agent"
	"perch/gateway/avatar"
	"perch/gateway/avatar/feed"
	"perch/limit"
)

// Options are what the door is made of.
type Options struct {
	Feed  *feed.Feed
	Chat  avatar.Chat
	Words *agent.Words
	Log   *slog.Logger
}

const mostPerSecond = 50 // messages of one program

// Server lets programs in.
type Server struct {
	o        Options
	programs *avatar.Server
}

// New returns a door. Run disconnects its programs at the end.
func New(o Options) *Server {
	s := &Server{o: o}
	s.programs = avatar.New(avatar.Options{Kind: "aituber", Feed: o.Feed, Chat: o.Chat, Log: o.Log,
		Shown: []string{feed.KindTool, feed.KindNotice}, MostMessage: limit.Message, PerSecond: mostPerSecond,
		New: func(c *avatar.Conn) avatar.Program {
			return &client{server: s, conn: c, session: "session_" + strings.ToLower(rand.Text())}
		}})
	return s
}

// Run lets programs in until ctx ends, and returns when all are gone.
func (s *Server) Run(ctx context.Context) { s.programs.Run(ctx) }

// client is a connected page.
type client struct {
	server  *Server
	conn    *avatar.Conn
	session string
	asked   string // the id of the question under way; empty is none. Of the goroutine that receives.
}

// send sends a message in answer to a request.
func (c *client) send(ctx context.Context, kind, request string, payload any) error {
	return c.conn.Send(ctx, newEnvelope(c.session, kind, request, payload))
}

// Greet speaks first: until then the page uses version 1.
func (c *client) Greet(ctx context.Context) error {
	return c.send(ctx, typeReady, "", ready{version, capabilities()})
}

// Handle deals with a message. How far the page has come with speaking (character.*) is
// taken and changes nothing.
func (c *client) Handle(ctx context.Context, data []byte) error {
	m, err := parse(data)
	if err != nil {
		return c.send(ctx, typeAck, "", receipt{Status: "error", Message: err.Error()})
	}
	switch m.kind {
	case typePing:
		return c.send(ctx, typePong, m.id, nil)
	case typeHello:
		return c.send(ctx, typeAck, m.id, receipt{m.id, m.kind, "ok", ""})
	case typeCancel:
		if err := c.send(ctx, typeAck, m.id, receipt{m.id, m.kind, "ok", ""}); err != nil {
			return err
		}
		return c.stop(ctx)
	case typeChat:
		if err := c.stop(ctx); err != nil {
			return err
		}
		if err := c.send(ctx, typeAck, m.id, receipt{m.id, m.kind, "ok", ""}); err != nil {
			return err
		}
		c.asked = m.id
		c.conn.Answer(ctx, func(ctx context.Context) any { return c.answer(ctx, m) })
	}
	return nil
}

// stop ends the answer under way, of which the page then sees the end.
func (c *client) stop(ctx context.Context) error {
	if !c.conn.Interrupt() {
		return nil
	}
	return c.send(ctx, typeDone, c.asked, nil)
}

// answer answers a question, but for the last message, which it returns.
func (c *client) answer(ctx context.Context, m message) (last any) {
	if c.send(ctx, typeStart, m.id, nil) != nil {
		return nil
	}
	face, begun := agent.Neutral.Name, false
	err := c.conn.Chat(ctx, m.text, func(r agent.Reply) error {
		switch r := r.(type) {
		case agent.Felt:
			face = r.Emotion.Name
		case agent.Say:
			text := r.Text
			if begun {
				text = " " + text // the page joins them as they are
			}
			begun = true
			return c.send(ctx, typeDelta, m.id, said{Text: text, Role: "assistant", Emotion: c.word(face)})
		}
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return newEnvelope(c.session, typeError, m.id, failure{c.conn.ErrorText(err)})
	}
	return newEnvelope(c.session, typeDone, m.id, nil)
}

// word is the page's for a face: they are those of VRM 1.0.
func (c *client) word(face string) string { return c.server.o.Words.Word(agent.VocabularyVRM, face) }

// MessageFor tells of tools and notifications: a notification that is to be spoken is, and all
// else is shown as code is.
func (c *client) MessageFor(f *feed.Frame) any {
	s := said{Role: "console", Emotion: c.word(agent.Neutral.Name), Legacy: "end"}
	switch b := f.Body.(type) {
	case feed.Tool:
		if b.Status == "completed" {
			return nil
		}
		s.Text = strings.TrimSpace(b.Name + " " + b.Content)
	case feed.Notice:
		s.Text = b.Text
		if b.Speak || b.Question != "" {
			s.Role = "assistant"
		}
	default:
		return nil
	}
	return newEnvelope(c.session, typeDelta, "", s)
}
