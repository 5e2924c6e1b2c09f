// Package skin is the door of skins: programs that draw the agent, on a screen or
// in a headset. A WebSocket pushes what the agent is doing (Tier-2 of the VTuber
// adapter's RFC), chat completions in OpenAI's shape let a skin talk with the
// agent (Tier-1), and notifications come in for all of them. docs/skins.md is for
// the authors of skins.
//
// What is pushed is rendered once for all skins, from the board and the bus. A skin
// that does not read delays no other: its outbox is bounded, and discards outdated
// frames.
package skin

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/door"
)

// notifier accepts notifications, and has them shown and spoken.
type notifier interface {
	Notify(n notice.Notification) (notice.Notification, error)
	Acknowledge(id string) error
}

// notices are the notifications that are kept.
type notices interface {
	Open(now time.Time) []notice.Notification
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
	Known(name string) bool
	// Play has a turn answered by a character; an empty name is the household's. system
	// is what the skin's client says of it besides.
	Play(t *agent.Turn, name, system string)
}

// Options are what the door is made of. Only fields with a note may be
// empty.
type Options struct {
	Board    *agent.Board
	Bus      *event.Bus
	Notifier notifier
	Notices  notices
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
	Language   string           // BCP 47
	Zone       *time.Location
	Log        *slog.Logger
}

// Door is the skins' door.
type Door struct {
	o     *Options
	feed  *feed
	limit *door.ConnectionLimit
	turns *turns
	paces paces
	began time.Time
}

// New returns the door. Run has it push; what else it does works without.
func New(o Options) *Door {
	o.Vocabulary = cmp.Or(o.Vocabulary, agent.VocabularyRFC)
	return &Door{o: &o, feed: newFeed(&o), limit: door.NewConnectionLimit(mostSkins, mostOfOne), turns: &turns{busy: map[string]bool{}},
		paces: usualPaces(), began: time.Now()}
}

// goingAway is the reason that skins are sent when the appliance stops.
const goingAway = "the appliance is stopping"

// Run pushes until ctx ends or the bus is closed. Then every skin's WebSocket is
// closed with 1001, and Run returns when all are gone.
func (d *Door) Run(ctx context.Context) {
	d.feed.run(ctx)
	d.feed.close()
}

// Connected is how many skins there are.
func (d *Door) Connected() int {
	d.feed.mu.Lock()
	defer d.feed.mu.Unlock()
	return len(d.feed.skins)
}

// Skin is a connected skin as it is shown.
type Skin struct {
	Address string // that it came from
	Since   time.Time
}

// Skins are those that are connected, the first that came first.
func (d *Door) Skins() []Skin {
	d.feed.mu.Lock()
	defer d.feed.mu.Unlock()
	all := []Skin{}
	for s := range d.feed.skins {
		all = append(all, Skin{s.address, s.since})
	}
	slices.SortFunc(all, func(a, b Skin) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Address, b.Address)) })
	return all
}
