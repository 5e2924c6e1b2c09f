// Package skin serves skins: programs that draw the agent on a screen or in a headset. A
// WebSocket sends what the agent is doing (Tier-2 of the VTuber adapter's RFC), chat
// completions in OpenAI's shape let a skin talk with the agent (Tier-1), and notifications
// for all skins are accepted. docs/skins.md is for the authors of skins.
//
// The frames are those of package feed. A skin that does not read delays no other.
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

// notifier accepts notifications.
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

// questions are the open questions.
type questions interface {
	// Reply returns agent.ErrNoQuestion if no question with that id is open.
	Reply(id string, allow bool) error
}

// mind is the agent.
type mind interface {
	Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	Remembered(conversation string, e agent.Exchange, now time.Time)
	Forget(conversation string) error
}

// characters are the characters that a skin may choose.
type characters interface {
	Names() []string
	Exists(name string) bool
	// Play sets the character of a turn; an empty name stands for the household's. system is
	// the text of the client's system messages.
	Play(t *agent.Turn, name, system string)
}

// Options are the dependencies of a Server. Only fields whose comment says so may be empty.
type Options struct {
	Feed     *feed.Feed
	Bus      *event.Bus
	Notifier notifier
	Robots   robots
	Mind     mind

	// Find returns the robot with a MAC address or a name.
	Find func(robot string) (device.ID, error)

	Questions  questions
	Characters characters // nil allows only the household's
	System     bool       // system messages are heard
	Words      *agent.Words
	Vocabulary agent.Vocabulary // for skins that select none; empty is the RFC's
	QueryToken bool             // the key may be the ?token= of a WebSocket
	// Language returns the language of a robot, BCP 47, or of the household for no robot. It
	// must not block. It may be nil.
	Language func(device.ID) string
	Zone     *time.Location
	Log      *slog.Logger

	serving *httpserver.Serving // nil has the usual limits; the benchmark has more
}

// Server accepts skins.
type Server struct {
	o       *Options
	serving *httpserver.Serving
	turns   *turns
	paces   paces
	began   time.Time

	mu    sync.Mutex
	skins map[*skin]bool
}

// Limits of the connected skins.
const (
	mostSkins = 1000
	mostOfOne = 100 // from one address
)

// New returns a server. o.Feed must be running. Run disconnects the skins at the end.
func New(o Options) *Server {
	o.Vocabulary = cmp.Or(o.Vocabulary, agent.VocabularyRFC)
	if o.Language == nil {
		o.Language = func(device.ID) string { return "" }
	}
	return &Server{o: &o, serving: cmp.Or(o.serving, httpserver.NewServing("skins", mostSkins, mostOfOne)), skins: map[*skin]bool{},
		turns: &turns{busy: map[string]bool{}}, paces: usualPaces(), began: time.Now()}
}

// Run accepts skins until ctx ends. It then closes every WebSocket with 1001, and returns when
// all have ended.
func (s *Server) Run(ctx context.Context) { s.serving.Run(ctx) }

// Connected returns the number of skins.
func (s *Server) Connected() int { return len(s.connected()) }

// Skin is a connected skin.
type Skin struct {
	Address string // host:port
	Since   time.Time
}

// Skins returns the connected skins in the order of their connection.
func (s *Server) Skins() []Skin {
	all := []Skin{}
	for _, one := range s.connected() {
		all = append(all, Skin{one.address, one.since})
	}
	slices.SortFunc(all, func(a, b Skin) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Address, b.Address)) })
	return all
}

// setConnected adds a skin to the connected ones, or removes it.
func (s *Server) setConnected(one *skin, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.skins[one] = is; !is {
		delete(s.skins, one)
	}
}

func (s *Server) connected() []*skin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.skins))
}
