// Package drivers lists the drivers of engines: the kinds of recognizers, synthesizers and brains. To
// add a driver, write a package that declares the driver, and add a line to one of the lists here.
package drivers

import (
	"context"
	"log/slog"

	"perch/agent"
	"perch/agent/acp"
	"perch/agent/anthropic"
	brainassist "perch/agent/assist"
	"perch/agent/mcp"
	brainopenai "perch/agent/openai"
	"perch/agent/program"
	"perch/agent/realtime"
	"perch/agent/reflex"
	"perch/agent/skill"
	"perch/agent/thinker"
	"perch/device"
	"perch/driver"
	"perch/secret"
	"perch/voice"
	"perch/voice/assist"
	"perch/voice/elevenlabs"
	"perch/voice/espeak"
	"perch/voice/openai"
	"perch/voice/openjtalk"
	"perch/voice/sphinx"
	"perch/voice/voicevox"
	"perch/voice/wyoming"
)

// Recognizers lists the kinds of engines that the key speech.recognizers of the configuration may
// contain.
func Recognizers() driver.List[Voice, voice.Recognizer] {
	return driver.List[Voice, voice.Recognizer]{
		driver.For(sphinx.Driver(), Voice.sphinx),
		driver.For(wyoming.RecognizerDriver(), Voice.wyoming),
		driver.For(openai.RecognizerDriver(), Voice.common),
		driver.For(assist.RecognizerDriver(), Voice.common),
	}
}

// Synthesizers lists the kinds of engines that speech.synthesizers may contain.
func Synthesizers() driver.List[Voice, voice.Synthesizer] {
	return driver.List[Voice, voice.Synthesizer]{
		driver.For(espeak.Driver(), Voice.common),
		driver.For(openjtalk.Driver(), Voice.common),
		driver.For(voicevox.Driver(), Voice.common),
		driver.For(wyoming.SynthesizerDriver(), Voice.wyoming),
		driver.For(openai.SynthesizerDriver(), Voice.common),
		driver.For(elevenlabs.Driver(), Voice.common),
		driver.For(assist.SynthesizerDriver(), Voice.common),
	}
}

// Brains lists the kinds of engines that the key brains may contain.
func Brains() driver.List[Brain, agent.Brain] {
	return driver.List[Brain, agent.Brain]{
		driver.For(reflex.Driver(), Brain.reflex),
		driver.For(thinker.BrainDriver[brainopenai.Options](brainopenai.Driver()), Brain.thinker),
		driver.For(thinker.BrainDriver[anthropic.Options](anthropic.Driver()), Brain.thinker),
		driver.For(thinker.BrainDriver[realtime.Options](realtime.Driver()), Brain.thinker),
		driver.For(brainassist.Driver(), Brain.assist),
		driver.For(acp.Driver(), Brain.acp),
		driver.For(agent.SilentDriver(), func(Brain) struct{} { return struct{}{} }),
	}
}

// Models lists the kinds of models that brain_deep, the list of models for hard questions, may
// contain.
func Models() driver.List[thinker.ModelSetup, thinker.Model] {
	return driver.List[thinker.ModelSetup, thinker.Model]{brainopenai.Driver(), anthropic.Driver()}
}

// Voice holds what recognizers and synthesizers need besides their options.
type Voice struct {
	voice.Setup
	Book        *reflex.Book                                // sentences for a recognizer that understands only fixed sentences; nil if engines are only checked
	FindWyoming func(ctx context.Context) ([]string, error) // searches the network for Wyoming servers
}

// common returns the setup of most engines.
func (v Voice) common() voice.Setup { return v.Setup }

// wyoming returns the setup of engines on Wyoming servers.
func (v Voice) wyoming() wyoming.Setup { return wyoming.Setup{Setup: v.Setup, Find: v.FindWyoming} }

// sphinx returns the setup of the embedded recognizer, which understands only fixed sentences.
func (v Voice) sphinx() sphinx.Setup {
	return sphinx.Setup{Setup: v.Setup, Grammar: func() (sphinx.Grammar, []string) { return Grammar(v.Book), v.Book.Unheard() }}
}

// Brain holds what brains need besides their options.
type Brain struct {
	thinker.BrainSetup
	Books     func(sentences string) ([]*reflex.Book, error) // loads the reflex brain's books of sentences in the spoken languages
	Book      func(tag string) (*reflex.Book, error)         // loads the reflex brain's book in another language
	Skills    *skill.Library                                 // may be nil
	MayAnswer func(device.ID) bool                           // whether a robot may answer an agent's request for permission
	// Perform performs the skill that has the turn's text as a sentence. found is false if no skill has it.
	Perform func(ctx context.Context, t agent.Turn, out func(agent.Reply) error) (found bool, err error)
	Lend    func() acp.ToolEndpoint // starts a server of tools for a coding agent
}

// thinker returns the setup of brains that use a language model.
func (b Brain) thinker() thinker.BrainSetup { return b.BrainSetup }

// assist returns the setup of the brain that lets Home Assistant answer.
func (b Brain) assist() brainassist.Setup {
	return brainassist.Setup{Within: b.Within, Perform: b.Perform, Phrases: b.Phrases}
}

// reflex returns the setup of the reflex brain.
func (b Brain) reflex() reflex.Setup {
	s := reflex.Setup{Books: b.Books, Other: b.Book, Name: b.Persona.Name, Memory: b.Memory, Timers: b.Timers}
	if b.Skills != nil {
		s.Skills = b.Skills
	}
	return s
}

// acp returns the options of coding agents.
func (b Brain) acp() acp.Options {
	options := b.Options
	options.Deep, options.Persona, options.Phrases = nil, agent.Persona{}, nil // a coding agent cannot use these
	return acp.Options{MayAnswer: b.MayAnswer, Tools: thinker.New(options).TurnTools, Lend: b.Lend, Phrases: b.Phrases, Log: b.Log}
}

// ToolServer returns the options of an MCP client for a configured server. It reads the server's key.
func ToolServer(t thinker.ToolServer, log *slog.Logger) (mcp.Options, error) {
	key, err := secret.Read("key", t.Key, t.KeyFile)
	return mcp.Options{Name: t.Name, Command: t.Command, Dir: t.Cwd, Env: program.Environ(t.Env), URL: t.URL, Key: key, Only: t.Only,
		Except: t.Except, Log: log}, err
}

// Grammar returns the grammar of a book's sentences. For a book without a grammar it returns the
// grammar of the English book, because the recognizer supports only English.
func Grammar(book *reflex.Book) (g sphinx.Grammar) {
	rules := book.Rules()
	if len(rules) == 0 {
		if english, err := reflex.Load("en", ""); err == nil {
			book, rules = english, english.Rules()
		}
	}
	for _, r := range rules {
		g.Rules = append(g.Rules, sphinx.Rule{Name: r.Name, Body: r.Body, Source: r.Source})
		if r.Optional {
			g.Optional = append(g.Optional, r.Name)
		}
		if r.Top {
			g.Top = append(g.Top, r.Name)
		}
	}
	for _, r := range book.Answers() {
		g.Rules = append(g.Rules, sphinx.Rule{Name: r.Name, Body: r.Body, Source: r.Source})
		g.Answer = append(g.Answer, r.Name)
	}
	return g
}
