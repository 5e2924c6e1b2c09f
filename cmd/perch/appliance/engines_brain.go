package appliance

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"time"

	"perch/agent"
	"perch/agent/acp"
	"perch/agent/anthropic"
	"perch/agent/assist"
	"perch/agent/mcp"
	"perch/agent/openai"
	"perch/agent/reflex"
	"perch/agent/thinker"
	"perch/cmd/perch/config"
	"perch/remote"
)

// brainWithin is how long the brain at a place of its list may take to begin its answer,
// as it is configured; 0 leaves it to the driver. One that another follows, and for which
// no time is configured, has remote.Patience, because the next can answer. The last has
// its driver's time: a model that is still being loaded is better than no answer. So has
// a coding agent, whose tools may take minutes.
func brainWithin(list []config.Brain, place int) config.Duration {
	b := list[place]
	if b.Within == 0 && b.Kind != "acp" && place < len(list)-1 {
		return config.Duration(remote.Patience)
	}
	return b.Within
}

// addBrain makes one brain.
func (e *engines) addBrain(c *config.Config, b config.Brain, h BrainOptions, log *slog.Logger) error {
	persona, err := config.Persona(c)
	if err != nil {
		return err
	}
	switch b.Kind {
	case "reflex":
		books, err := e.booksWith(c, b.Sentences, h)
		if err != nil || e.checks {
			return err
		}
		brain := reflex.New(books, persona.Name, h.Own.Memory, h.Own.Timers, nil)
		if h.skills != nil {
			brain = reflex.New(books, persona.Name, h.Own.Memory, h.Own.Timers, h.skills)
		}
		brain.Others(func(tag string) (*reflex.Book, error) {
			book, err := reflex.Load(tag, "")
			if err == nil {
				book.Share(e.words)
				_ = teachSkills(book, h.skills)
			}
			return book, err
		})
		e.think(e.add("brain", b.Kind, "", log), brain)
	case "none":
		e.think(e.add("brain", b.Kind, "", log), agent.Silent{})
	case "acp":
		return e.addAgent(b, h, log)
	case "assist":
		token, err := config.Token(b.URL, b.Token, b.TokenFile)
		if err != nil {
			return err
		}
		brain, err := made(e, assist.Options{URL: b.URL, Token: token, Pipeline: b.Pipeline, Agent: b.Agent, REST: b.REST,
			Phrases: e.Phrase, FirstWithin: time.Duration(b.Within)}, assist.New)
		if err != nil || e.checks {
			return err
		}
		e.think(e.add("brain", b.Kind, shownAddress(b.URL), log), brain)
	default:
		return e.addThinker(c, b, h, persona, log)
	}
	return nil
}

// booksWith are the household's books with a file of the owner's sentences: mostly those
// that are there already. A check without such a file reads none, for the rest is
// compiled in.
func (e *engines) booksWith(c *config.Config, sentences string, h BrainOptions) ([]*reflex.Book, error) {
	if sentences == e.sentences {
		return e.books, nil
	}
	books, err := reflex.LoadEach(config.ReflexLanguages(c), sentences)
	if err != nil {
		return nil, err
	}
	for _, book := range books {
		book.Share(e.words)
		_ = teachSkills(book, h.skills) // what is left out is said of the appliance's book
	}
	return books, nil
}

// think puts a brain at the end of the list.
func (e *engines) think(n *Engine, b agent.Brain) {
	e.serve(n, b)
	n.Brain = b
	e.brains = append(e.brains, watchedBrain{b, n.condition})
}

// addThinker makes a brain of a language model.
func (e *engines) addThinker(c *config.Config, b config.Brain, h BrainOptions, persona agent.Persona, log *slog.Logger) error {
	// The persona's values for the model are used where the brain has none.
	b.Model = cmp.Or(b.Model, persona.Brain.Model)
	b.Temperature = cmp.Or(b.Temperature, persona.Brain.Temperature)
	b.MaxTokens = cmp.Or(b.MaxTokens, persona.Brain.MaxTokens)
	model, err := e.model(b, log)
	if err != nil {
		return err
	}
	o := h.Own
	o.Model, o.Deep, o.Persona, o.Log = model, e.deep, persona, log
	o.HistoryTokens, o.MemoryTokens = c.Memory.HistoryTokens, c.Memory.MemoryTokens
	for _, m := range b.MCP {
		source, err := e.toolsOf(m, log)
		if err != nil {
			return err
		}
		o.Sources = append(o.Sources, source)
	}
	if e.checks {
		return nil
	}
	o.Phrases = e.Phrase
	e.think(e.add("brain", b.Kind, b.Model+" at "+shownAddress(cmp.Or(b.URL, anthropic.Home)), log), thinker.New(o))
	return nil
}

// addDeep makes one model for hard questions.
func (e *engines) addDeep(b config.Brain, log *slog.Logger) error {
	model, err := e.model(b, log)
	if err != nil || e.checks {
		return err
	}
	n := e.add("deep", b.Kind, b.Model+" at "+shownAddress(cmp.Or(b.URL, anthropic.Home)), log)
	if c, ok := model.(interface{ Check(context.Context) error }); ok {
		n.watched(c.Check)
	}
	n.Deep = model
	e.deep = append(e.deep, watchedModel{model, n.condition})
	return nil
}

// model makes the driver of a language model.
func (e *engines) model(b config.Brain, log *slog.Logger) (thinker.Model, error) {
	key, err := config.Secret("key", b.Key, b.KeyFile)
	if err != nil {
		return nil, err
	}
	var engine interface {
		thinker.Model
		Close() error
	}
	within := time.Duration(b.Within)
	if b.Kind == "anthropic" {
		engine, err = made(e, anthropic.Options{URL: b.URL, Key: key, Model: b.Model, Temperature: b.Temperature, MaxTokens: b.MaxTokens,
			Effort: b.ReasoningEffort, Extra: b.Extra, Vision: b.Vision, FirstWithin: within, IdleWithin: within, Log: log}, anthropic.New)
	} else {
		engine, err = made(e, openai.Options{URL: b.URL, Key: key, Model: b.Model, Temperature: b.Temperature,
			MaxTokens: b.MaxTokens, ReasoningEffort: b.ReasoningEffort, KeepAlive: b.KeepAlive, NumCtx: b.NumCtx, Dialect: b.Dialect,
			Extra: b.Extra, Vision: b.Vision, FirstWithin: within, IdleWithin: within, Log: log}, openai.New)
	}
	if err != nil || e.checks {
		return nil, err
	}
	e.closers = append(e.closers, func() { _ = engine.Close() }) // it was only idle connections
	return engine, nil
}

// toolsOf is a server of tools, one for all brains that name the same.
func (e *engines) toolsOf(m config.MCP, log *slog.Logger) (thinker.ToolSource, error) {
	same := fmt.Sprintf("%+v", m)
	if known, ok := e.sources[same]; ok {
		return known, nil
	}
	key, err := config.Secret("key", m.Key, m.KeyFile)
	if err != nil {
		return nil, err
	}
	server, err := made(e, mcp.Options{Name: m.Name, Command: m.Command, Dir: m.Cwd, Env: environment(m.Env), URL: m.URL, Key: key,
		Only: m.Only, Except: m.Except, Log: log}, mcp.New)
	if err != nil || e.checks {
		return nil, err
	}
	where := ""
	if u, err := url.Parse(m.URL); err == nil {
		where = u.Host // the path of a hosted one may be its key
	}
	if len(m.Command) > 0 {
		where = m.Command[0]
	}
	n := e.add("tools", m.Name, where, slog.New(slog.DiscardHandler)) // the driver tells of itself
	e.serve(n, server)
	e.sources[same] = watchedTools{server, n.condition}
	return e.sources[same], nil
}

// addAgent makes a brain of a coding agent's program. By itself the appliance
// only looks whether the program is there: to ask it anything would start it.
func (e *engines) addAgent(b config.Brain, h BrainOptions, log *slog.Logger) error {
	own := h.Own
	own.Log = log
	brain, err := made(e, acp.Options{Tools: thinker.New(own).TurnTools, Lend: h.lend, Command: b.Command, Dir: b.Cwd, Env: environment(b.Env),
		Idle: time.Duration(b.Idle), Turns: b.Turns,
		Age: time.Duration(b.Age), Start: min(time.Duration(b.Within), acp.StartWithin), Silence: time.Duration(b.Within), AllowKinds: b.Allow,
		MayAnswer: h.trusts, Phrases: e.Phrase, Log: log}, acp.New)
	if err != nil || e.checks {
		return err
	}
	n := e.add("brain", b.Kind, b.Command[0], log)
	e.think(n, brain)
	n.look = func(context.Context) error { return brain.Installed() }
	return nil
}

// environment is a child's own variables, in a fixed order.
func environment(named map[string]string) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(named)) {
		all = append(all, name+"="+named[name])
	}
	return all
}
