package wyoming

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"perch/agent"
	"perch/limit"
	"perch/plain"
	wire "perch/voice/wyoming"
)

// turnTimeout is how long the agent may take for a reply. Home Assistant stops waiting earlier.
const turnTimeout = 3 * time.Minute

// handleTranscript queues the reply to a text.
func (c *connection) handleTranscript(e wire.Event) error {
	var t transcript
	if err := decode(e, &t); err != nil {
		return err
	}
	turn := agent.Turn{Untrusted: true, Language: c.o.Languages[0]}
	if languageTag().MatchString(t.Language) {
		turn.Language = strings.ReplaceAll(t.Language, "_", "-")
	}
	conversation := c.conversationOf(t)
	if len(t.Text) > limit.Said {
		return c.request(func(context.Context) error {
			return c.send(typeNotHandled, handled{Text: c.phrase(turn.Language, "too_much"), Context: conversation}, nil)
		})
	}
	turn.Text = plain.Line(t.Text)
	s := &replyStream{c: c, context: conversation}
	turn.Conversation = agent.ConversationOf("wyoming", s.context.ConversationID)
	return c.request(func(ctx context.Context) error { return s.stream(ctx, turn) })
}

// phrase returns the appliance's phrase with a name, in the language of a tag, without its emoji.
func (s *service) phrase(tag, name string) string {
	_, text := agent.SplitEmotion(s.o.Phrases.Of(tag, name))
	return text
}

// conversationOf returns the conversation that the context of a text names, or else the conversation of this
// connection. The reply names the conversation, so that a client can continue the conversation.
func (c *connection) conversationOf(t transcript) conversation {
	var named conversation
	if json.Unmarshal(t.Context, &named) == nil && named.ConversationID != "" {
		return named
	}
	if c.own == "" {
		c.own = strings.ToLower(rand.Text())
	}
	return conversation{c.own}
}

// replyStream sends the reply to one text.
type replyStream struct {
	c       *connection
	context conversation
	begun   bool // a sentence was sent
}

// stream gets the reply to a turn from the agent. It sends each sentence, and then the whole reply, because Home
// Assistant and clients without streaming wait for the whole reply. If the turn has no text, or the agent fails, it
// sends a phrase as not-handled. The turn has no session, so no robot and no avatar program shows the turn.
func (s *replyStream) stream(ctx context.Context, t agent.Turn) error {
	c := s.c
	if t.Text == "" {
		return s.finish(typeNotHandled, c.phrase(t.Language, "misheard"))
	}
	var reply agent.Spoken
	err := c.s.turns.run(ctx, turnTimeout, func(ctx context.Context) (err error) {
		t.Now = time.Now().In(c.o.Zone)
		reply, err = agent.AnswerText(ctx, c.o.Mind, t, s.sendReply)
		return err
	})
	var f *failure
	switch {
	case err == nil:
	case errors.As(failed(ctx, "The mind did not answer.", err), &f):
		c.log.Warn("a text was not answered", "err", err)
		return s.finish(typeNotHandled, c.phrase(t.Language, "failed"))
	default:
		return err
	}
	// The exchange is added to the conversation before the reply is sent, because the client may send the next text at once.
	c.o.Mind.AddExchange(t.Conversation, agent.Exchange{Heard: t.Text, Said: reply.Text}, t.Now)
	return s.finish(typeHandled, reply.Text)
}

// sendReply sends a part of the reply if the part is a sentence. It starts the stream before the first sentence.
func (s *replyStream) sendReply(r agent.Reply) error {
	say, isSentence := r.(agent.Say)
	if !isSentence {
		return nil
	}
	part := say.Text
	if s.begun {
		part = " " + part
	} else if err := s.c.send(typeHandledStart, struct {
		Context conversation `json:"context"`
	}{s.context}, nil); err != nil {
		return err
	}
	s.begun = true
	return s.c.send(typeHandledChunk, wire.Text{Text: part}, nil)
}

// finish sends the whole reply in an event of type name, and ends the stream if a sentence was sent.
func (s *replyStream) finish(name, text string) error {
	if err := s.c.send(name, handled{text, s.context}, nil); err != nil || !s.begun {
		return err
	}
	return s.c.send(typeHandledStop, nil, nil)
}
