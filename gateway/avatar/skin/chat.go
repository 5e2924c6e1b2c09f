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

// turnWithin bounds a turn.
const turnWithin = 3 * time.Minute

// turns holds the conversations that have a turn.
type turns struct {
	mu   sync.Mutex
	busy map[string]bool
}

// errBusy is the error when another turn has to end first.
var errBusy error = &busy{httpserver.Fault{Word: "agent_busy", Sentence: "agent is busy, retry in a moment", HTTP: http.StatusTooManyRequests}}

// busy is a fault with a Retry-After.
type busy struct{ httpserver.Fault }

// RetryAfter returns how long to wait, in seconds.
func (*busy) RetryAfter() int { return 3 }

// enter begins a turn. leave ends it after calling publish, so that a client that sees the
// end can begin the next turn, and no event of that precedes the end.
func (t *turns) enter(conversation string) (leave func(publish func()), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[conversation] || len(t.busy) >= limit.Turns {
		return nil, errBusy
	}
	t.busy[conversation] = true
	return func(publish func()) {
		t.mu.Lock()
		defer t.mu.Unlock()
		publish()
		delete(t.busy, conversation)
	}, nil
}

// chat answers a question. It passes the text to out, and the status of tools to tools if that
// is not nil, while the agent answers.
func (s *Server) chat(ctx context.Context, q question, out func(text string) error, tools func(event.ToolStatus) error) error {
	p := prose{table: s.o.Words, words: q.words, face: agent.Neutral.Name, word: s.o.Words.Word(q.words, agent.Neutral.Name)}
	return s.answer(ctx, q, func(r agent.Reply) error {
		if t, is := r.(agent.ToolStatus); is && tools != nil {
			return tools(t.ToolStatus)
		}
		if text := p.add(r); text != "" {
			return out(text)
		}
		return nil
	})
}

// SessionOf returns the session under which a talk is published, such as "vtb_desk" for desk.
// "robot:" and an id or a name is the talk of that robot. The error has a Code.
func (s *Server) SessionOf(talk string) (session string, err error) {
	t, err := s.talkOf(talk, "")
	return t.session, err
}

// Chat answers a text for other servers, by the rules of this one. talk is as for SessionOf;
// an empty character stands for the household's. It passes the replies to take, whose error
// ends the turn, as the end of ctx does, and publishes events under the talk's session. The
// error has a Code if the turn could not begin, such as agent_busy, or bad_request for a text
// that is empty or too long.
func (s *Server) Chat(ctx context.Context, talk, character, text string, take func(agent.Reply) error) error {
	t, err := s.talkOf(talk, "")
	if err != nil {
		return err
	}
	if character != "" && !s.hasCharacter(character) {
		return noModel(character)
	}
	q := question{talk: t.with(character), character: character, text: printable(text)}
	switch {
	case q.text == "":
		return badChat("the text is empty")
	case len(q.text) > limit.Question:
		return badChat("the text has %d bytes, more than %d", len(q.text), limit.Question)
	}
	return s.answer(ctx, q, take)
}

// answer answers a question in a turn, and publishes its events.
func (s *Server) answer(ctx context.Context, q question, take func(agent.Reply) error) error {
	a := &answer{server: s, talk: q.talk, take: take}
	leave, err := s.turns.enter(q.talk.conversation)
	if err != nil {
		return err
	}
	failed := errors.New("the turn was broken off")
	defer leave(func() { a.finish(ctx, failed) })
	within, cancel := context.WithTimeout(ctx, turnWithin)
	defer cancel()
	turn := agent.Turn{Conversation: q.talk.conversation, Robot: q.talk.robot, Session: q.talk.session, Text: q.text,
		Now: time.Now().In(s.o.Zone), Language: s.o.Language(q.talk.robot), History: q.history}
	turn.Untrusted = turn.Robot != "" && !s.o.Robots.Trusts(turn.Robot) // a stranger's history must not act in the owner's home
	if s.o.Characters != nil && turn.Robot == "" {                      // a robot's talk has the robot's character
		s.o.Characters.Play(&turn, q.character, q.system)
	}
	// A robot's state is that of its own session. The events of this turn are published
	// below under a session without a robot.
	turn.Unpublished = q.talk.robot != ""
	a.publish(event.Heard{Text: q.text})
	said, failed := agent.AnswerText(within, s.o.Mind, turn, a.handleReply)
	a.remember(turn, said.Text)
	switch {
	case failed == nil || ctx.Err() != nil:
		return failed
	case errors.Is(failed, agent.ErrNoBrain), within.Err() != nil:
		s.o.Log.Warn("a chat was not answered", "robot", q.talk.robot, "session", q.talk.session, "err", failed)
		return &httpserver.Fault{Word: "no_brain", HTTP: http.StatusServiceUnavailable,
			Sentence: "no brain could answer; GET /ready says which are away, and the log why"}
	}
	return failed
}

// answer is the state of an answer.
type answer struct {
	server   *Server
	talk     talk
	take     func(agent.Reply) error
	speaking bool
}

func (a *answer) publish(e event.Event) { a.server.o.Bus.Publish("", a.talk.session, e) }

// handleReply publishes a reply's events, and passes it on. In a joined talk the agent itself
// publishes none.
func (a *answer) handleReply(r agent.Reply) error {
	joined := a.talk.robot != ""
	switch r := r.(type) {
	case agent.ToolStatus:
		if joined {
			a.publish(r.ToolStatus)
		}
	case agent.Felt:
		if joined {
			a.publish(event.Emotion{Name: r.Emotion.Name, Emoji: r.Emotion.Emoji, Intensity: r.Intensity, Tag: r.Tag})
		}
	case agent.Cue:
		if g, is := r.Gesture(); is && joined {
			a.gesture(g)
		}
	case agent.Say:
		if !a.speaking {
			a.speaking = true
			a.publish(event.SpeakingStarted{})
		}
		a.publish(event.Said{Text: r.Text})
	}
	return a.take(r)
}

// gesture publishes a gesture for skins, and for the robot whose talk was joined unless it is a
// stranger.
func (a *answer) gesture(g event.Gesture) {
	a.publish(g)
	if id := a.talk.robot; a.server.o.Robots.Trusts(id) {
		a.server.o.Bus.Publish(id, "", g)
	}
}

// remember has the agent remember the turn, unless the client does.
func (a *answer) remember(t agent.Turn, said string) {
	mind := a.server.o.Mind
	if !a.talk.named {
		if err := mind.Forget(t.Conversation); err != nil {
			a.server.o.Log.Warn("a talk was not forgotten", "err", err)
		}
	} else if said != "" {
		mind.Remembered(t.Conversation, agent.Exchange{Heard: t.Text, Said: said}, t.Now)
	}
}

// finish publishes the end of the turn.
func (a *answer) finish(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
		a.publish(event.TurnEnded{End: event.EndCancelled})
	case err != nil:
		a.publish(event.TurnEnded{End: event.EndFailed, Reason: err.Error()})
	default:
		a.publish(event.TurnEnded{End: event.EndDone})
	}
}

// prose converts replies to text with tags, which skins read.
type prose struct {
	table *agent.Words
	words agent.Vocabulary
	face  string // the current one
	word  string // its tag
	tags  string // for the next sentence
	begun bool
}

// add returns the text that a reply adds.
func (p *prose) add(r agent.Reply) string {
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
