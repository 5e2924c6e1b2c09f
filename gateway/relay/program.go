package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/feed"
)

// Kind is a kind of program.
type Kind struct {
	Name  string // in the configuration
	Title string // as its users call it
	URL   string // where one usually is; empty has to be configured
	// Finds reports whether the program looks for its own address where none is configured: it
	// is made with an empty URL, and URL is only what to try.
	Finds bool
	// Shows lists what it can be told at all: states, tools, faces, moods, gestures, speech,
	// notifications, questions, mouth.
	Shows []string
}

// kind is a Kind with its program.
type kind struct {
	Kind
	// mute is that it answers nothing, so that nobody knows whether it shows what it is
	// told: a notification goes on waiting for somebody who does.
	mute  bool
	faces agent.Vocabulary // the words that it is told for faces unless words says otherwise
	// words are what it is told, by what is shown: "state.thinking", "gesture.wave",
	// "feeling.concern", and keys of its own. An owner may change each.
	words map[string]string
	// schemes are those that its address may have; port is that it has to name a port.
	schemes []string
	port    bool
	make    func(*own) (program, error) // checks the rest of the target
}

// kinds are all there are.
func kinds() []kind {
	return []kind{
		aituberkitKind(),
		chatdollkitKind(),
		clawdKind(),
		nizimaKind(),
		obsKind(),
		unrealKind(),
		veadotubeKind(),
		vmcKind(),
		vrchatKind(),
		vtubeStudioKind(),
		warudoKind(),
		webhookKind(),
	}
}

// Kinds returns all kinds, in the order of their names.
func Kinds() (all []Kind) {
	for _, k := range kinds() {
		all = append(all, k.Kind)
	}
	return all
}

// names are those of all kinds.
func names() (all []string) {
	for _, k := range Kinds() {
		all = append(all, k.Name)
	}
	return all
}

func (k kind) can(show string) bool { return slices.Contains(k.Shows, show) }

// program is one that can be reached.
type program interface {
	// open reaches the program, and returns once it can be told something. note shows
	// the owner meanwhile what is waited for, such as a popup in the program.
	open(ctx context.Context, note func(error)) (link, error)
}

// link is an open connection to a program. One goroutine calls its methods, one after
// the other; each ends with its context. An error ends the link. A link embeds quiet
// and adds what its program can do.
type link interface {
	// show tells what is shown now. was is what was told last, and the zero Scene at
	// first.
	show(ctx context.Context, is, was Scene) error
	// frame tells what only happens: a gesture, a sentence, a notification. It is
	// called for every frame, before show. It returns errUntold for a notification
	// that an owner's words leave out, which does not end the link.
	frame(ctx context.Context, f *feed.Frame, is Scene) error
	// mouth tells how far a mouth is open, from 0 to 1.
	mouth(ctx context.Context, level float64) error
	// keep is called from time to time: every so often as every says, never where
	// that is 0.
	keep(ctx context.Context, is Scene) error
	every() time.Duration
	// ended has an element when the connection has ended by itself, and why. It may
	// be nil.
	ended() <-chan error
	// note is what the owner ought to know of a link that works, such as a model
	// without expressions; empty is nothing.
	note() error
	close()
}

// errUntold is of a notification that a program is not told, and that so was not shown.
var errUntold = errors.New("an owner's words leave it out")

// remarks are what is wrong with a link that works, each by what it is about, until that
// is over.
type remarks struct {
	tell func(note error)
	note func() error // of the whole link; nil is of the remarks alone

	mu sync.Mutex
	by map[string]error
}

// say shows the owner what is wrong about something, where that is news. Empty is nothing
// any more.
func (r *remarks) say(about string, what error) {
	r.mu.Lock()
	news := text(r.by[about]) != text(what)
	if r.by == nil {
		r.by = map[string]error{}
	}
	if r.by[about] = what; what == nil {
		delete(r.by, about)
	}
	r.mu.Unlock()
	switch {
	case news && r.note != nil:
		r.tell(r.note())
	case news:
		r.tell(r.all())
	}
}

// on reports whether something is wrong about that.
func (r *remarks) on(about string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[about] != nil
}

// all is all of it.
func (r *remarks) all() (note error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := ""
	for _, one := range slices.SortedFunc(maps.Values(r.by), func(a, b error) int { return strings.Compare(text(a), text(b)) }) {
		switch {
		case note == nil:
			note = one
		case text(one) != was:
			note = fmt.Errorf("%w. %w", note, one)
		}
		was = text(one)
	}
	return note
}

// join is a note before another.
func join(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return fmt.Errorf("%w; %w", a, b)
}

// text is a note's text, which nil has none of.
func text(note error) string {
	if note == nil {
		return ""
	}
	return note.Error()
}

// quiet is a link that does nothing of what a program may lack.
type quiet struct{}

func (quiet) show(context.Context, Scene, Scene) error        { return nil }
func (quiet) frame(context.Context, *feed.Frame, Scene) error { return nil }
func (quiet) mouth(context.Context, float64) error            { return nil }
func (quiet) keep(context.Context, Scene) error               { return nil }
func (quiet) every() time.Duration                            { return 0 }
func (quiet) ended() <-chan error                             { return nil }
func (quiet) note() error                                     { return nil }
func (quiet) close()                                          {}

// readLeft reads the JSON of at most so many bytes that a program has left in a file, and
// reports whether it could. What is no regular file, such as a pipe, could block.
func readLeft(path string, most int64, into any) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return false
	}
	text, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(text, into) == nil
}
