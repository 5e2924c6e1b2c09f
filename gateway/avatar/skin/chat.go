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

// Bounds of turns.
const turnWithin = 3 * time.Minute

// turns are the conversations in which a turn is under way.
type turns struct {
	mu   sync.Mutex
	busy map[string]bool
}

// errBusy is the answer where another turn has to end first.
var errBusy error = &busy{httpserver.Fault{Word: "agent_busy", Sentence: "agent is busy, retry in a moment", HTTP: http.StatusTooManyRequests}}

// busy is a fault that is soon over.
type busy struct{ httpserver.Fault }

// RetryAfter is how long to wait, in seconds.
func (*busy) RetryAfter() int { return 3 }

// enter begins a turn. What it returns ends it, and has tell say so: who is told may
// begin the next turn, and nothing of that is told before.
func (t *turns) enter(conversation string) (leave func(tell func()), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[conversation] || len(t.busy) >= limit.Turns {
		return nil, errBusy
	}
	t.busy[conversation] = true
	return func(tell func()) {
		t.mu.Lock()
		defer t.mu.Unlock()
		tell()
		delete(t.busy, conversation)
	}, nil
}

// chat has a question answered, and passes its text to out while the agent answers, and
// to tools what it works with; tools may be nil. The turn ends with ctx. Its events are
// published under the talk's session, so that skins see it.
func (s *Server) chat(ctx context.Context, q question, out func(text string) error, tools func(event.ToolStatus) error) error {
	return s.answer(ctx, q, &answer{server: s, question: q, out: out, tools: tools, prose: prose{table: s.o.Words, words: q.words}})
}

// SessionOf is the session in which the talk of that name shows: "vtb_desk", and
// "robot:" with an id or a name is the talk of that robot. The error has a Code.
func (s *Server) SessionOf(talk string) (session string, err error) {
	t, err := s.talkOf(talk, "")
	return t.session, err
}

// Chat has a text answered for another door, by the rules of this one: talk is the name
// of the talk that goes on (see SessionOf), character who answers, empty for the
// household's. It passes on what is said, felt and done as it comes; an error of take
// ends the turn, as ctx does. What shows is published under the talk's session. The
// error has a Code where the turn could not be begun, such as agent_busy, or bad_request
// for a text that is empty or too long.
func (s *Server) Chat(ctx context.Context, talk, character, text string, take func(agent.Reply) error) error {
	t, err := s.talkOf(talk, "")
	if err != nil {
		return err
	}
	if character != "" && !s.hasCharacter(character) {
		return noModel(character)
	}
	q := question{talk: t.with(character), character: character, text: typed(text)}
	switch {
	case q.text == "":
		return badChat("the text is empty")
	case len(q.text) > limit.Question:
		return badChat("the text has %d bytes, more than %d", len(q.text), limit.Question)
	}
	return s.answer(ctx, q, &answer{server: s, question: q, replies: take})
}

// answer has a question answered.
func (s *Server) answer(ctx context.Context, q question, a *answer) error {
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
	turn.Untrusted = turn.Robot != "" && !s.o.Robots.Trusts(turn.Robot) // what a stranger has said before must not act in the owner's home
	if s.o.Characters != nil && turn.Robot == "" {                      // a robot's talk is that of its own character
		s.o.Characters.Play(&turn, q.character, q.system)
	}
	// The robot's own state is its session's. What shows of this turn is
	// published below, as that of a session without a robot.
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

// answer is one being given.
type answer struct {
	server   *Server
	question question
	out      func(string) error
	replies  func(agent.Reply) error      // gets what is said as it comes, in place of out; or nil
	tools    func(event.ToolStatus) error // gets what the agent works with; or nil
	prose    prose
	speaking bool
}

func (a *answer) publish(e event.Event) { a.server.o.Bus.Publish("", a.question.talk.session, e) }

// handleReply passes on one reply.
func (a *answer) handleReply(r agent.Reply) error {
	joined := a.question.talk.robot != ""
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
	if a.replies != nil {
		return a.replies(r)
	}
	if t, is := r.(agent.ToolStatus); is && a.tools != nil {
		return a.tools(t.ToolStatus)
	}
	if text := a.prose.add(r); text != "" {
		return a.out(text)
	}
	return nil
}

// gesture is made where the chat is shown, and by the robot whose talk it has joined. A
// stranger's robot makes none.
func (a *answer) gesture(g event.Gesture) {
	a.publish(g)
	if id := a.question.talk.robot; a.server.o.Robots.Trusts(id) {
		a.server.o.Bus.Publish(id, "", g)
	}
}

// remember has the agent remember the turn, unless its client does.
func (a *answer) remember(t agent.Turn, said string) {
	mind := a.server.o.Mind
	if !a.question.talk.kept {
		if err := mind.Forget(t.Conversation); err != nil {
			a.server.o.Log.Warn("a talk was not forgotten", "err", err)
		}
	} else if said != "" {
		mind.Remembered(t.Conversation, agent.Exchange{Heard: t.Text, Said: said}, t.Now)
	}
}

// finish publishes how the turn has ended.
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

// prose makes the text of replies, with the tags that skins read.
type prose struct {
	table *agent.Words
	words agent.Vocabulary
	face  string // that is shown; empty at the beginning
	word  string // that it is called
	tags  string // that stand before the next sentence
	begun bool
}

// add returns what a reply adds to the text.
func (p *prose) add(r agent.Reply) string {
	switch r := r.(type) {
	case agent.Felt:
		face, word := r.Emotion.Name, p.table.Tag(p.words, r.Emotion.Name, r.Tag)
		// To begin with no face is to begin with the neutral one.
		if p.face == "" {
			p.face, p.word = agent.Neutral.Name, p.table.Word(p.words, agent.Neutral.Name)
		}
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
