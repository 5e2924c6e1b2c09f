// Package relay shows what the agents do in avatar programs that speak protocols of
// their own: VTube Studio, VRChat, OBS and others. Each program is one file: how it is
// reached, and what it is told. Everything else is here once: the frames of package
// feed, which of the sessions is shown, the life of a connection, an owner's words.
//
// A program that is slow or away costs nothing: only the latest is kept for it, and a
// notification waits where all notifications do. docs/relays.md is for owners, and for
// whoever adds a program.
package relay

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

	"perch/agent"
	"perch/agent/feed"
	"perch/device"
	"perch/event"
	"perch/limit"
	"perch/secret"
)

// Target is one program that is to show the agents, as the configuration has it.
type Target struct {
	Kind    string            `yaml:"kind"`
	Name    string            `yaml:"name" doc:"How it is called in lists; needed only if there are two of a kind."`
	URL     string            `yaml:"url" doc:"Where the program is, if not where its kind usually is."`
	Robot   string            `yaml:"robot" doc:"The MAC address or name of the robot that is shown. If empty, whichever began to work last."`
	Key     string            `yaml:"key" doc:"A password, key or token that the program wants."`
	KeyFile string            `yaml:"key_file" doc:"A file that holds the key."`
	Words   map[string]string `yaml:"words" doc:"What the program is told instead of the kind's own words, by state.thinking, face.happy, gesture.wave."`
}

// address is where the program is, as it may be shown.
func (t *Target) address() string { return shownAddress(t.URL) }

// loudness is how loud it is spoken: by a robot, which goes by its id, or in a session.
type loudness interface {
	// Level is that of the speech as it is heard now, from 0 to 1; changed is closed once
	// it is another.
	Level(of string) (level float64, changed <-chan struct{})
	// Speaks reports whether somebody has the sound of that.
	Speaks(of string) bool
}

// Options are what relays are made of. Only fields with a note may be empty.
type Options struct {
	Targets []Target
	Feed    *feed.Feed
	Bus     *event.Bus
	Words   *agent.Words
	// Find is the robot that is meant by a MAC address or a name.
	Find     func(robot string) (device.ID, error)
	Voice    loudness
	Tokens   tokens
	Gestures []string // the names of those that there are, for Try
	Home     string   // the directory in which programs of this machine leave their addresses
	Name     string   // the appliance's, as programs show it
	Log      *slog.Logger
}

// Relays are all programs that show the agents.
type Relays struct {
	o Options

	mu      sync.Mutex
	all     []*relay
	ctx     context.Context // of Run; nil before it
	running sync.WaitGroup
}

// ErrTarget is wrapped by New and Check for a target that cannot be one.
var ErrTarget = errors.New("not a relay")

// New makes the relays. They are reached once Run runs.
func New(o Options) (*Relays, error) {
	r := &Relays{o: o}
	return r, r.Apply(o.Targets)
}

// Apply shows the agents in these programs from now on. The connection to one that was a
// target before, and is the same, stays open. With an error all is as it was.
func (r *Relays) Apply(targets []Target) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all, added []*relay
	for i, t := range targets {
		one, err := newRelay(&r.o, t)
		if err == nil && slices.ContainsFunc(all, func(other *relay) bool { return other.target.Name == one.target.Name }) {
			err = fmt.Errorf("%w: two relays are called %q; give one of them another name", ErrTarget, one.target.Name)
		}
		if err != nil {
			return fmt.Errorf("relays.%d: %w", i, err)
		}
		same := slices.IndexFunc(r.all, func(before *relay) bool { return reflect.DeepEqual(before.target, one.target) })
		if same >= 0 {
			one = r.all[same]
		} else {
			added = append(added, one)
		}
		all = append(all, one)
	}
	for _, before := range r.all {
		if !slices.Contains(all, before) && before.stop != nil {
			before.stop()
		}
	}
	r.all = all
	r.start(added)
	return nil
}

// start reaches programs while Run runs. r.mu is held.
func (r *Relays) start(added []*relay) {
	if r.ctx == nil {
		return
	}
	for _, one := range added {
		var ctx context.Context
		ctx, one.stop = context.WithCancel(r.ctx)
		r.running.Go(func() { one.run(ctx) })
	}
}

// Check reports what New refuses of one target.
func Check(t Target, words *agent.Words) error {
	_, err := newRelay(&Options{Words: words, Log: slog.New(slog.DiscardHandler)}, t)
	return err
}

// Run shows until ctx ends, and returns when every connection is closed.
func (r *Relays) Run(ctx context.Context) {
	r.mu.Lock()
	r.ctx = ctx
	r.start(r.all)
	r.mu.Unlock()
	<-ctx.Done()
	r.running.Wait()
}

// now are the relays as they are now.
func (r *Relays) now() []*relay {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// List is every relay as it is now, in the order of the configuration.
func (r *Relays) List() []Shown {
	all := []Shown{}
	for _, one := range r.now() {
		all = append(all, one.shown())
	}
	return all
}

// newRelay checks a target.
func newRelay(o *Options, t Target) (*relay, error) {
	i := slices.IndexFunc(kinds(), func(k kind) bool { return k.Name == t.Kind })
	if i < 0 {
		return nil, fmt.Errorf("%w: there is no kind %.40q; there are %s", ErrTarget, t.Kind, strings.Join(names(), ", "))
	}
	k := kinds()[i]
	var err error
	if t.Key, err = secret.Read("key", t.Key, t.KeyFile); err != nil {
		return nil, err
	}
	t.Name = cmp.Or(t.Name, t.Kind)
	if !k.Finds {
		t.URL = cmp.Or(t.URL, k.URL)
	}
	if len(t.Name) > limit.Word {
		return nil, fmt.Errorf("%w: a name has at most %d bytes", ErrTarget, limit.Word)
	}
	if t.URL == "" && !k.Finds {
		return nil, fmt.Errorf("%w: %s has no usual address; set url", ErrTarget, k.Title)
	}
	words, err := newWords(k, o.Words, t.Words)
	if err != nil {
		return nil, err
	}
	r := &relay{o: o, kind: k, target: t, words: words, log: o.Log.With("relay", t.Name), tries: make(chan *try),
		busy: map[string]feed.State{}}
	if t.URL != "" {
		err = k.checkURL(t.URL)
	}
	if err == nil {
		r.program, err = k.make(&own{Target: t, words: words, home: o.Home, appliance: o.Name, tokens: o.Tokens})
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrTarget, k.Title, err)
	}
	return r, nil
}

// own is what a program is made of.
type own struct {
	Target
	words     words
	home      string // where programs of this machine leave their addresses
	appliance string // its name
	tokens    tokens
}
