// Package relay shows agents in avatar programs that have their own protocols, such as VTube
// Studio, VRChat and OBS. Each program's protocol is implemented in a Go file of this package. Relays
// connect and reconnect, choose the session to show, and translate states, faces and gestures to the
// program's words, which the owner can configure.
//
// A relay is the connection to one program. Package feed makes frames; each describes a change
// of an agent, such as a new state, sentence or notification. A Scene is the appearance that results from
// the frames of a session. A word is the program's name for a state, face, gesture or feeling.
//
// While a program is slow or not connected, only the latest Scene is stored for it, and
// notifications stay in the feed. docs/relays.md is for owners, and for developers who add a
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
	"perch/gateway/mdns"
	"perch/limit"
	"perch/secret"
)

// Target is the configuration of one program.
type Target struct {
	Kind    string            `yaml:"kind"`
	Name    string            `yaml:"name" doc:"The name in lists; needed only if there are two programs of a kind."`
	URL     string            `yaml:"url" doc:"The program's address, if it is not the default one of its kind. For vrchat it may be find: Perch looks for it on the network."`
	Robot   string            `yaml:"robot" doc:"The MAC address or name of the robot that is shown. If empty, the robot or chat that began to work last."`
	Key     string            `yaml:"key" doc:"A password, key or token that the program requires."`
	KeyFile string            `yaml:"key_file" doc:"A file that contains the key."`
	Words   map[string]string `yaml:"words" doc:"Replaces the program's default words. The keys are states, faces and gestures, such as state.thinking, face.happy and gesture.wave; the values are the words that the program knows."`
}

// address returns the configured address without secrets.
func (t *Target) address() string { return redact(t.URL) }

// loudness reports the loudness of speech.
type loudness interface {
	// Level returns the loudness of the speech that is being played, from 0 to 1. key is the ID of a
	// robot, or of a session without a robot. changed is closed when the loudness changes.
	Level(key string) (level float64, changed <-chan struct{})
}

// Options are the dependencies of Relays. All are required, except that Targets, Gestures and Home may be empty.
type Options struct {
	Targets []Target
	Feed    *feed.Feed
	Bus     *event.Bus
	Words   *agent.Words
	// Find returns the robot with a MAC address or a name.
	Find func(robot string) (device.ID, error)
	// Answer answers the question with an ID. The error is agent.ErrNoQuestion if no such question waits.
	Answer   func(id string, allow bool) error
	Voice    loudness
	Tokens   tokens
	Gestures []string // names of all gestures, for RunTrial
	Home     string   // home directory, where local programs write their addresses
	Name     string   // name of the appliance, which programs show
	Network  network
	Log      *slog.Logger
}

// network is the local network.
type network interface {
	// Instance returns the name under which the appliance announces services, and the host on which
	// further services must listen. announced is false if the appliance announces nothing.
	Instance() (name, host string, announced bool)
	// Browse returns the services of a type that others announce, found before ctx ends.
	Browse(ctx context.Context, kind string) ([]mdns.Found, error)
}

// Relays are the connections to all configured programs.
type Relays struct {
	o Options

	mu      sync.Mutex
	relays  []*relay
	ctx     context.Context // context of Run; nil before Run is called
	running sync.WaitGroup  // counts goroutines of relay.run
}

// ErrTarget is wrapped by the errors of New, Apply and Check for an invalid target, unless the key could
// not be read.
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
	var relays, added []*relay
	for i, t := range targets {
		one, err := newRelay(&r.o, t)
		if err == nil && slices.ContainsFunc(relays, func(other *relay) bool { return other.target.Name == one.target.Name }) {
			err = fmt.Errorf("%w: two relays are called %q; give one of them another name", ErrTarget, one.target.Name)
		}
		if err != nil {
			return fmt.Errorf("relays.%d: %w", i, err)
		}
		unchanged := slices.IndexFunc(r.relays, func(old *relay) bool { return reflect.DeepEqual(old.target, one.target) })
		if unchanged >= 0 {
			one = r.relays[unchanged]
		} else {
			added = append(added, one)
		}
		relays = append(relays, one)
	}
	for _, old := range r.relays {
		if !slices.Contains(relays, old) && old.stop != nil {
			old.stop()
		}
	}
	r.relays = relays
	r.start(added)
	return nil
}

// start starts relays if Run has been called. r.mu must be held.
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

// Check returns the error that New would return for one target. It joins a language.KeyError for each
// invalid entry of the target's words.
func Check(t Target, words *agent.Words) error {
	_, err := newRelay(&Options{Words: words, Log: slog.New(slog.DiscardHandler)}, t)
	return err
}

// Run serves all programs until ctx ends. It returns once all connections are closed.
func (r *Relays) Run(ctx context.Context) {
	r.mu.Lock()
	r.ctx = ctx
	r.start(r.relays)
	r.mu.Unlock()
	<-ctx.Done()
	r.running.Wait()
}

func (r *Relays) current() []*relay {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.relays
}

// List returns the status of every relay, in the order of the configuration.
func (r *Relays) List() []Status {
	list := []Status{}
	for _, one := range r.current() {
		list = append(list, one.status())
	}
	return list
}

// Offers returns the services of the relays to announce on the network. The result changes over time.
func (r *Relays) Offers() (offers []mdns.Offer) {
	for _, one := range r.current() {
		if p, ok := one.program.(background); ok {
			offers = append(offers, p.offers()...)
		}
	}
	return offers
}

// newRelay checks a target and returns its relay.
func newRelay(o *Options, t Target) (*relay, error) {
	i := slices.IndexFunc(kinds(), func(k kind) bool { return k.Name == t.Kind })
	if i < 0 {
		return nil, fmt.Errorf("%w: there is no kind %.40q; the kinds are %s", ErrTarget, t.Kind, strings.Join(names(), ", "))
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
		return nil, fmt.Errorf("%w: %s has no default address; set url", ErrTarget, k.Title)
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
		r.program, err = k.make(&programConfig{Target: t, words: words, home: o.Home, appliance: o.Name, tokens: o.Tokens, answer: o.Answer,
			network: o.Network, log: r.log})
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrTarget, k.Title, err)
	}
	return r, nil
}

// programConfig is the configuration of a program.
type programConfig struct {
	Target
	words     words
	home      string // Options.Home
	appliance string // Options.Name
	tokens    tokens
	answer    func(id string, allow bool) error // Options.Answer
	network   network
	log       *slog.Logger // adds the name of the relay to each line
}

// tokens stores the tokens that programs have issued to Perch. The key of a token is a result of
// Target.tokenKey. It includes the address of the program, so that Perch does not send the token to a
// program at another address.
type tokens interface {
	Get(key string) (token string, found bool, err error)
	// Put stores a token durably.
	Put(key string, token string) error
}

// maxToken is the maximum length of a token in bytes. VTube Studio's tokens have at most 64.
const maxToken = 256

// tokenKey returns the key under which tokens stores the token of the program at an address.
func (t *Target) tokenKey(address string) string {
	host := address
	if u, err := url.Parse(address); err == nil {
		host = u.Host
	}
	return strings.Join([]string{t.Kind, t.Name, host}, "/")
}
