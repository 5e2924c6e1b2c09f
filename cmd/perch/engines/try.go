package engines

import (
	"context"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/gateway/owner/admin"
	"perch/voice"
)

// Trials are the engines as their owner looks at them and tries them. A trial counts as any use
// does, and an engine that is left alone for a while is tried, too: its owner wants to know
// whether it works again.
type Trials struct {
	engines *Current
	speech  func() voice.Options // the household's
	zone    *time.Location
}

// NewTrials returns the trials of engines. speech is the language and voice of the household.
func NewTrials(c *Current, speech func() voice.Options, zone *time.Location) Trials {
	return Trials{c, speech, zone}
}

// tryConversation is the name of a try's, which no history is kept of.
const tryConversation = "try"

// Engines are all but the servers of tools.
func (t Trials) Engines() []admin.Engine {
	shown := []admin.Engine{}
	e := t.engines.Engines()
	for i, part := range e.Conditions() {
		n := e.All[i]
		if one, is := n.shown(part); is {
			switch words := e.words.In(t.speech().Language); {
			case n.Synthesizer != nil:
				one.Sample = words.Message("engines.voice")
			case one.Try == admin.TryText:
				one.Sample = words.Message("engines.sample")
			}
			shown = append(shown, one)
		}
	}
	return shown
}

// shown is an engine with its condition.
func (n *Engine) shown(p admin.Part) (one admin.Engine, is bool) {
	one = admin.Engine{Part: n.Part, List: n.List, Kind: n.Kind, Where: n.Where, OK: p.OK, Note: p.Note, Since: p.Since}
	switch {
	case n.Recognizer != nil:
		one.Try = admin.TrySound
	case n.Synthesizer != nil, n.Brain != nil:
		one.Try = admin.TryText
	case n.Deep != nil:
		one.List, one.Try = "brain_deep", admin.TryText
	default:
		return one, false
	}
	return one, true
}

// acquire is an engine by its part, which stays open until done is called.
func (t Trials) acquire(part string) (found *Engine, done func()) {
	e, done := t.engines.Acquire()
	for _, n := range e.All {
		if n.Part == part {
			found = n
		}
	}
	return found, done
}

// Recognize has a recognizer understand a recording of 16 kHz.
func (t Trials) Recognize(ctx context.Context, part string, pcm []int16) (string, error) {
	n, done := t.acquire(part)
	defer done()
	if n == nil || n.Recognizer == nil {
		return "", admin.ErrNoEngine
	}
	u := voice.NewUtterance()
	u.Write(pcm)
	u.Finish()
	o := t.speech()
	o.Stranger = true // an utterance of the household's is decoded first
	heard, err := watchedRecognizer{n.Recognizer, n.condition}.use(ctx, u, o)
	return strings.TrimSpace(heard.Text), err
}

// Speak has a synthesizer speak a text. The sound is of 24 kHz.
func (t Trials) Speak(ctx context.Context, part, text string, out func(pcm []int16) error) error {
	n, done := t.acquire(part)
	defer done()
	if n == nil || n.Synthesizer == nil {
		return admin.ErrNoEngine
	}
	return watchedSynthesizer{n.Synthesizer, n.condition}.use(ctx, text, t.speech(), out)
}

// Answer has a brain answer a text, as in a turn of a conversation that begins with it
// and is not remembered, or a model for hard questions think it through.
func (t Trials) Answer(ctx context.Context, part, text string, out func(sentence string) error) error {
	n, done := t.acquire(part)
	defer done()
	switch {
	case n != nil && n.Brain != nil:
	case n != nil && n.Deep != nil:
		answer, err := thinker.Ponder(ctx, []thinker.Model{tried{watchedModel{n.Deep, n.condition}}}, text)
		if err != nil {
			return err
		}
		return out(answer)
	default:
		return admin.ErrNoEngine
	}
	brain := watchedBrain{n.Brain, n.condition}
	defer brain.Forget(tryConversation)
	turn := agent.Turn{Conversation: tryConversation, Text: text, Now: time.Now().In(t.zone), Language: t.speech().Language}
	return brain.use(ctx, turn, func(r agent.Reply) error {
		switch r := r.(type) {
		case agent.Say:
			return out(r.Text)
		case agent.Ask:
			r.Answer(agent.Answer{Outcome: agent.AnswerClosed}) // nobody is asked anything
		}
		return nil
	})
}

// tried is a model that is used although it is left alone for a while.
type tried struct{ watchedModel }

// Continue implements thinker.Model.
func (m tried) Continue(ctx context.Context, p thinker.Prompt, out func(thinker.Piece) error) (thinker.Stop, error) {
	return m.use(ctx, p, out)
}
