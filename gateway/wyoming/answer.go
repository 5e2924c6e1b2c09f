package wyoming

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"time"
	"unicode"

	"perch/agent"
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
	if len(t.Text) > mostText {
		return v.request(func(context.Context) error {
			return v.send(typeNotHandled, handled{Text: "That was too much to read at once.", Context: v.talk(t)}, nil)
		})
	}
	turn := agent.Turn{Guest: true, Text: plain(t.Text), Language: v.s.o.Language}
	if languageTag.MatchString(t.Language) {
		turn.Language = strings.ReplaceAll(t.Language, "_", "-")
	}
	a := &answer{v: v, context: v.talk(t)}
	turn.Conversation = conversation(a.context.ConversationID)
	return v.request(func(ctx context.Context) error { return a.give(ctx, turn) })
}

// plain is a text in one line, without what no keyboard types.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
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

// fit is a name that can be kept as it is. Home Assistant's are 26 letters and
// digits, but a client may choose others.
var fit = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

// conversation is the agent's key of a talk.
func conversation(id string) string {
	if !fit.MatchString(id) {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:16])
	}
	return "wyoming:" + id
}

// answer is one being given.
type answer struct {
	v       *connection
	context talk
	said    []string
}

// give streams the sentences as they are thought, and sends the whole as
// well: that is what Home Assistant waits for, and clients that know no
// streams. The turn has no session, for none of it shows anywhere else.
func (a *answer) give(ctx context.Context, t agent.Turn) error {
	v := a.v
	if t.Text == "" {
		return a.end(typeNotHandled, "There was nothing to answer.")
	}
	leave, err := v.s.turns.take(ctx)
	if err != nil {
		return err
	}
	defer leave()
	within, cancel := context.WithTimeout(ctx, turnWithin)
	defer cancel()
	t.Now = time.Now().In(v.s.o.Zone)
	err = v.s.o.Mind.Answer(within, t, func(r agent.Reply) error {
		if err := a.take(r); err != nil {
			return err
		}
		return within.Err()
	})
	var f *failure
	switch {
	case err == nil:
	case errors.As(failed(ctx, "The mind did not answer.", err), &f):
		v.log.Warn("a text was not answered", "err", err)
		return a.end(typeNotHandled, v.s.o.Sorry)
	default:
		return err
	}
	said := strings.Join(a.said, " ")
	// Before it is sent: the next text may come at once.
	v.s.o.Mind.Remembered(t.Conversation, agent.Exchange{Heard: t.Text, Said: said}, t.Now)
	return a.end(typeHandled, said)
}

// take passes on one reply. A question is a no, as there is nobody to ask: who
// writes here may be anybody.
func (a *answer) take(r agent.Reply) error {
	switch r := r.(type) {
	case agent.Ask:
		r.Answer(agent.Answer{Outcome: agent.AnswerClosed})
	case agent.Say:
		part := r.Text
		if len(a.said) == 0 {
			if err := a.v.send(typeHandledStart, struct {
				Context talk `json:"context"`
			}{a.context}, nil); err != nil {
				return err
			}
		} else {
			part = " " + part
		}
		a.said = append(a.said, r.Text)
		return a.v.send(typeHandledChunk, wire.Text{Text: part}, nil)
	}
	return nil
}

// end sends the whole, and ends the stream if one was begun.
func (a *answer) end(name, text string) error {
	if err := a.v.send(name, handled{text, a.context}, nil); err != nil || len(a.said) == 0 {
		return err
	}
	return a.v.send(typeHandledStop, nil, nil)
}
