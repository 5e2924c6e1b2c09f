package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
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

// Set holds the engines that a configuration names. The engines of each list are tried in the order of
// the list.
type Set struct {
	Recognizers  voice.Recognizers
	Synthesizers voice.Synthesizers
	Brains       []agent.Brain
	Deep         []thinker.Model // models for hard questions
	Book         *reflex.Book    // the first of books
	All          []*Engine

	books     []*reflex.Book                // the reflex brain's sentences in each language of config.ReflexLanguages
	music     []string                      // names of the owner's music
	sentences string                        // path of the file with the owner's sentences; may be empty
	loads     []func(context.Context) error // load the recognizers that run in this process
	sources   map[string]thinker.ToolSource // servers of tools by their configurations
	closers   []func()                      // close the engines of the group that is being made
	groups    [numGroups]*group
	earlier   []*Engine // engines of the previous configuration, while a Set is made

	language string              // the default language
	words    *language.Catalogue // the appliance's own sentences

	publish     func(event.Event)                           // publishes failures and changed voices; may be nil
	findWyoming func(ctx context.Context) ([]string, error) // searches the network for Wyoming servers
}

// add adds an engine as the last of its list. The engine's name, the field Part, consists of list and
// kind, and of a number if another engine has the same list and kind.
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
		if before.List == list { // engines of other lists must not be changed, because another Set may use them
			before.Last = false
		}
	}
	e.All = append(e.All, n)
	return n
}

// addConfigured adds an engine that was made from its entry in the configuration.
func (e *Set) addConfigured(list string, c config.Engine, engine any, log *slog.Logger) *Engine {
	where := publicAddress(driver.Value[string](c.Options, "url"))
	if w, ok := engine.(interface{ Where() string }); ok {
		where = w.Where()
	}
	n := e.add(list, c.Kind, where, log)
	n.configured, n.Cost = c, c.Cost()
	if i := slices.IndexFunc(e.earlier, func(n *Engine) bool { return n.List == list && reflect.DeepEqual(n.configured, c) }); i >= 0 {
		n.waits = e.earlier[i].waits // the same engine, perhaps in another place of its list
	}
	e.setHooks(n, engine)
	return n
}

// setHooks sets the functions that check, warm, load, describe and close an engine, if the engine has
// methods for them.
func (e *Set) setHooks(n *Engine, engine any) {
	if c, ok := engine.(interface{ Check(context.Context) error }); ok {
		n.Check, n.quickCheck = c.Check, c.Check
	}
	if c, ok := engine.(interface{ CheckContext(context.Context) error }); ok {
		n.CheckContext = c.CheckContext
	}
	if i, ok := engine.(interface{ Installed() error }); ok { // Check would start the program
		n.quickCheck = func(context.Context) error { return i.Installed() }
	}
	if l, ok := engine.(voice.Lister); ok {
		check := n.quickCheck
		n.voices.fetch = l.Voices
		n.quickCheck = func(ctx context.Context) error { // runs again after a failure, when the server may have other voices
			if err := check(ctx); err != nil {
				return err
			}
			n.listVoices(ctx, e.publish)
			return nil
		}
	}
	if w, ok := engine.(interface{ Warm(context.Context) error }); ok {
		n.Warm = w.Warm
	}
	if l, ok := engine.(interface{ Load(context.Context) error }); ok {
		e.loads = append(e.loads, l.Load)
	}
	if w, ok := engine.(interface{ StatusText() string }); ok {
		n.statusText = w.StatusText
	}
	switch c := engine.(type) {
	case interface{ Close() }:
		e.closers = append(e.closers, c.Close)
	case interface{ Close() error }:
		e.closers = append(e.closers, func() { _ = c.Close() }) // the engine logs its errors
	}
}

// Phrase returns the appliance's fixed sentence called name in the language tag (BCP 47); an empty tag means
// the default language. If this is the language of Book and the owner has changed the sentence, Phrase returns
// the owner's sentence.
func (e *Set) Phrase(tag, name string) string {
	words := e.words.In(cmp.Or(tag, e.language))
	if own := e.Book.OwnPhrase(name); own != "" && string(words.Tag) == string(e.Book.Language()) {
		return own
	}
	return words.Message("phrases." + name)
}

// Acquire keeps the engines open until done is called.
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

// groupsNotIn returns the groups that e does not share with other, which may be nil.
func (e *Set) groupsNotIn(other *Set) (groups []*group) {
	for i, g := range e.groups {
		if g != nil && (other == nil || other.groups[i] != g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// Close closes all engines.
func (e *Set) Close() { e.CloseNew(nil) }

// CloseNew closes the engines that e does not share with before, which may be nil.
func (e *Set) CloseNew(before *Set) {
	for _, g := range e.groupsNotIn(before) {
		g.close()
	}
}

const (
	warmInterval = 20 * time.Second // minimum time between two warmings of the engines
	warmTimeout  = 2 * time.Minute
)

// load loads the recognizers that run in this process, unless they are loaded already.
func (e *Set) load(ctx context.Context) error {
	var err error
	for _, load := range e.loads {
		err = errors.Join(err, load(ctx))
	}
	return err
}

// warm warms the engines that the next turn will use: the first working recognizer, synthesizer and brain,
// and all working servers of tools. It ignores errors, since they occur again when the engine is used.
func (e *Set) warm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
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

// Conditions returns the conditions of the engines, in the order of All. The brains are vital parts
// if all of them fail.
func (e *Set) Conditions() (parts []health.Part) {
	hasBrain := slices.ContainsFunc(e.All, func(n *Engine) bool {
		_, _, cause := n.Status()
		return n.List == "brain" && cause == nil
	})
	for _, n := range e.All {
		since, _, cause := n.Status()
		part := health.Part{Name: n.Part, OK: cause == nil, Vital: n.List == "brain" && !hasBrain, Since: since, Note: n.Where}
		switch {
		case cause != nil:
			part = part.Saying(cause.Error())
		case n.Limits() != nil:
			part = part.Saying(n.Limits().Error())
		case n.statusText != nil:
			part = part.Saying(n.statusText())
		}
		parts = append(parts, part)
	}
	return parts
}

// Counters returns counters of the failures of engines, one for each list and kind.
func (e *Set) Counters() []admin.Counter {
	var counters []admin.Counter
	byKind := map[string][]*Engine{}
	for _, n := range e.All {
		kind, _, _ := strings.Cut(strings.TrimPrefix(n.Part, n.List+" "), " ") // without the number of the engine
		if n.List == "tools" {
			kind = "mcp" // the name of the server, which the owner chose, is too arbitrary for a label
		}
		key := n.List + " " + kind
		if byKind[key] == nil {
			counters = append(counters, admin.Counter{
				Name: "perch_engine_failures_total", Help: "Failures of engines, when they were used or checked, by list and kind.",
				Labels: map[string]string{"list": n.List, "kind": kind},
				Count: func() (sum uint64) {
					for _, n := range byKind[key] {
						sum += n.Failures()
					}
					return sum
				},
			})
		}
		byKind[key] = append(byKind[key], n)
	}
	return counters
}

// SharedEngines returns the recognizers and synthesizers that Home Assistant may use over Wyoming, in the
// configured order; either list may be empty. Engines of kind assist are left out, because they are Home
// Assistant's own.
func (e *Set) SharedEngines() (r voice.Recognizers, s voice.Synthesizers) {
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

// BillsSpeech reports whether the provider of a synthesizer may bill each use.
func (e *Set) BillsSpeech() bool {
	return slices.ContainsFunc(e.All, func(n *Engine) bool { return n.List == "synthesizer" && n.Cost == config.CostBilled })
}

// ReplaceRecognizers replaces the configured recognizers by r, for measurements.
func (e *Set) ReplaceRecognizers(r voice.Recognizers) { e.Recognizers, e.loads = r, nil }

// Voice returns a comparable value. Two Sets with equal values speak the appliance's own sentences with
// the same sound.
func (e *Set) Voice() any { return [...]*group{e.groups[sentencesGroup], e.groups[synthesizersGroup]} }

// IsCommand reports whether a text is a whole sentence of the reflex brain in the language of Book.
func (e *Set) IsCommand(text string) bool { return e.Book.Complete(text) }

// Ending tells from the reflex brain's sentences whether more words are likely to follow a text. The sentences
// are those in the language tag (BCP 47), or else those of Book. answer says whether the text answers a yes-or-no
// question.
func (e *Set) Ending(text, tag string, answer bool) voice.Ending {
	book := e.Book
	if matched, ok := language.Match(tag); ok {
		if i := slices.IndexFunc(e.books, func(b *reflex.Book) bool { return b.Language() == string(matched) }); i >= 0 {
			book = e.books[i]
		}
	}
	switch {
	case answer && book.CompleteAnswer(text):
		return voice.Answered
	case !answer && book.Complete(text):
		return voice.Whole
	case !answer && book.Unfinished(text):
		return voice.Unfinished
	}
	return voice.UnknownEnding
}

// Words returns the appliance's texts in the first available of some languages.
func (e *Set) Words(languages ...string) *language.Words { return e.words.In(languages...) }
