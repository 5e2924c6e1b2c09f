// Package aituber is a server for aituber-kit, a web page that shows a VRM or Live2D character and
// synthesizes its voice. The page's feature "external linkage" connects to Perch (path /ws, protocol
// version 2). The agent answers the text that people type or speak to the page, and the page gets
// each sentence of the reply with the name of a face.
//
// The protocol is the one of aituber-kit at commit 6be82fe. The protocol has no keys; the page
// passes Perch's key as httpserver.InUpgrade describes.
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
	Words *agent.Words // names of faces
	Log   *slog.Logger
}

const maxPerSecond = 50 // messages from one page

// New returns a server for aituber-kit.
func New(o Options) *avatar.Server {
	return avatar.New(avatar.Options{Kind: "aituber", Path: "/ws", Feed: o.Feed, Chat: o.Chat, PerSecond: maxPerSecond, Log: o.Log,
		New: func(c *avatar.Conn) avatar.Program {
			return &client{words: o.Words, conn: c, session: "session_" + strings.ToLower(rand.Text())}
		}})
}

// client is a connected page.
type client struct {
	words    *agent.Words
	conn     *avatar.Conn
	session  string // ID in each message to the page; random
	question string // ID of the latest question; used only by the goroutine that receives
}

// send sends a message of type kind. request is the ID of the message to reply to, or "".
func (c *client) send(ctx context.Context, kind, request string, payload any) error {
	return c.conn.Send(ctx, newEnvelope(c.session, kind, request, payload))
}

// acknowledge confirms that a message was received.
func (c *client) acknowledge(ctx context.Context, m message) error {
	return c.send(ctx, typeAck, m.id, receipt{m.id, m.kind, "ok", ""})
}

// Greet sends the version of the protocol. The page uses version 1 until it has received this message.
func (c *client) Greet(ctx context.Context) error {
	return c.send(ctx, typeReady, "", ready{version, capabilities()})
}

// Handle handles a message. It answers an invalid message with an error message, and ignores unknown
// types and the page's reports about its speech (character.*).
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
		c.question = m.id
		c.conn.StartReply(ctx, func(ctx context.Context) any { return c.reply(ctx, m) })
	}
	return nil
}

// stop interrupts the current reply, and tells the page that the reply has ended.
func (c *client) stop(ctx context.Context) error {
	if !c.conn.Interrupt() {
		return nil
	}
	return c.send(ctx, typeDone, c.question, nil)
}

// reply sends the reply to a question, except for the last message, which it returns.
func (c *client) reply(ctx context.Context, m message) (last any) {
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
				text = " " + text // the page joins sentences without a space
			}
			begun = true
			return c.send(ctx, typeDelta, m.id, delta{Text: text, Role: "assistant", Emotion: c.word(face)})
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

// word returns the page's name for a face, as in VRM 1.0.
func (c *client) word(face string) string { return c.words.Word(agent.VocabularyVRM, face) }

// MessageFor returns a message that shows a tool call or a notification, or nil for a completed tool
// call. The page speaks questions and the notifications whose field Speak is true. It shows all other
// texts as code.
func (c *client) MessageFor(f *feed.Frame) any {
	s := delta{Role: "console", Emotion: c.word(agent.Neutral.Name), Legacy: "end"}
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
