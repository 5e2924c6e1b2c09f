package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/reflex"
	"perch/agent/thinker"
	"perch/cmd/perch/config"
	"perch/driver"
	"perch/event"
	"perch/gateway/owner/admin"
	"perch/health"
	"perch/language"
	"perch/voice"
)

// Set holds the recognizers, the synthesizers and the brains that a configuration names, each list
// in the order of trials.
type Set struct {
	Recognizers  voice.Recognizers
	Synthesizers voice.Synthesizers
	Brains       []agent.Brain
	Book         *reflex.Book   // of the household's first language
	books        []*reflex.Book // of all its languages, with the sentences of the owner's file
	sentences    string
	loads        []func(context.Context) error // of recognizers that are in this process
	Deep         []thinker.Model               // for hard questions
	All          []*Engine
	sources      map[string]thinker.ToolSource // of tools, by their configuration
	closers      []func()                      // of the group that is being made
	groups       [groups]*group

	language string // of the household
	words    *language.Catalogue

	publish     func(event.Event) // publishes failures; may be nil
	findWyoming func(ctx context.Context) ([]string, error)
}

// add adds an engine, whose part is made of its list and its kind. The last engine of a list is
// always tried.
func (e *Set) add(list, kind, where string, log *slog.Logger) *Engine {
	publish := e.publish
	if publish == nil {
		publish = func(event.Event) {}
	}
	part := list + " " + kind
	for i := 2; slices.ContainsFunc(e.All, func(n *Engine) bool { return n.Part == part }); i++ {
		part = fmt.Sprintf("%s %s %d", list, kind, i)
	}
	n := &Engine{condition: newCondition(part, log, publish, time.Now), List: list, Kind: kind, Where: where}
	n.language, n.Last = e.language, true
	for _, before := range e.All {
		if before.List == list { // engines of other lists may be in use already
			before.Last = false
		}
	}
	e.All = append(e.All, n)
	return n
}

// addMade adds an engine that was made from its entry in the configuration.
func (e *Set) addMade(list string, c config.Engine, made any, log *slog.Logger) *Engine {
	where := shownAddress(driver.Value[string](c.Options, "url"))
	if w, is := made.(interface{ Where() string }); is {
		where = w.Where()
	}
	n := e.add(list, c.Kind, where, log)
	e.serve(n, made)
	return n
}

// serve has an engine checked, warmed, loaded and closed, as far as it has methods for that.
func (e *Set) serve(n *Engine, engine any) {
	if c, ok := engine.(interface{ Check(context.Context) error }); ok {
		n.Check, n.check = c.Check, c.Check
	}
	if c, ok := engine.(interface{ CheckContext(context.Context) error }); ok {
		n.CheckContext = c.CheckContext
	}
	if i, ok := engine.(interface{ Installed() error }); ok { // a full check would start it
		n.check = func(context.Context) error { return i.Installed() }
	}
	if w, ok := engine.(interface{ Warm(context.Context) error }); ok {
		n.Warm = w.Warm
	}
	if l, ok := engine.(interface{ Load(context.Context) error }); ok {
		e.loads = append(e.loads, l.Load)
	}
	if w, ok := engine.(interface{ StatusText() string }); ok {
		n.note = w.StatusText
	}
	switch c := engine.(type) {
	case interface{ Close() }:
		e.closers = append(e.closers, c.Close)
	case interface{ Close() error }:
		e.closers = append(e.closers, func() { _ = c.Close() }) // the engine logs its errors
	}
}

// Phrase returns a sentence of the appliance in a language; an empty tag is the household's language.
// In the language of the household's book it is the owner's sentence, if there is one.
func (e *Set) Phrase(tag, name string) string {
	words := e.words.In(cmp.Or(tag, e.language))
	if own := e.Book.OwnPhrase(name); own != "" && string(words.Tag) == string(e.Book.Language()) {
		return own
	}
	return words.Message("phrases." + name)
}

// Acquire prevents that the engines are closed until done is called.
func (e *Set) Acquire() (done func()) {
	for _, g := range e.groups {
		g.users.Add(1)
	}
	return func() {
		for _, g := range e.groups {
			g.users.Done()
		}
	}
}

// without returns the groups that others, which may be nil, does not have.
func (e *Set) without(others *Set) (all []*group) {
	for i, g := range e.groups {
		if g != nil && (others == nil || others.groups[i] != g) {
			all = append(all, g)
		}
	}
	return all
}

// Close closes all engines.
func (e *Set) Close() { e.CloseNew(nil) }

// CloseNew closes the engines that before, which may be nil, does not have.
func (e *Set) CloseNew(before *Set) {
	for _, g := range e.without(before) {
		g.close()
	}
}

// Engines are warmed at most once in warmEvery, which may take warmWithin.
const (
	warmEvery  = 20 * time.Second
	warmWithin = 2 * time.Minute
)

// load loads the recognizers that are in this process, unless they are loaded.
func (e *Set) load(ctx context.Context) error {
	var err error
	for _, load := range e.loads {
		err = errors.Join(err, load(ctx))
	}
	return err
}

// warm warms the engines that the next turn will use: the first of each list that works. An error
// shows again when the engine is used.
func (e *Set) warm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, warmWithin)
	defer cancel()
	var wg sync.WaitGroup
	chosen := map[string]bool{}
	for _, n := range e.All {
		if n.List == "deep" || n.List != "tools" && chosen[n.List] || n.Resting() != nil {
			continue
		}
		chosen[n.List] = true
		if n.Warm != nil {
			wg.Go(func() { _ = n.Warm(ctx) })
		}
	}
	wg.Wait()
}

// Conditions returns the conditions of all engines. A brain is vital if no brain is known to work.
func (e *Set) Conditions() (all []health.Part) {
	thinks := slices.ContainsFunc(e.All, func(n *Engine) bool {
		_, _, cause := n.Status()
		return n.List == "brain" && cause == nil
	})
	for _, n := range e.All {
		since, _, cause := n.Status()
		part := health.Part{Name: n.Part, OK: cause == nil, Vital: n.List == "brain" && !thinks, Since: since, Note: n.Where}
		switch {
		case cause != nil:
			part = part.Saying(cause.Error())
		case n.Limits() != nil:
			part = part.Saying(n.Limits().Error())
		case n.note != nil:
			part = part.Saying(n.note())
		}
		all = append(all, part)
	}
	return all
}

// Counters returns counters of the failures of engines, one for each list and kind.
func (e *Set) Counters() []admin.Counter {
	var all []admin.Counter
	named := map[string][]*Engine{}
	for _, n := range e.All {
		kind, _, _ := strings.Cut(strings.TrimPrefix(n.Part, n.List+" "), " ") // without its number
		if n.List == "tools" {
			kind = "mcp" // its name is its owner's choice
		}
		key := n.List + " " + kind
		if named[key] == nil {
			all = append(all, admin.Counter{
				Name: "perch_engine_failures_total", Help: "Failures of engines, when they were used or looked at, by list and kind.",
				Labels: map[string]string{"list": n.List, "kind": kind},
				Count: func() (sum uint64) {
					for _, n := range named[key] {
						sum += n.Failures()
					}
					return sum
				},
			})
		}
		named[key] = append(named[key], n)
	}
	return all
}

// Lent returns the recognizers and synthesizers that other programs may use, in the configured order;
// either list may be empty. Home Assistant's own, of kind assist, are left out: Home Assistant would ask
// itself.
func (e *Set) Lent() (r voice.Recognizers, s voice.Synthesizers) {
	for _, n := range e.All {
		switch {
		case n.Kind == "assist":
		case n.Recognizer != nil && n.List == "recognizer":
			r = append(r, watchedRecognizer{n.Recognizer, n.condition, false})
		case n.Synthesizer != nil && n.List == "synthesizer":
			s = append(s, watchedSynthesizer{n.Synthesizer, n.condition, false})
		}
	}
	return r, s
}

// Replace uses other recognizers instead of those configured, for measurements of the rest.
func (e *Set) Replace(r voice.Recognizers) { e.Recognizers, e.loads = r, nil }

// Voice returns a value that is equal as long as the same engines say the same sentences.
func (e *Set) Voice() any { return [...]*group{e.groups[understanding], e.groups[speaking]} }

// CompleteSentence reports whether nothing can follow a text, or an answer to a question of yes or no, that
// means something else.
func (e *Set) CompleteSentence(text string, answer bool) bool {
	if answer {
		return e.Book.CompleteAnswer(text)
	}
	return e.Book.Complete(text)
}

// Words returns the words of some languages, in the order of preference.
func (e *Set) Words(languages ...string) *language.Words { return e.words.In(languages...) }
