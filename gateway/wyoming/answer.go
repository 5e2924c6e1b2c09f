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

// turnWithin bounds the time of an answer. Home Assistant gives up earlier.
const turnWithin = 3 * time.Minute

// handleTranscript answers a text.
func (c *connection) handleTranscript(e wire.Event) error {
	var t transcript
	if err := decode(e, &t); err != nil {
		return err
	}
	turn := agent.Turn{Untrusted: true, Language: c.o.Languages[0]}
	if languageTag().MatchString(t.Language) {
		turn.Language = strings.ReplaceAll(t.Language, "_", "-")
	}
	if len(t.Text) > limit.Said {
		return c.request(func(context.Context) error {
			return c.send(typeNotHandled, handled{Text: c.phrase(turn.Language, "too_much"), Context: c.talk(t)}, nil)
		})
	}
	turn.Text = plain.Line(t.Text)
	a := &answer{c: c, context: c.talk(t)}
	turn.Conversation = agent.ConversationOf("wyoming", a.context.ConversationID)
	return c.request(func(ctx context.Context) error { return a.stream(ctx, turn) })
}

// phrase returns one of the appliance's phrases, without its emoji.
func (s *service) phrase(tag, name string) string {
	_, text := agent.SplitEmotion(s.o.Phrases.Of(tag, name))
	return text
}

// talk returns the talk that a text names in its context, or else the connection's own. It is
// sent back, so that a client can continue the talk.
func (c *connection) talk(t transcript) talk {
	var named talk
	if json.Unmarshal(t.Context, &named) == nil && named.ConversationID != "" {
		return named
	}
	if c.own == "" {
		c.own = strings.ToLower(rand.Text())
	}
	return talk{c.own}
}

// answer is an answer under way.
type answer struct {
	c       *connection
	context talk
	begun   bool // a sentence was sent
}

// stream sends each sentence, and then the whole answer: Home Assistant waits for that, and
// so do clients without streaming. The turn has no session, because it shows nowhere else.
func (a *answer) stream(ctx context.Context, t agent.Turn) error {
	c := a.c
	if t.Text == "" {
		return a.finish(typeNotHandled, c.phrase(t.Language, "misheard"))
	}
	var said agent.Spoken
	err := c.s.turns.run(ctx, turnWithin, func(within context.Context) (err error) {
		t.Now = time.Now().In(c.o.Zone)
		said, err = agent.AnswerText(within, c.o.Mind, t, a.sendReply)
		return err
	})
	var f *failure
	switch {
	case err == nil:
	case errors.As(failed(ctx, "The mind did not answer.", err), &f):
		c.log.Warn("a text was not answered", "err", err)
		return a.finish(typeNotHandled, c.phrase(t.Language, "failed"))
	default:
		return err
	}
	// It is remembered before it is sent, because the next text may follow at once.
	c.o.Mind.Remembered(t.Conversation, agent.Exchange{Heard: t.Text, Said: said.Text}, t.Now)
	return a.finish(typeHandled, said.Text)
}

// sendReply sends one sentence.
func (a *answer) sendReply(r agent.Reply) error {
	say, is := r.(agent.Say)
	if !is {
		return nil
	}
	part := say.Text
	if a.begun {
		part = " " + part
	} else if err := a.c.send(typeHandledStart, struct {
		Context talk `json:"context"`
	}{a.context}, nil); err != nil {
		return err
	}
	a.begun = true
	return a.c.send(typeHandledChunk, wire.Text{Text: part}, nil)
}

// finish sends the whole, and ends the stream if one was begun.
func (a *answer) finish(name, text string) error {
	if err := a.c.send(name, handled{text, a.context}, nil); err != nil || !a.begun {
		return err
	}
	return a.c.send(typeHandledStop, nil, nil)
}
