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
	"perch/gateway/avatar/feed"
)

// Kind is a kind of program.
type Kind struct {
	Name  string // in the configuration
	Title string // the program's own name
	URL   string // the usual address; if empty, one has to be configured
	// Finds reports whether the program searches for its address where none is configured. It
	// is then made with an empty URL.
	Finds bool
	// Shows lists what the program can show: states, tools, faces, moods, gestures, speech,
	// notifications, questions, mouth.
	Shows []string
}

// kind is a Kind with its implementation.
type kind struct {
	Kind
	// mute says that the program answers nothing, so that delivery is unknown: a notification
	// goes on waiting for a viewer that confirms it.
	mute  bool
	faces agent.Vocabulary // the names of faces unless words has others
	// words are the program's names by key: "state.thinking", "gesture.wave",
	// "feeling.concern", and keys of the kind itself. An owner may change each.
	words map[string]string
	// schemes are the valid URL schemes; port reports whether a port is required.
	schemes []string
	port    bool
	make    func(*programConfig) (program, error) // checks the rest of the target
}

// kinds returns all kinds.
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

// names returns the names of all kinds.
func names() (all []string) {
	for _, k := range Kinds() {
		all = append(all, k.Name)
	}
	return all
}

func (k kind) can(show string) bool { return slices.Contains(k.Shows, show) }

// program is a program that can be connected to.
type program interface {
	// open connects, and returns when the program is ready. It calls note with what it waits
	// for, such as a popup in the program.
	open(ctx context.Context, note func(error)) (link, error)
}

// link is an open connection to a program. One goroutine calls its methods, one at a time, each
// with a timeout. An error ends the link. A link embeds nopLink and overrides what its program
// can do.
type link interface {
	// update shows a scene. was is the scene sent last, at first the zero Scene.
	update(ctx context.Context, is, was Scene) error
	// frame handles every frame, before update: gestures, sentences, notifications. It returns
	// errNotShown, which does not end the link, for a notification that the owner's words leave
	// out.
	frame(ctx context.Context, f *feed.Frame, is Scene) error
	// setMouth opens the mouth, from 0 to 1.
	setMouth(ctx context.Context, level float64) error
	// refresh is called every refreshEvery, or never if that is 0.
	refresh(ctx context.Context, is Scene) error
	refreshEvery() time.Duration
	// disconnected receives the reason when the program closes the connection. It may be nil.
	disconnected() <-chan error
	// warning returns what the owner ought to know about a working link, such as a model
	// without expressions, or nil.
	warning() error
	close()
}

// errNotShown reports a notification that the program was not sent.
var errNotShown = errors.New("an owner's words leave it out")

// warnings holds what is wrong with a working link, by subject.
type warnings struct {
	report  func(note error)
	summary func() error // of the whole link; nil stands for the warnings alone

	mu sync.Mutex
	by map[string]error
}

// set sets or, with nil, clears the warning about a subject, and reports the summary if that
// changed.
func (r *warnings) set(about string, what error) {
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
	case news && r.summary != nil:
		r.report(r.summary())
	case news:
		r.report(r.all())
	}
}

// has reports whether there is a warning about a subject.
func (r *warnings) has(about string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[about] != nil
}

// all returns all warnings as one error.
func (r *warnings) all() (note error) {
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

// join joins two notes.
func join(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return fmt.Errorf("%w; %w", a, b)
}

// text returns the text of a note, "" for nil.
func text(note error) string {
	if note == nil {
		return ""
	}
	return note.Error()
}

// nopLink implements the methods of link by doing nothing.
type nopLink struct{}

func (nopLink) update(context.Context, Scene, Scene) error      { return nil }
func (nopLink) frame(context.Context, *feed.Frame, Scene) error { return nil }
func (nopLink) setMouth(context.Context, float64) error         { return nil }
func (nopLink) refresh(context.Context, Scene) error            { return nil }
func (nopLink) refreshEvery() time.Duration                     { return 0 }
func (nopLink) disconnected() <-chan error                      { return nil }
func (nopLink) warning() error                                  { return nil }
func (nopLink) close()                                          {}

// readJSONFile reads a JSON file of at most that many bytes, and reports whether it could. It
// skips what is not a regular file: a pipe could block.
func readJSONFile(path string, most int64, into any) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return false
	}
	text, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(text, into) == nil
}
