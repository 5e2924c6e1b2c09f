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

// responseTimeout returns how long the engine list[i] may take to begin its response, if its
// options contain no timeout. For the last engine of a list it returns 0, which means the default of the
// driver: waiting for a model that is still being loaded is better than no response. For the other engines
// it returns remote.Patience; after this time the next engine is tried.
func responseTimeout(list []config.Engine, i int) time.Duration {
	if i < len(list)-1 {
		return remote.Patience
	}
	return 0
}

// addBrains makes the brains and the models for hard questions.
func (e *Set) addBrains(c *config.Config, h drivers.Brain, persona agent.Persona, log *slog.Logger) error {
	e.sources = map[string]thinker.ToolSource{}
	for i, b := range c.BrainDeep {
		model, err := drivers.Models().New(b.Kind, b.Options, thinker.ModelSetup{Within: responseTimeout(c.BrainDeep, i), Log: log})
		if err != nil {
			return fmt.Errorf("brain_deep: %w", err)
		}
		n := e.addConfigured("deep", b, model, log)
		n.Deep, n.Warm = model, nil
		e.Deep = append(e.Deep, watchedModel{model, n.condition, false})
	}
	h.Deep, h.Persona, h.Phrases, h.Log = e.Deep, persona, e.Phrase, log
	h.HistoryTokens, h.MemoryTokens = c.Memory.HistoryTokens, c.Memory.MemoryTokens
	h.Tools = func(t thinker.ToolServer) (thinker.ToolSource, error) { return e.toolSource(t, log) }
	h.Books = func(sentences string) ([]*reflex.Book, error) { return e.loadBooks(c, sentences, h) }
	h.Book = func(tag string) (*reflex.Book, error) {
		book, err := reflex.Load(tag, "")
		if err == nil {
			_ = e.prepareBook(book, h.Skills) // addBooks has logged the sentences that are left out
		}
		return book, err
	}
	if h.Skills != nil {
		h.Perform = reflex.New(e.books, persona.Name, h.Memory, h.Timers, h.Skills).Perform
	}
	for i, b := range c.Brains {
		h.Within = responseTimeout(c.Brains, i)
		brain, err := drivers.Brains().New(b.Kind, b.Options, h)
		if err != nil {
			return err
		}
		n := e.addConfigured("brain", b, brain, log)
		n.Brain = brain
		e.Brains = append(e.Brains, watchedBrain{Brain: brain, condition: n.condition, billed: n.Cost == config.CostBilled})
	}
	return nil
}

// loadBooks returns the books in the spoken languages, with the owner's sentences in the file
// sentences. If e was made with the same file, loadBooks returns the books of e.
func (e *Set) loadBooks(c *config.Config, sentences string, h drivers.Brain) ([]*reflex.Book, error) {
	if sentences == e.sentences {
		return e.books, nil
	}
	books, err := reflex.LoadEach(config.ReflexLanguages(c), sentences)
	if err != nil {
		return nil, err
	}
	for _, book := range books {
		_ = e.prepareBook(book, h.Skills) // addBooks has logged the sentences that are left out
	}
	return books, nil
}

// toolSource returns the tools of a server. Brains that configure the same server share one
// connection to it.
func (e *Set) toolSource(t thinker.ToolServer, log *slog.Logger) (thinker.ToolSource, error) {
	key := fmt.Sprintf("%+v", t)
	if source, ok := e.sources[key]; ok {
		return source, nil
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
		where = u.Host // not the path, which may contain the key of a hosted server
	}
	if len(t.Command) > 0 {
		where = t.Command[0]
	}
	n := e.add("tools", t.Name, where, slog.New(slog.DiscardHandler)) // no log, because the driver itself logs failures
	e.setHooks(n, server)
	e.sources[key] = watchedTools{server, n.condition}
	return e.sources[key], nil
}
