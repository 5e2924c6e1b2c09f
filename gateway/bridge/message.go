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

// messageWithin bounds the time of an answer. The API's clients give up earlier.
const messageWithin = 90 * time.Second

// stackchan is the channel of a robot's voice. Answers on it begin with an emoji.
const stackchan = "stackchan"

// message is the body of POST /api/message.
type message struct {
	Content   string `json:"content"`
	Channel   string `json:"channel"`
	SessionID string `json:"session_id"`
}

// answered is its answer.
type answered struct {
	Response string `json:"response"`
}

// message returns the agent's whole answer to a text.
func (a *API) message(ctx context.Context, body []byte) (answered, error) {
	var m message
	if err := httpserver.Decode(body, &m); err != nil {
		return answered{}, err
	}
	text, err := required("content", m.Content, limit.Question)
	if err != nil {
		return answered{}, err
	}
	if len(m.SessionID) > limit.Session || len(m.Channel) > limit.Session {
		return answered{}, httpserver.BadBody("session_id and channel have at most 512 bytes")
	}
	turn := agent.Turn{Conversation: agent.ConversationOf("bridge", cmp.Or(m.SessionID, m.Channel)), Text: text, Language: a.language(m.SessionID)}
	said, err := within(ctx, messageWithin, "the answer", func(ctx context.Context) (agent.Spoken, error) { return a.ask(ctx, &turn) })
	if err != nil {
		return answered{}, err
	}
	// It is remembered before it is sent, because the next message may follow at once.
	a.o.Mind.Remembered(turn.Conversation, agent.Exchange{Heard: text, Said: said.Text, Emoji: said.Face.Emoji}, turn.Now)
	if m.Channel != stackchan {
		return answered{said.Text}, nil
	}
	return answered{strings.TrimSpace(allowed(said.Face) + " " + said.Text)}, nil
}

// allowed returns the emoji of a face: one of the nine that the channel's readers know, or
// the neutral one.
func allowed(face agent.Emotion) string {
	for _, e := range agent.OfferedEmotions() {
		if e.Name == face.Name {
			return e.Emoji
		}
	}
	return agent.Neutral.Emoji
}

// ask returns the agent's answer to a turn. The turn is untrusted, because no robot takes
// part in it: a timer would ring nowhere.
func (a *API) ask(ctx context.Context, t *agent.Turn) (agent.Spoken, error) {
	select {
	case a.turns <- struct{}{}:
		defer func() { <-a.turns }()
	case <-ctx.Done():
		return agent.Spoken{}, ctx.Err()
	}
	t.Untrusted, t.Now = true, a.now()
	said, err := agent.AnswerText(ctx, a.o.Mind, *t, nil)
	if errors.Is(err, agent.ErrNoBrain) && ctx.Err() == nil {
		a.o.Logger.Warn("a message was not answered", "robot", t.Robot, "session", t.Session, "err", err)
		err = &httpserver.Fault{Word: "no_brain", HTTP: http.StatusServiceUnavailable,
			Sentence: "no brain could answer; GET /ready says which are away, and the log why"}
	}
	return said, err
}
