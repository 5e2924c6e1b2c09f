package engines

import (
	"context"
	"log/slog"

	"perch/agent"
	"perch/agent/acp"
	"perch/agent/skill"
	"perch/agent/thinker"
	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/device"
	"perch/event"
	"perch/language"
	"perch/voice"
)

// Set are the engines that a configuration names.
type Set = engines

// Current are the engines that the next turn is given.
type Current = currentEngines

// Environment is what engines know, act on, and may.
type Environment struct {
	Own            thinker.Options                         // memory, timers, notifications and senses
	Trusts         func(device.ID) bool                    // with the answer to a permission
	Lend           func() acp.ToolEndpoint                 // where a coding agent finds tools
	Skills         *skill.Library                          // whose sentences are understood without a model; nil is none
	WyomingServers func(context.Context) ([]string, error) // on the network
	Publish        func(event.Event)                       // of what fails
	Recognizers    voice.Recognizers                       // instead of those configured, to measure all the rest; else nil
	Log            *slog.Logger
}

// Next returns the engines of a configuration. Of those before, which may be nil, it takes over
// the engines whose configuration is the same.
func Next(before *Set, c *config.Config, env Environment) (*Set, error) {
	e, err := nextEngines(before, c, drivers.Brain{BrainSetup: thinker.BrainSetup{Options: env.Own}, MayAnswer: env.Trusts, Lend: env.Lend, Skills: env.Skills}, env.WyomingServers, env.Publish, env.Log)
	if err == nil && env.Recognizers != nil {
		e.recognizers, e.loads = env.Recognizers, nil
	}
	return e, err
}

// Recognizers returns the recognizers, in the order in which they are asked.
func (e *engines) Recognizers() voice.Recognizers { return e.recognizers }

// Synthesizers returns the synthesizers, in the order in which they are asked.
func (e *engines) Synthesizers() voice.Synthesizers { return e.synthesizers }

// Brains returns the brains, in the order in which they are asked.
func (e *engines) Brains() []agent.Brain { return e.brains }

// Deep returns the models for hard questions.
func (e *engines) Deep() []thinker.Model { return e.deep }

// Embedded returns the recognizer and the synthesizer in this process, each nil if there is none.
func (e *engines) Embedded() (r voice.Recognizer, s voice.Synthesizer) {
	if n := e.ofKind("recognizer", "sphinx"); n != nil {
		r = n.Recognizer
	}
	if n := e.ofKind("synthesizer", "espeak"); n != nil {
		s = n.Synthesizer
	}
	return r, s
}

// Voice returns a value that is equal as long as the same engines say the same sentences.
func (e *engines) Voice() any { return [...]*group{e.groups[understanding], e.groups[speaking]} }

// Settled reports whether nothing can follow a text, or an answer to a question of yes or no, that
// means something else.
func (e *engines) Settled(text string, answer bool) bool { return settled(e.Book)(text, answer) }

// Words returns the words of some languages, in the order of preference.
func (e *engines) Words(languages ...string) *language.Words { return e.words.In(languages...) }

// CloseNew releases the engines that before does not have.
func (e *engines) CloseNew(before *Set) { e.without(before).close() }
