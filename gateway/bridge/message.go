package bridge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"perch/agent"
	"perch/gateway/door"
)

// What a message may hold, in bytes.
const (
	mostContent = 8000
	mostSession = 512
)

// messageWithin is how long an answer may take. Clients of the API have given
// up by then.
const messageWithin = 90 * time.Second

// stackchan is the channel of a robot's voice: its answers begin with a face.
const stackchan = "stackchan"

// message is the body of POST /api/message.
type message struct {
	Content   string `json:"content"`
	Channel   string `json:"channel"`
	SessionID string `json:"session_id"`
}

// answered is what comes back of it.
type answered struct {
	Response string `json:"response"`
}

// message has a text answered by the agent, whole.
func (d *Door) message(ctx context.Context, body []byte) (answered, error) {
	var m message
	if err := decode(body, &m); err != nil {
		return answered{}, err
	}
	text, err := needed("content", m.Content, mostContent)
	if err != nil {
		return answered{}, err
	}
	if len(m.SessionID) > mostSession || len(m.Channel) > mostSession {
		return answered{}, badBody("session_id and channel have at most 512 bytes")
	}
	turn := agent.Turn{Conversation: conversation(cmp.Or(m.SessionID, m.Channel)), Text: text}
	var said reply
	err = within(ctx, messageWithin, "the answer", func(ctx context.Context) error {
		var err error
		said, err = d.ask(ctx, &turn)
		return err
	})
	if err != nil {
		return answered{}, err
	}
	// Before it is sent: the next message may come at once.
	d.o.Mind.Remembered(turn.Conversation, agent.Exchange{Heard: text, Said: said.text, Emoji: said.face.Emoji}, turn.Now)
	if m.Channel != stackchan {
		return answered{said.text}, nil
	}
	return answered{strings.TrimSpace(allowed(said.face) + " " + said.text)}, nil
}

// fit is a name that can be kept as it is.
var fit = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

// conversation is the agent's key of a client's talk.
func conversation(name string) string {
	if name != "" && !fit.MatchString(name) {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:16])
	}
	return "bridge:" + name
}

// allowed is the emoji that the channel's readers know for a face: one of the
// nine, and the neutral one for all others.
func allowed(face agent.Emotion) string {
	for _, e := range agent.OfferedEmotions() {
		if e.Name == face.Name {
			return e.Emoji
		}
	}
	return agent.Neutral.Emoji
}

// reply is an answer as a whole.
type reply struct {
	face agent.Emotion // the first; empty where there was none
	text string
}

// ask has the mind answer a turn. Who asks is a guest, for there is no robot in
// the turn: a timer would ring nowhere. A question of the mind is a no: nobody
// can answer it here.
func (d *Door) ask(ctx context.Context, t *agent.Turn) (reply, error) {
	select {
	case d.turns <- struct{}{}:
		defer func() { <-d.turns }()
	case <-ctx.Done():
		return reply{}, ctx.Err()
	}
	t.Guest, t.Now, t.Language = true, d.now(), d.o.Language
	var said []string
	var face agent.Emotion
	err := d.o.Mind.Answer(ctx, *t, func(r agent.Reply) error {
		switch r := r.(type) {
		case agent.Felt:
			if face.Name == "" {
				face = r.Emotion
			}
		case agent.Say:
			said = append(said, r.Text)
		case agent.Ask:
			r.Answer(agent.Answer{Outcome: agent.AnswerClosed})
		}
		return ctx.Err()
	})
	switch {
	case err == nil:
		return reply{face, strings.Join(said, " ")}, nil
	case ctx.Err() == nil && errors.Is(err, agent.ErrNoBrain):
		d.o.Logger.Warn("a message was not answered", "robot", t.Robot, "session", t.Session, "err", err)
		return reply{}, &door.Fault{Word: "no_brain", HTTP: http.StatusServiceUnavailable,
			Sentence: "no brain could answer; GET /ready says which are away, and the log why"}
	}
	return reply{}, err
}
