package engines

import (
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"perch/agent"
	"perch/agent/mcp"
	"perch/agent/reflex"
	"perch/agent/thinker"
	"perch/cmd/perch/config"
	"perch/cmd/perch/drivers"
	"perch/remote"
)

// within returns how long the engine at a place of a list may take to begin its answer, unless its
// options say. It is remote.Patience for an engine that another follows, which can answer, and 0,
// its driver's own time, for the last: a model that is still being loaded is better than no answer.
func within(list []config.Engine, place int) time.Duration {
	if place < len(list)-1 {
		return remote.Patience
	}
	return 0
}

// addBrains makes the brains, and the models for hard questions.
func (e *Set) addBrains(c *config.Config, h drivers.Brain, persona agent.Persona, log *slog.Logger) error {
	e.sources = map[string]thinker.ToolSource{}
	for i, b := range c.BrainDeep {
		model, err := drivers.Models().New(b.Kind, b.Options, thinker.ModelSetup{Within: within(c.BrainDeep, i), Log: log})
		if err != nil {
			return fmt.Errorf("brain_deep: %w", err)
		}
		n := e.addMade("deep", b, model, log)
		n.Deep, n.Warm = model, nil
		e.Deep = append(e.Deep, watchedModel{model, n.condition, false})
	}
	h.Deep, h.Persona, h.Phrases, h.Log = e.Deep, persona, e.Phrase, log
	h.HistoryTokens, h.MemoryTokens = c.Memory.HistoryTokens, c.Memory.MemoryTokens
	h.Tools = func(t thinker.ToolServer) (thinker.ToolSource, error) { return e.toolsOf(t, log) }
	h.Books = func(sentences string) ([]*reflex.Book, error) { return e.booksWith(c, sentences, h) }
	h.Book = func(tag string) (*reflex.Book, error) {
		book, err := reflex.Load(tag, "")
		if err == nil {
			_ = e.prepare(book, h.Skills)
		}
		return book, err
	}
	for i, b := range c.Brains {
		h.Within = within(c.Brains, i)
		brain, err := drivers.Brains().New(b.Kind, b.Options, h)
		if err != nil {
			return err
		}
		n := e.addMade("brain", b, brain, log)
		n.Brain = brain
		e.Brains = append(e.Brains, watchedBrain{brain, n.condition, false})
	}
	return nil
}

// booksWith returns the household's books with a file of the owner's sentences. Usually these are the
// books that the set has already.
func (e *Set) booksWith(c *config.Config, sentences string, h drivers.Brain) ([]*reflex.Book, error) {
	if sentences == e.sentences {
		return e.books, nil
	}
	books, err := reflex.LoadEach(config.ReflexLanguages(c), sentences)
	if err != nil {
		return nil, err
	}
	for _, book := range books {
		_ = e.prepare(book, h.Skills) // addBooks has logged what is left out
	}
	return books, nil
}

// toolsOf returns a server of tools, one for all brains with the same configuration of it.
func (e *Set) toolsOf(t thinker.ToolServer, log *slog.Logger) (thinker.ToolSource, error) {
	same := fmt.Sprintf("%+v", t)
	if known, ok := e.sources[same]; ok {
		return known, nil
	}
	o, err := drivers.ToolServer(t, log)
	if err != nil {
		return nil, err
	}
	server, err := mcp.New(o)
	if err != nil {
		return nil, err
	}
	where := ""
	if u, err := url.Parse(t.URL); err == nil {
		where = u.Host // the path of a hosted one may be its key
	}
	if len(t.Command) > 0 {
		where = t.Command[0]
	}
	n := e.add("tools", t.Name, where, slog.New(slog.DiscardHandler)) // the driver logs its failures itself
	e.serve(n, server)
	e.sources[same] = watchedTools{server, n.condition}
	return e.sources[same], nil
}
