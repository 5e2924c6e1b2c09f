// Package skin serves skins: programs that draw the agent on a screen or in a headset. On a
// WebSocket a skin receives frames that show what the agent is doing, and sends commands.
// Chat completions in OpenAI's format let a skin talk with the agent. The API also accepts
// notifications for people, which robots speak and skins show. docs/skins.md describes the API for the
// authors of skins, and names the RFCs of the OpenAB project that the API follows.
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

// questions are the agent's questions to people that nobody has answered yet.
type questions interface {
	// Reply answers a question: allow means yes. It returns agent.ErrNoQuestion if no question
	// with that ID is open.
	Reply(id string, allow bool) error
}

// mind is the agent.
type mind interface {
	// Answer answers a turn, and passes each reply to out.
	Answer(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
	// AddExchange adds an exchange to the history of a conversation.
	AddExchange(conversation string, e agent.Exchange, now time.Time)
	// Forget deletes the history of a conversation.
	Forget(conversation string) error
}

// characters are the characters that a skin may choose.
type characters interface {
	Names() []string
	Exists(name string) bool
	// Play makes a turn speak as the character called name, or as the default character if name is
	// empty. system is the text of the client's system messages.
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
	Characters characters       // nil if there is only the default character
	System     bool             // whether characters follow the system messages of clients
	Words      *agent.Words     // words for faces in each vocabulary
	Vocabulary agent.Vocabulary // vocabulary of skins that do not select one; empty means agent.VocabularyRFC
	QueryToken bool             // whether a WebSocket's key may be in the query (?token=)
	// Language returns the BCP 47 language tag of a robot, or the default language if the ID is
	// empty. It must not block. Language may be nil.
	Language func(device.ID) string
	Zone     *time.Location
	// Loudness receives how far the mouths of chats are open, and tells until when a client plays
	// the sound of a chat. If it is nil, the events of a turn are published as soon as the agent
	// produces them, and otherwise at the speed of speech.
	Loudness *voice.Loudness
	Log      *slog.Logger

	serving *httpserver.Serving // set only by the benchmark, to raise the limits; otherwise nil
}

// Server serves skins.
type Server struct {
	o       *Options
	serving *httpserver.Serving
	turns   *turns
	timings timings
	created time.Time // shown as the creation time of the models

	mu      sync.Mutex
	skins   map[*skin]bool       // connected skins
	playing map[string]*playback // playbacks that have not ended; key: conversation.key
}

// Maximum numbers of connected skins: in total, and from one peer (see httpserver.PeerOf).
const (
	maxSkins      = 1000
	maxPerAddress = 100
)

// New returns a server. The caller runs o.Feed and the server.
func New(o Options) *Server {
	o.Vocabulary = cmp.Or(o.Vocabulary, agent.VocabularyRFC)
	if o.Language == nil {
		o.Language = func(device.ID) string { return "" }
	}
	return &Server{o: &o, serving: cmp.Or(o.serving, httpserver.NewServing("skins", maxSkins, maxPerAddress)), skins: map[*skin]bool{},
		playing: map[string]*playback{}, turns: &turns{busy: map[string]bool{}}, timings: defaultTimings(), created: time.Now()}
}

// Run waits until ctx ends. It then refuses new skins, closes every WebSocket with status 1001
// (going away), waits until all connections have ended, and stops the playbacks.
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

// Connection describes a connected skin.
type Connection struct {
	Address string // host:port
	Since   time.Time
}

// Skins returns the connected skins, oldest connection first.
func (s *Server) Skins() []Connection {
	skins := []Connection{}
	for _, one := range s.connected() {
		skins = append(skins, Connection{one.address, one.since})
	}
	slices.SortFunc(skins, func(a, b Connection) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Address, b.Address)) })
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
