package engines

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/cmd/perch/config"
	"perch/gateway/owner/admin"
	"perch/voice"
)

// Trials lets the owner list and try the engines. A trial changes the condition of an engine as any
// use does. A trial uses an engine even if the engine has just failed, so that the owner sees whether
// the engine works again.
type Trials struct {
	engines *Current
	speech  func() voice.Options // returns the default language and voice
	zone    *time.Location
}

// NewTrials returns trials of engines. speech returns the default language and voice.
func NewTrials(c *Current, speech func() voice.Options, zone *time.Location) Trials {
	return Trials{c, speech, zone}
}

// tryConversation is the name of the conversation in each trial of a brain. The brain forgets it
// after the trial.
const tryConversation = "try"

// Engines returns all engines except servers of tools.
func (t Trials) Engines() []admin.Engine {
	entries := []admin.Engine{}
	e := t.engines.Engines()
	places := map[string]int{}
	for i, part := range e.Conditions() {
		n := e.All[i]
		if entry, ok := n.entry(part); ok {
			entry.Key = fmt.Sprintf("%s.%d", keyOf(entry.List), places[entry.List]) // each entry of a list makes one engine
			places[entry.List]++
			switch words := e.words.In(t.speech().Language); {
			case n.Synthesizer != nil:
				entry.Sample = words.Message("engines.voice")
			case entry.Try == admin.TryText:
				entry.Sample = words.Message("engines.sample")
			}
			entries = append(entries, entry)
		}
	}
	return entries
}

// keyOf returns the configuration key of a list of engines. list is an admin.Engine.List.
func keyOf(list string) string {
	switch list {
	case "recognizer", "synthesizer":
		return "speech." + list + "s"
	case "brain":
		return "brains"
	}
	return list
}

// Kinds returns the kinds of engines that each list may contain.
func (t Trials) Kinds() any { return config.EngineKinds() }

// entry returns the API's description of an engine with the condition p, or false for a server of
// tools.
func (n *Engine) entry(p admin.Part) (entry admin.Engine, ok bool) {
	entry = admin.Engine{Part: n.Part, List: n.List, Kind: n.Kind, Where: n.Where, OK: p.OK, Note: p.Note, Since: p.Since,
		Cost: n.Cost, Wait: n.waits.summary()}
	switch {
	case n.Recognizer != nil:
		entry.Try = admin.TrySound
	case n.Synthesizer != nil:
		entry.Try = admin.TryText
		entry.Voices, _ = n.voices.latest()
	case n.Brain != nil:
		entry.Try = admin.TryText
	case n.Deep != nil:
		entry.List, entry.Try = "brain_deep", admin.TryText
	default:
		return entry, false
	}
	return entry, true
}

// acquire returns the engine with a part name, or nil. The engine stays open until done is called.
func (t Trials) acquire(part string) (n *Engine, done func()) {
	e, done := t.engines.Acquire()
	if i := slices.IndexFunc(e.All, func(n *Engine) bool { return n.Part == part }); i >= 0 {
		n = e.All[i]
	}
	return n, done
}

// Recognize returns the text that a recognizer understands in a recording: 16-bit mono PCM at 16 kHz.
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
	o.Stranger, o.Patient = true, true // gives priority to the utterances of adopted robots
	heard, err := watchedRecognizer{n.Recognizer, n.condition, true}.Recognize(ctx, u, o)
	return strings.TrimSpace(heard.Text), err
}

// Speak lets a synthesizer speak a text, and passes the sound to out: 16-bit mono PCM at 24 kHz.
func (t Trials) Speak(ctx context.Context, part, text string, out func(pcm []int16) error) error {
	n, done := t.acquire(part)
	defer done()
	if n == nil || n.Synthesizer == nil {
		return admin.ErrNoEngine
	}
	return watchedSynthesizer{n.Synthesizer, n.condition, true}.Synthesize(ctx, text, t.speech(), out)
}

// Answer lets a brain reply to a text, as in the first turn of a conversation, and passes each
// sentence of the reply to out. The conversation is not stored. The engine may also be a model for
// hard questions.
func (t Trials) Answer(ctx context.Context, part, text string, out func(sentence string) error) error {
	n, done := t.acquire(part)
	defer done()
	switch {
	case n != nil && n.Brain != nil:
	case n != nil && n.Deep != nil:
		answer, err := thinker.AskModels(ctx, []thinker.Model{watchedModel{n.Deep, n.condition, true}}, text)
		if err != nil {
			return err
		}
		return out(answer)
	default:
		return admin.ErrNoEngine
	}
	brain := watchedBrain{Brain: n.Brain, condition: n.condition, trial: true}
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
