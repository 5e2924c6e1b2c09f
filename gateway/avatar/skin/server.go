// Package skin serves skins: programs that draw the agent on a screen or in a headset. A
// WebSocket sends frames that show what the agent is doing (Tier-2 of the VTuber adapter's
// RFC). Chat completions in OpenAI's format let a skin talk with the agent (Tier-1). The API
// also accepts notifications for all skins. docs/skins.md is for the authors of skins.
//
// Package feed makes the frames. A skin that does not read does not delay the others.
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
	"perch/voice"
)

// notifier accepts notifications.
type notifier interface {
	Notify(n notice.Notification) (notice.Notification, error)
	Acknowledge(id string) error
}

// robots are the registered robots.
type robots interface {
	Get(id device.ID) (device.Robot, error)
	// Trusts reports whether a robot is adopted.
	Trusts(id device.ID) bool
}

// questions are the open questions.
type questions interface {
	// Reply answers a question. It returns agent.ErrNoQuestion if no question with that ID is
	// open.
	Reply(id string, allow bool) error
}

// mind is the agent.
type mind interface {
	// Answer answers a turn, and passes each reply to out.
	Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	// Remembered adds an exchange to the agent's memory of a conversation.
	Remembered(conversation string, e agent.Exchange, now time.Time)
	Forget(conversation string) error
}

// characters are the characters that a skin may choose.
type characters interface {
	Names() []string
	Exists(name string) bool
	// Play sets the character of a turn. If name is empty, that is the household's character.
	// system is the text of the client's system messages.
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
	Characters characters // nil if there is only the household's character
	System     bool       // whether characters follow the system messages of clients
	Words      *agent.Words
	Vocabulary agent.Vocabulary // vocabulary of skins that do not select one; empty means agent.VocabularyRFC
	QueryToken bool             // whether a WebSocket's key may be in the query (?token=)
	// Language returns the BCP 47 language tag of a robot, or of the household if the ID
	// is empty. It must not block. Language may be nil.
	Language func(device.ID) string
	Zone     *time.Location
	// Loudness receives how far mouths are open in chats. If it is nil, the events of a turn are
	// published at the speed of the agent instead of the speed of speech.
	Loudness *voice.Loudness
	Log      *slog.Logger

	serving *httpserver.Serving // set only by the benchmark, to raise the limits; otherwise nil
}

// Server accepts skins.
type Server struct {
	o       *Options
	serving *httpserver.Serving
	turns   *turns
	paces   paces
	created time.Time // shown as the creation time of the models

	mu      sync.Mutex
	skins   map[*skin]bool       // connected skins
	playing map[string]*playback // playbacks that have not ended; key: conversation.key
}

// Maximum numbers of connected skins: in total, and from one IP address.
const (
	maxSkins      = 1000
	maxPerAddress = 100
)

// New returns a server. o.Feed must be running.
func New(o Options) *Server {
	o.Vocabulary = cmp.Or(o.Vocabulary, agent.VocabularyRFC)
	if o.Language == nil {
		o.Language = func(device.ID) string { return "" }
	}
	return &Server{o: &o, serving: cmp.Or(o.serving, httpserver.NewServing("skins", maxSkins, maxPerAddress)), skins: map[*skin]bool{},
		playing: map[string]*playback{}, turns: &turns{busy: map[string]bool{}}, paces: defaultPaces(), created: time.Now()}
}

// Run accepts skins until ctx ends. It then closes every WebSocket with status 1001 (going
// away), and returns once all connections have ended.
func (s *Server) Run(ctx context.Context) {
	s.serving.Run(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.playing {
		p.timer.Stop()
	}
}

// Connected returns the number of connected skins.
func (s *Server) Connected() int { return len(s.connected()) }

// Skin is a connected skin.
type Skin struct {
	Address string // host:port
	Since   time.Time
}

// Skins returns the connected skins, oldest connection first.
func (s *Server) Skins() []Skin {
	skins := []Skin{}
	for _, one := range s.connected() {
		skins = append(skins, Skin{one.address, one.since})
	}
	slices.SortFunc(skins, func(a, b Skin) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Address, b.Address)) })
	return skins
}

// setConnected adds a skin to the connected skins, or removes it.
func (s *Server) setConnected(one *skin, connected bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.skins[one] = connected; !connected {
		delete(s.skins, one)
	}
}

// connected returns the connected skins, in no particular order.
func (s *Server) connected() []*skin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.skins))
}
