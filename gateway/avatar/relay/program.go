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
	"perch/gateway/mdns"
)

// Kind is a kind of program.
type Kind struct {
	Name  string // name in the configuration
	Title string // the program's own name
	URL   string // default address; if empty, the owner must configure one unless Finds is true
	// Finds is true if Perch searches for the address when Target.URL is empty.
	Finds bool
	// Shows lists what the program can show: states, tools, faces, moods, gestures, looks, speech,
	// notifications, questions, steps (changes of notifications), mouth.
	Shows []string
}

// kind is a Kind with its implementation.
type kind struct {
	Kind
	// mute is true if the program sends no responses, so that delivery is uncertain. A
	// notification that was sent to such a program does not count as shown.
	mute  bool
	faces agent.Vocabulary // vocabulary with the words for those faces that are not in words; may be empty
	// words are the program's names for states, faces, gestures and feelings. Examples of keys are
	// "state.thinking", "gesture.wave" and "feeling.concern"; other keys are specific to the kind. An
	// owner may change any word.
	words   map[string]string
	schemes []string                              // valid URL schemes
	port    bool                                  // whether the URL must have a port
	browses bool                                  // whether the URL may be browseURL
	make    func(*programConfig) (program, error) // checks the configuration and returns a program
}

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

// can reports whether Kind.Shows contains show.
func (k kind) can(show string) bool { return slices.Contains(k.Shows, show) }

// program is a configured program.
type program interface {
	// open connects, and returns when the program is ready. While it waits for something that
	// the owner has to do, such as confirming a popup, it passes a sentence about that to note.
	open(ctx context.Context, note func(error)) (link, error)
}

// background is implemented by a program that finds Perch on the network.
type background interface {
	// serve serves requests of the program until ctx ends, whether or not the relay is connected.
	serve(ctx context.Context)
	// offers returns the services to announce while serve runs.
	offers() []mdns.Offer
}

// link is an open connection to a program. The methods are called from one goroutine. Each ctx has the
// timeout callTimeout. An error ends the link. Implementations embed nopLink, and override the methods
// that they need.
type link interface {
	// update shows a scene. previous is the scene of the last call, or the zero Scene.
	update(ctx context.Context, scene, previous Scene) error
	// frame shows a gesture, sentence, notification or other frame. It is called for every
	// frame, before update. It returns errNotShown, which does not end the link, if it does not
	// send a notification or if the program refuses the frame.
	frame(ctx context.Context, f *feed.Frame, scene Scene) error
	// setMouth opens the mouth; a level of 0 is closed, 1 is wide open.
	setMouth(ctx context.Context, level float64) error
	// refresh is called at intervals of refreshEvery, or never if refreshEvery returns 0.
	refresh(ctx context.Context, scene Scene) error
	refreshEvery() time.Duration
	// disconnected returns a channel that receives the reason when the program closes the
	// connection. The channel may be nil.
	disconnected() <-chan error
	// warning returns what the owner should know about a working link, for example that the
	// model has no expressions, or nil.
	warning() error
	close()
}

// errNotShown reports that a frame was not sent to the program, or that the program has refused it.
var errNotShown = errors.New("the program was not sent this frame")

// warnings holds the warnings about a working link. The key is the subject of a warning.
type warnings struct {
	report  func(note error) // called when a warning has changed, to set the relay's Status.Note
	summary func() error     // returns the note to report; if nil, the result of all is reported

	mu        sync.Mutex
	bySubject map[string]error
}

// set sets the warning about a subject, or removes it if warning is nil. If that is a change, it calls
// r.report.
func (r *warnings) set(subject string, warning error) {
	r.mu.Lock()
	changed := text(r.bySubject[subject]) != text(warning)
	if r.bySubject == nil {
		r.bySubject = map[string]error{}
	}
	if r.bySubject[subject] = warning; warning == nil {
		delete(r.bySubject, subject)
	}
	r.mu.Unlock()
	switch {
	case changed && r.summary != nil:
		r.report(r.summary())
	case changed:
		r.report(r.all())
	}
}

// has reports whether there is a warning about a subject.
func (r *warnings) has(subject string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bySubject[subject] != nil
}

// all returns all different warnings as one error, or nil if there are no warnings.
func (r *warnings) all() (note error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	previous := ""
	for _, warning := range slices.SortedFunc(maps.Values(r.bySubject), func(a, b error) int { return strings.Compare(text(a), text(b)) }) {
		switch {
		case note == nil:
			note = warning
		case text(warning) != previous:
			note = fmt.Errorf("%w. %w", note, warning)
		}
		previous = text(warning)
	}
	return note
}

// join joins two notes. Each of them may be nil.
func join(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return fmt.Errorf("%w; %w", a, b)
}

// text returns the text of a note, or "" if it is nil.
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

// readJSONFile decodes a JSON file of at most maxBytes. It returns false if that fails. It does not
// open a file that is not a regular file, since reading a pipe could block.
func readJSONFile(path string, maxBytes int64, into any) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxBytes {
		return false
	}
	text, err := os.ReadFile(path)
	return err == nil && json.Unmarshal(text, into) == nil
}
