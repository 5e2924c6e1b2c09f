package bridge

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"perch/agent"
	"perch/gateway/httpserver"
	"perch/limit"
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
func (d *API) message(ctx context.Context, body []byte) (answered, error) {
	var m message
	if err := httpserver.Decode(body, &m); err != nil {
		return answered{}, err
	}
	text, err := needed("content", m.Content, limit.Question)
	if err != nil {
		return answered{}, err
	}
	if len(m.SessionID) > limit.Session || len(m.Channel) > limit.Session {
		return answered{}, httpserver.BadBody("session_id and channel have at most 512 bytes")
	}
	turn := agent.Turn{Conversation: agent.ConversationOf("bridge", cmp.Or(m.SessionID, m.Channel)), Text: text, Language: d.language(m.SessionID)}
	var said agent.Spoken
	err = within(ctx, messageWithin, "the answer", func(ctx context.Context) (err error) {
		said, err = d.ask(ctx, &turn)
		return err
	})
	if err != nil {
		return answered{}, err
	}
	// Before it is sent: the next message may come at once.
	d.o.Mind.Remembered(turn.Conversation, agent.Exchange{Heard: text, Said: said.Text, Emoji: said.Face.Emoji}, turn.Now)
	if m.Channel != stackchan {
		return answered{said.Text}, nil
	}
	return answered{strings.TrimSpace(allowed(said.Face) + " " + said.Text)}, nil
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

// ask has the agent answer a turn. The turn is untrusted, because no robot takes
// part: a timer would ring nowhere.
func (d *API) ask(ctx context.Context, t *agent.Turn) (agent.Spoken, error) {
	select {
	case d.turns <- struct{}{}:
		defer func() { <-d.turns }()
	case <-ctx.Done():
		return agent.Spoken{}, ctx.Err()
	}
	t.Untrusted, t.Now = true, d.now()
	said, err := agent.AnswerText(ctx, d.o.Mind, *t, nil)
	if errors.Is(err, agent.ErrNoBrain) && ctx.Err() == nil {
		d.o.Logger.Warn("a message was not answered", "robot", t.Robot, "session", t.Session, "err", err)
		err = &httpserver.Fault{Word: "no_brain", HTTP: http.StatusServiceUnavailable,
			Sentence: "no brain could answer; GET /ready says which are away, and the log why"}
	}
	return said, err
}
