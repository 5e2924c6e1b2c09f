// Package relay shows agents in avatar programs that have their own protocols: VTube Studio,
// VRChat, OBS and others. Each program is one file, which says how to connect to it and what to
// send. The rest is shared: the frames of package feed, the choice of session, the life of a
// connection, an owner's words.
//
// A slow or absent program costs nothing: only the latest scene is stored for it, and
// notifications wait in the feed. docs/relays.md is for owners, and for developers who add a
// program.
package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/limit"
	"perch/secret"
)

// Target is the configuration of one program.
type Target struct {
	Kind    string            `yaml:"kind"`
	Name    string            `yaml:"name" doc:"How it is called in lists; needed only if there are two of a kind."`
	URL     string            `yaml:"url" doc:"Where the program is, if not where its kind usually is."`
	Robot   string            `yaml:"robot" doc:"The MAC address or name of the robot that is shown. If empty, whichever began to work last."`
	Key     string            `yaml:"key" doc:"A password, key or token that the program wants."`
	KeyFile string            `yaml:"key_file" doc:"A file that holds the key."`
	Words   map[string]string `yaml:"words" doc:"What the program is told instead of the kind's own words, by state.thinking, face.happy, gesture.wave."`
}

// address returns the program's address without secrets.
func (t *Target) address() string { return shownAddress(t.URL) }

// loudness tells how loud speech is, by robot id or session.
type loudness interface {
	// Level returns the loudness of the speech as it is heard now, from 0 to 1. changed is
	// closed when it changes.
	Level(of string) (level float64, changed <-chan struct{})
	// Speaks reports whether a client plays the sound of that robot or session.
	Speaks(of string) bool
}

// Options are the dependencies of Relays. Only fields whose comment says so may be empty.
type Options struct {
	Targets []Target
	Feed    *feed.Feed
	Bus     *event.Bus
	Words   *agent.Words
	// Find returns the robot with a MAC address or a name.
	Find     func(robot string) (device.ID, error)
	Voice    loudness
	Tokens   tokens
	Gestures []string // all gesture names, for RunTrial
	Home     string   // the home directory, where local programs write their addresses
	Name     string   // of the appliance, as programs show it
	Log      *slog.Logger
}

// Relays are all programs that show the agents.
type Relays struct {
	o Options

	mu      sync.Mutex
	all     []*relay
	ctx     context.Context // of Run; nil before
	running sync.WaitGroup
}

// ErrTarget is wrapped by the errors of New, Apply and Check for an invalid target.
var ErrTarget = errors.New("not a relay")

// New returns relays to the configured targets. Run connects them.
func New(o Options) (*Relays, error) {
	r := &Relays{o: o}
	return r, r.Apply(o.Targets)
}

// Apply replaces the targets. The connection to an unchanged target stays open. On error
// nothing changes.
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

// start starts relays if Run is running. r.mu must be held.
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

// Check returns the error that New would return for one target.
func Check(t Target, words *agent.Words) error {
	_, err := newRelay(&Options{Words: words, Log: slog.New(slog.DiscardHandler)}, t)
	return err
}

// Run serves all programs until ctx ends, and returns when every connection is closed.
func (r *Relays) Run(ctx context.Context) {
	r.mu.Lock()
	r.ctx = ctx
	r.start(r.all)
	r.mu.Unlock()
	<-ctx.Done()
	r.running.Wait()
}

// current returns the present relays.
func (r *Relays) current() []*relay {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// List returns the status of every relay, in the order of the configuration.
func (r *Relays) List() []Status {
	all := []Status{}
	for _, one := range r.current() {
		all = append(all, one.status())
	}
	return all
}

// newRelay checks a target and returns its relay.
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
	r := &relay{o: o, kind: k, target: t, words: words, log: o.Log.With("relay", t.Name), trials: make(chan *trial),
		busy: map[string]feed.State{}}
	if t.URL != "" {
		err = k.checkURL(t.URL)
	}
	if err == nil {
		r.program, err = k.make(&programConfig{Target: t, words: words, home: o.Home, appliance: o.Name, tokens: o.Tokens})
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrTarget, k.Title, err)
	}
	return r, nil
}

// programConfig is what a program is made from.
type programConfig struct {
	Target
	words     words
	home      string // Options.Home
	appliance string // Options.Name
	tokens    tokens
}

// tokens stores the tokens that identify Perch to programs. A token is stored under the address of
// the program that issued it, and is sent to no other.
type tokens interface {
	Get(key string) (token string, found bool, err error)
	Put(key string, token string) error // durable when it returns
}

// mostToken bounds a token, in bytes. VTube Studio's have 64 at most.
const mostToken = 256

// tokenKey returns the storage key of the token of the program at an address.
func (t *Target) tokenKey(address string) string {
	host := address
	if u, err := url.Parse(address); err == nil {
		host = u.Host
	}
	return strings.Join([]string{t.Kind, t.Name, host}, "/")
}
