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

// messageTimeout is the time limit for a reply. The programs that use this API usually have shorter timeouts.
const messageTimeout = 90 * time.Second

// stackchan is the value of message.Channel that voice servers for robots send. These servers need an emoji at the beginning
// of the reply.
const stackchan = "stackchan"

// message is the body of POST /api/message.
type message struct {
	Content   string `json:"content"`
	Channel   string `json:"channel"`
	SessionID string `json:"session_id"`
}

// messageReply is the response to a message.
type messageReply struct {
	Response string `json:"response"`
}

// message returns the whole reply of the agent to a text.
func (a *API) message(ctx context.Context, body []byte) (messageReply, error) {
	var m message
	if err := httpserver.Decode(body, &m); err != nil {
		return messageReply{}, err
	}
	text, err := requiredText("content", m.Content, limit.Question)
	if err != nil {
		return messageReply{}, err
	}
	if len(m.SessionID) > limit.Session || len(m.Channel) > limit.Session {
		return messageReply{}, httpserver.BadBody("session_id and channel have at most 512 bytes")
	}
	turn := agent.Turn{Conversation: agent.ConversationOf("bridge", cmp.Or(m.SessionID, m.Channel)), Text: text, Language: a.language(m.SessionID)}
	reply, err := withTimeout(ctx, messageTimeout, "the answer", func(ctx context.Context) (agent.Spoken, error) { return a.askAgent(ctx, &turn) })
	if err != nil {
		return messageReply{}, err
	}
	// The exchange is added to the conversation before the response, because the client may send the next message at once.
	a.o.Mind.AddExchange(turn.Conversation, agent.Exchange{Heard: text, Said: reply.Text, Emoji: reply.Face.Emoji}, turn.Now)
	if m.Channel != stackchan {
		return messageReply{reply.Text}, nil
	}
	return messageReply{strings.TrimSpace(channelEmoji(reply.Face) + " " + reply.Text)}, nil
}

// channelEmoji returns the emoji of a face if the face is one of the nine that voice servers for robots support, and the
// neutral emoji otherwise.
func channelEmoji(face agent.Emotion) string {
	for _, e := range agent.OfferedEmotions() {
		if e.Name == face.Name {
			return e.Emoji
		}
	}
	return agent.Neutral.Emoji
}

// askAgent returns the reply of the agent to a turn. At most limit.Turns replies are made at a time; further calls wait.
// askAgent marks the turn as untrusted, which keeps the agent from setting a timer, for example: there is no robot that
// could ring.
func (a *API) askAgent(ctx context.Context, t *agent.Turn) (agent.Spoken, error) {
	select {
	case a.turns <- struct{}{}:
		defer func() { <-a.turns }()
	case <-ctx.Done():
		return agent.Spoken{}, ctx.Err()
	}
	t.Untrusted, t.Now = true, a.now()
	reply, err := agent.AnswerText(ctx, a.o.Mind, *t, nil)
	if errors.Is(err, agent.ErrNoBrain) && ctx.Err() == nil {
		a.o.Logger.Warn("a message was not answered", "robot", t.Robot, "session", t.Session, "err", err)
		err = &httpserver.Fault{Word: "no_brain", HTTP: http.StatusServiceUnavailable,
			Sentence: "no brain could answer; GET /ready says which are away, and the log why"}
	}
	return reply, err
}
