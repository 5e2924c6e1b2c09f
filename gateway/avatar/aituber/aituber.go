// Package aituber is the server for aituber-kit, a web page with a VRM or Live2D character
// and its own voice, whose external linkage (/ws, protocol 2) connects to Perch. The agent
// answers what is typed or spoken there, sentence by sentence, each with its face.
//
// The protocol is aituber-kit's at commit 6be82fe. It has no keys; the page passes
// Perch's key as httpserver.InUpgrade describes.
package aituber

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"

	"perch/agent"
	"perch/gateway/avatar"
	"perch/gateway/avatar/feed"
)

// Options are the dependencies of a server.
type Options struct {
	Feed  *feed.Feed
	Chat  avatar.Chat
	Words *agent.Words
	Log   *slog.Logger
}

const mostPerSecond = 50 // messages of one page

// New returns a server. Run disconnects the pages at the end.
func New(o Options) *avatar.Server {
	return avatar.New(avatar.Options{Kind: "aituber", Path: "/ws", Feed: o.Feed, Chat: o.Chat, PerSecond: mostPerSecond, Log: o.Log,
		New: func(c *avatar.Conn) avatar.Program {
			return &client{words: o.Words, conn: c, session: "session_" + strings.ToLower(rand.Text())}
		}})
}

// client is a connected page.
type client struct {
	words   *agent.Words
	conn    *avatar.Conn
	session string
	asked   string // id of the current question, or ""; belongs to the goroutine that receives
}

// send sends a message in answer to a request.
func (c *client) send(ctx context.Context, kind, request string, payload any) error {
	return c.conn.Send(ctx, newEnvelope(c.session, kind, request, payload))
}

// acknowledge confirms a message.
func (c *client) acknowledge(ctx context.Context, m message) error {
	return c.send(ctx, typeAck, m.id, receipt{m.id, m.kind, "ok", ""})
}

// Greet sends the server's version; until then the page uses version 1.
func (c *client) Greet(ctx context.Context) error {
	return c.send(ctx, typeReady, "", ready{version, capabilities()})
}

// Handle handles a message. The page's progress in speaking (character.*) is ignored.
func (c *client) Handle(ctx context.Context, data []byte) error {
	m, err := parse(data)
	if err != nil {
		return c.send(ctx, typeAck, "", receipt{Status: "error", Message: err.Error()})
	}
	switch m.kind {
	case typePing:
		return c.send(ctx, typePong, m.id, nil)
	case typeHello:
		return c.acknowledge(ctx, m)
	case typeCancel:
		if err := c.acknowledge(ctx, m); err != nil {
			return err
		}
		return c.stop(ctx)
	case typeChat:
		if err := c.stop(ctx); err != nil {
			return err
		}
		if err := c.acknowledge(ctx, m); err != nil {
			return err
		}
		c.asked = m.id
		c.conn.Answer(ctx, func(ctx context.Context) any { return c.answer(ctx, m) })
	}
	return nil
}

// stop interrupts the current answer, and sends the page its end.
func (c *client) stop(ctx context.Context) error {
	if !c.conn.Interrupt() {
		return nil
	}
	return c.send(ctx, typeDone, c.asked, nil)
}

// answer answers a question. It returns the last message.
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

// word returns the page's name of a face, as in VRM 1.0.
func (c *client) word(face string) string { return c.words.Word(agent.VocabularyVRM, face) }

// MessageFor returns a message with a tool or a notification. The page speaks a notification
// that is to be spoken, and shows everything else like code.
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
	}
	return newEnvelope(c.session, typeDelta, "", s)
}
