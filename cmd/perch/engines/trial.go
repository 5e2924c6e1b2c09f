package engines

import (
	"context"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/gateway/owner/admin"
	"perch/voice"
)

// Trials shows the engines to their owner, and tries them. A trial counts as any use does. An
// engine that is left alone after a failure is tried, too: its owner wants to know whether it works
// again.
type Trials struct {
	engines *Current
	speech  func() voice.Options // the household's
	zone    *time.Location
}

// NewTrials returns the trials of engines. speech returns the language and voice of the household.
func NewTrials(c *Current, speech func() voice.Options, zone *time.Location) Trials {
	return Trials{c, speech, zone}
}

// tryConversation names the conversation of a trial, which has no history.
const tryConversation = "try"

// Engines returns all engines but the servers of tools.
func (t Trials) Engines() []admin.Engine {
	shown := []admin.Engine{}
	e := t.engines.Engines()
	for i, part := range e.Conditions() {
		n := e.All[i]
		if entry, is := n.shown(part); is {
			switch words := e.words.In(t.speech().Language); {
			case n.Synthesizer != nil:
				entry.Sample = words.Message("engines.voice")
			case entry.Try == admin.TryText:
				entry.Sample = words.Message("engines.sample")
			}
			shown = append(shown, entry)
		}
	}
	return shown
}

// shown returns an engine with its condition, or false for a server of tools.
func (n *Engine) shown(p admin.Part) (entry admin.Engine, is bool) {
	entry = admin.Engine{Part: n.Part, List: n.List, Kind: n.Kind, Where: n.Where, OK: p.OK, Note: p.Note, Since: p.Since}
	switch {
	case n.Recognizer != nil:
		entry.Try = admin.TrySound
	case n.Synthesizer != nil, n.Brain != nil:
		entry.Try = admin.TryText
	case n.Deep != nil:
		entry.List, entry.Try = "brain_deep", admin.TryText
	default:
		return entry, false
	}
	return entry, true
}

// acquire returns the engine of a part, which stays open until done is called, or nil.
func (t Trials) acquire(part string) (found *Engine, done func()) {
	e, done := t.engines.Acquire()
	if i := slices.IndexFunc(e.All, func(n *Engine) bool { return n.Part == part }); i >= 0 {
		found = e.All[i]
	}
	return found, done
}

// Recognize has a recognizer understand a recording: 16-bit mono PCM at 16 kHz.
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
	o.Stranger = true // the household's utterances are decoded first
	heard, err := watchedRecognizer{n.Recognizer, n.condition, true}.Recognize(ctx, u, o)
	return strings.TrimSpace(heard.Text), err
}

// Speak has a synthesizer speak a text: 16-bit mono PCM at 24 kHz.
func (t Trials) Speak(ctx context.Context, part, text string, out func(pcm []int16) error) error {
	n, done := t.acquire(part)
	defer done()
	if n == nil || n.Synthesizer == nil {
		return admin.ErrNoEngine
	}
	return watchedSynthesizer{n.Synthesizer, n.condition, true}.Synthesize(ctx, text, t.speech(), out)
}

// Answer has a brain answer a text, as in the first turn of a conversation that is not stored, or a
// model for hard questions think it through.
func (t Trials) Answer(ctx context.Context, part, text string, out func(sentence string) error) error {
	n, done := t.acquire(part)
	defer done()
	switch {
	case n != nil && n.Brain != nil:
	case n != nil && n.Deep != nil:
		answer, err := thinker.Ponder(ctx, []thinker.Model{watchedModel{n.Deep, n.condition, true}}, text)
		if err != nil {
			return err
		}
		return out(answer)
	default:
		return admin.ErrNoEngine
	}
	brain := watchedBrain{n.Brain, n.condition, true}
	defer brain.Forget(tryConversation)
	turn := agent.Turn{Conversation: tryConversation, Text: text, Now: time.Now().In(t.zone), Language: t.speech().Language}
	return brain.Think(ctx, turn, func(r agent.Reply) error {
		switch r := r.(type) {
		case agent.Say:
			return out(r.Text)
		case agent.Ask:
			r.Answer(agent.Answer{Outcome: agent.AnswerClosed}) // nobody can be asked
		}
		return nil
	})
}
