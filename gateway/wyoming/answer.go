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

// turnWithin is how long an answer may take. Home Assistant has given up by
// then.
const turnWithin = 3 * time.Minute

// takeTranscript has a text answered.
func (v *connection) takeTranscript(e wire.Event) error {
	var t transcript
	if err := decode(e, &t); err != nil {
		return err
	}
	turn := agent.Turn{Untrusted: true, Language: v.o.Languages[0]}
	if languageTag().MatchString(t.Language) {
		turn.Language = strings.ReplaceAll(t.Language, "_", "-")
	}
	if len(t.Text) > limit.Said {
		return v.request(func(context.Context) error {
			return v.send(typeNotHandled, handled{Text: v.phrase(turn.Language, "too_much"), Context: v.talk(t)}, nil)
		})
	}
	turn.Text = plain.Line(t.Text)
	a := &answer{v: v, context: v.talk(t)}
	turn.Conversation = agent.ConversationOf("wyoming", a.context.ConversationID)
	return v.request(func(ctx context.Context) error { return a.stream(ctx, turn) })
}

// phrase is one of the appliance's own sentences, without its face.
func (s *service) phrase(tag, name string) string {
	_, text := agent.SplitEmotion(s.o.Phrases.Of(tag, name))
	return text
}

// talk is the context of a text: that of its talk at Home Assistant, or else
// of the connection. It is sent back, so that a client that keeps it goes on.
func (v *connection) talk(t transcript) talk {
	var named talk
	if json.Unmarshal(t.Context, &named) == nil && named.ConversationID != "" {
		return named
	}
	if v.own == "" {
		v.own = strings.ToLower(rand.Text())
	}
	return talk{v.own}
}

// answer is one being given.
type answer struct {
	v       *connection
	context talk
	begun   bool // a sentence was sent
}

// stream streams the sentences as they come, and sends the whole answer as well:
// Home Assistant waits for it, and so do clients without streaming. The turn has
// no session, because nothing of it shows elsewhere.
func (a *answer) stream(ctx context.Context, t agent.Turn) error {
	v := a.v
	if t.Text == "" {
		return a.finish(typeNotHandled, v.phrase(t.Language, "misheard"))
	}
	leave, err := v.s.turns.acquire(ctx)
	if err != nil {
		return err
	}
	defer leave()
	within, cancel := context.WithTimeout(ctx, turnWithin)
	defer cancel()
	t.Now = time.Now().In(v.o.Zone)
	said, err := agent.AnswerText(within, v.o.Mind, t, a.sendReply)
	var f *failure
	switch {
	case err == nil:
	case errors.As(failed(ctx, "The mind did not answer.", err), &f):
		v.log.Warn("a text was not answered", "err", err)
		return a.finish(typeNotHandled, v.phrase(t.Language, "failed"))
	default:
		return err
	}
	// Before it is sent: the next text may come at once.
	v.o.Mind.Remembered(t.Conversation, agent.Exchange{Heard: t.Text, Said: said.Text}, t.Now)
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
	} else if err := a.v.send(typeHandledStart, struct {
		Context talk `json:"context"`
	}{a.context}, nil); err != nil {
		return err
	}
	a.begun = true
	return a.v.send(typeHandledChunk, wire.Text{Text: part}, nil)
}

// finish sends the whole, and ends the stream if one was begun.
func (a *answer) finish(name, text string) error {
	if err := a.v.send(name, handled{text, a.context}, nil); err != nil || !a.begun {
		return err
	}
	return a.v.send(typeHandledStop, nil, nil)
}
