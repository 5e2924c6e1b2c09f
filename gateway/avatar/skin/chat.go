package skin

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/limit"
)

// turnTimeout is the maximum duration of a turn.
const turnTimeout = 3 * time.Minute

// turns limits the turns in progress: one in each conversation, and limit.Turns in total.
type turns struct {
	mu   sync.Mutex
	busy map[string]bool // keys of the conversations that have a turn
}

// errBusy is returned if a turn cannot begin before another turn has ended.
var errBusy error = &busyFault{httpserver.Fault{Word: "agent_busy", Sentence: "agent is busy, retry in a moment", HTTP: http.StatusTooManyRequests}}

// busyFault is a fault with a Retry-After header.
type busyFault struct{ httpserver.Fault }

// RetryAfter returns the value of the Retry-After header in seconds.
func (*busyFault) RetryAfter() int { return 3 }

// start begins a turn in the conversation with a key. The caller must call end, which calls publish
// to publish the end of the turn. While end runs, start waits: a client that receives the published
// end can begin its next turn at once, and the events of that turn follow.
func (t *turns) start(key string) (end func(publish func()), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[key] || len(t.busy) >= limit.Turns {
		return nil, errBusy
	}
	t.busy[key] = true
	return func(publish func()) {
		t.mu.Lock()
		defer t.mu.Unlock()
		publish()
		delete(t.busy, key)
	}, nil
}

// chatText answers a question. While the agent answers, chatText passes the text of the replies to out,
// and the status of the agent's tools to tools. tools may be nil.
func (s *Server) chatText(ctx context.Context, q question, out func(text string) error, tools func(event.ToolStatus) error) error {
	p := textWriter{table: s.o.Words, words: q.words, face: agent.Neutral.Name, word: s.o.Words.Word(q.words, agent.Neutral.Name)}
	return s.runTurn(ctx, q, func(r agent.Reply) error {
		if t, ok := r.(agent.ToolStatus); ok && tools != nil {
			return tools(t.ToolStatus)
		}
		if text := p.add(r); text != "" {
			return out(text)
		}
		return nil
	})
}

// SessionOf returns the session ID in the events of the conversation with a name, such as
// "vtb_desk" for desk. The name of a robot's conversation is "robot:" and the robot's ID or
// name. The error has a Code method.
func (s *Server) SessionOf(name string) (session string, err error) {
	c, err := s.findConversation(name, "")
	return c.session, err
}

// Chat sends text to a character in the conversation with a name (see SessionOf), and passes each
// part of the reply to handle. If character is empty, the default character replies. The turn
// ends early if handle returns an error or ctx ends. The events of the turn are published under the
// conversation's session. If the turn could not begin, the error has a Code method, which returns a
// code such as agent_busy, or bad_request for a text that is empty or too long.
func (s *Server) Chat(ctx context.Context, name, character, text string, handle func(agent.Reply) error) error {
	c, err := s.findConversation(name, "")
	if err != nil {
		return err
	}
	if character != "" && !s.hasCharacter(character) {
		return noModel(character)
	}
	q := question{conversation: c.with(character), character: character, text: printable(text)}
	switch {
	case q.text == "":
		return badChat("the text is empty")
	case len(q.text) > limit.Question:
		return badChat("the text has %d bytes, more than %d", len(q.text), limit.Question)
	}
	return s.runTurn(ctx, q, handle)
}

// runTurn lets the agent answer a question, publishes the events of the turn, passes each reply to
// handle, and calls activeTurn.remember. It returns errBusy if the turn cannot begin.
func (s *Server) runTurn(ctx context.Context, q question, handle func(agent.Reply) error) error {
	end, err := s.turns.start(q.conversation.key)
	if err != nil {
		return err
	}
	a := &activeTurn{server: s, conversation: q.conversation, playback: s.startPlayback(q.conversation), handle: handle}
	failed := errors.New("the turn was broken off")
	defer end(func() { a.publishEnd(ctx, failed) })
	turnCtx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	turn := agent.Turn{Conversation: q.conversation.key, Robot: q.conversation.robot, Session: q.conversation.session, Text: q.text,
		Now: time.Now().In(s.o.Zone), Language: s.o.Language(q.conversation.robot), History: q.history}
	// A robot that is not adopted must not give anybody control of the home.
	turn.Untrusted = turn.Robot != "" && !s.o.Robots.Trusts(turn.Robot)
	if s.o.Characters != nil && turn.Robot == "" { // in a robot's conversation, the robot's own character replies
		s.o.Characters.Play(&turn, q.character, q.system)
	}
	turn.Publish = a.playback.add // publishes without the robot's ID, so that the robot's state does not change
	a.playback.add(event.Heard{Text: q.text})
	reply, failed := agent.AnswerText(turnCtx, s.o.Mind, turn, a.handleReply)
	a.remember(turn, reply.Text)
	switch {
	case failed == nil || ctx.Err() != nil:
		return failed
	case errors.Is(failed, agent.ErrNoBrain), turnCtx.Err() != nil:
		s.o.Log.Warn("the agent could not answer a chat", "robot", q.conversation.robot, "session", q.conversation.session, "err", failed)
		return &httpserver.Fault{Word: "no_brain", HTTP: http.StatusServiceUnavailable,
			Sentence: "no brain could answer; GET /ready lists the unavailable ones, and the log says why"}
	}
	return failed
}

// activeTurn is a turn in progress.
type activeTurn struct {
	server       *Server
	conversation conversation
	playback     *playback
	handle       func(agent.Reply) error
	speaking     bool // whether event.SpeakingStarted was added to the playback
}

// handleReply passes a reply to a.handle, and adds the events of speech to the playback. The agent adds
// the other events through agent.Turn.Publish. In the conversation of an adopted robot, the robot makes
// the gestures too.
func (a *activeTurn) handleReply(r agent.Reply) error {
	if cue, ok := r.(agent.Cue); ok {
		id := a.conversation.robot
		if g, ok := cue.Gesture(); ok && id != "" && a.server.o.Robots.Trusts(id) {
			a.server.o.Bus.Publish(id, "", g)
		}
	}
	if err := a.handle(r); err != nil { // before the events, because the client may report how long its sound lasts
		return err
	}
	if say, ok := r.(agent.Say); ok {
		if !a.speaking {
			a.speaking = true
			a.playback.add(event.SpeakingStarted{})
		}
		a.playback.add(event.Said{Text: say.Text})
	}
	return nil
}

// remember adds the turn to the agent's memory of the conversation. It deletes that memory instead
// if no later request can continue the conversation.
func (a *activeTurn) remember(t agent.Turn, reply string) {
	mind := a.server.o.Mind
	if !a.conversation.named {
		if err := mind.Forget(t.Conversation); err != nil {
			a.server.o.Log.Warn("could not forget a conversation", "err", err)
		}
	} else if reply != "" {
		mind.AddExchange(t.Conversation, agent.Exchange{Heard: t.Text, Said: reply}, t.Now)
	}
}

// publishEnd adds the end of the turn to the playback. ctx is the context of the request; if it has
// ended, the rest of the playback is skipped.
func (a *activeTurn) publishEnd(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
		a.playback.add(event.TurnEnded{End: event.EndCancelled})
		a.playback.skip()
	case err != nil:
		a.playback.add(event.TurnEnded{End: event.EndFailed, Reason: err.Error()})
	default:
		a.playback.add(event.TurnEnded{End: event.EndDone})
	}
}

// textWriter converts replies to text with tags for faces and gestures, such as "[happy] ".
type textWriter struct {
	table *agent.Words
	words agent.Vocabulary // vocabulary of the tags
	face  string           // name of the current face
	word  string           // tag of the current face
	tags  string           // tags before the next sentence
	begun bool             // whether a sentence was added
}

// add returns the text to append for a reply. It is "" for a face or gesture, whose tag precedes the
// next sentence.
func (p *textWriter) add(r agent.Reply) string {
	switch r := r.(type) {
	case agent.Felt:
		face, word := r.Emotion.Name, p.table.Tag(p.words, r.Emotion.Name, r.Tag)
		if face != p.face || word != p.word {
			p.tags += "[" + word + "] "
		}
		p.face, p.word = face, word
	case agent.Cue:
		p.tags += "[" + r.Kind + ":" + r.Value + "] "
	case agent.Say:
		text := p.tags + r.Text
		if p.begun {
			text = " " + text
		}
		p.tags, p.begun = "", true
		return text
	}
	return ""
}
