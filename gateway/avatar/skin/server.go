// Package skin is the door of skins: programs that draw the agent, on a screen or
// in a headset. A WebSocket pushes what the agent is doing (Tier-2 of the VTuber
// adapter's RFC), chat completions in OpenAI's shape let a skin talk with the
// agent (Tier-1), and notifications come in for all of them. docs/skins.md is for
// the authors of skins.
//
// What is pushed is what package feed renders for all viewers. A skin that does not
// read delays no other.
package skin

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/avatar/feed"
	"perch/gateway/httpserver"
)

// notifier accepts notifications, and has them shown and spoken.
type notifier interface {
	Notify(n notice.Notification) (notice.Notification, error)
	Acknowledge(id string) error
}

// robots are the registered robots.
type robots interface {
	Get(id device.ID) (device.Robot, error)
	// Trusts reports whether a robot was adopted by name.
	Trusts(id device.ID) bool
}

// questions wait for a yes or no.
type questions interface {
	// Reply fails with agent.ErrNoQuestion where none waits under that id.
	Reply(id string, allow bool) error
}

// mind is the agent: it answers text.
type mind interface {
	Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	Remembered(conversation string, e agent.Exchange, now time.Time)
	Forget(conversation string) error
}

// characters are who may answer a skin.
type characters interface {
	Names() []string
	Exists(name string) bool
	// Play has a turn answered by a character; an empty name is the household's. system
	// is what the skin's client says of it besides.
	Play(t *agent.Turn, name, system string)
}

// Options are what the door is made of. Only fields with a note may be
// empty.
type Options struct {
	Feed     *feed.Feed // of what skins are shown
	Bus      *event.Bus
	Notifier notifier
	Robots   robots
	Mind     mind

	// Find is the robot that is meant by a MAC address or a name.
	Find func(robot string) (device.ID, error)

	Questions  questions
	Characters characters // nil is the household's alone
	System     bool       // a system message is heard
	Words      *agent.Words
	Vocabulary agent.Vocabulary // of skins that ask for no other; empty is the RFC's
	QueryToken bool             // the key may come as ?token= where a WebSocket is opened
	// Language is that of a robot, BCP 47, and of the household for no robot. It does
	// not block. Nil says nothing of it.
	Language func(device.ID) string
	Zone     *time.Location
	Log      *slog.Logger

	serving *httpserver.Serving // nil are the usual limits; a benchmark has more skins
}

// Server is the skins' door.
type Server struct {
	o       *Options
	serving *httpserver.Serving
	skins   *connected
	turns   *turns
	paces   paces
	began   time.Time
}

// Limits of the connected skins.
const (
	mostSkins = 1000
	mostOfOne = 100 // from one address
)

// New returns the door. Its feed has to run; Run disconnects the skins at the end.
func New(o Options) *Server {
	o.Vocabulary = cmp.Or(o.Vocabulary, agent.VocabularyRFC)
	if o.Language == nil {
		o.Language = func(device.ID) string { return "" }
	}
	return &Server{o: &o, serving: cmp.Or(o.serving, httpserver.NewServing("skins", mostSkins, mostOfOne)), skins: &connected{all: map[*skin]bool{}},
		turns: &turns{busy: map[string]bool{}}, paces: usualPaces(), began: time.Now()}
}

// Run lets skins in until ctx ends. Then every skin's WebSocket is closed with 1001,
// and Run returns when all are gone.
func (s *Server) Run(ctx context.Context) { s.serving.Run(ctx) }

// Connected is how many skins there are.
func (s *Server) Connected() int { return len(s.skins.list()) }

// Skin is a connected skin as it is shown.
type Skin struct {
	Address string // that it came from
	Since   time.Time
}

// Skins are those that are connected, the first that came first.
func (s *Server) Skins() []Skin {
	all := []Skin{}
	for _, one := range s.skins.list() {
		all = append(all, Skin{one.address, one.since})
	}
	slices.SortFunc(all, func(a, b Skin) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Address, b.Address)) })
	return all
}

// connected are the skins that are connected.
type connected struct {
	mu  sync.Mutex
	all map[*skin]bool
}

func (c *connected) add(s *skin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[s] = true
}

func (c *connected) remove(s *skin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, s)
}

func (c *connected) list() []*skin {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.all))
}
