package broker

import (
	"errors"
	"strings"
	"sync"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Bounds of what waits to be confirmed.
const (
	mostHeld   = 256
	perchIn    = 10 * time.Second // Perch has to be here, or who publishes to it has to come again
	confirmIn  = 30 * time.Second
	lookAgain  = 50 * time.Millisecond
	gateClient = "perch.gate"
)

var (
	errNobody = errors.New("nobody is here to take commands")
	errSilent = errors.New("nobody has confirmed a command")
)

// gate confirms commands to who has published them with QoS 1 once Perch has
// confirmed them. The library would do so before it even hands them on.
type gate struct {
	mochi.HookBase
	server *mochi.Server
	base   string
	keeper string        // how the client ids of those begin who carry commands out
	self   *mochi.Client // as whom commands are handed on
	once   sync.Once
	over   chan struct{} // closed with the broker
	held   chan struct{} // one for each command that waits
	waits  sync.WaitGroup

	handing sync.Mutex // one at a time
	mu      sync.Mutex
	now     chan struct{}            // of the command that is handed on now
	waiting map[ticket]chan struct{} // closed when it was confirmed
}

// ticket is a command on its way to one client.
type ticket struct {
	client string
	packet uint16
}

func newGate(s *mochi.Server, base, keeper string) *gate {
	return &gate{server: s, base: base, keeper: keeper, self: s.NewClient(nil, "local", gateClient, true),
		over: make(chan struct{}), held: make(chan struct{}, mostHeld), waiting: map[ticket]chan struct{}{}}
}

func (g *gate) end() { g.once.Do(func() { close(g.over) }) }

// ID names the hook within the broker.
func (*gate) ID() string { return "gate" }

// Provides are the moments that the hook is called at.
func (*gate) Provides(b byte) bool {
	return b == mochi.OnPublish || b == mochi.OnQosPublish || b == mochi.OnQosComplete
}

// command reports whether a topic is one of Perch's commands.
func (g *gate) command(topic string) bool {
	rest, ours := strings.CutPrefix(topic, g.base+"/")
	return ours && (rest == "bridge/request/notify" || strings.HasSuffix(rest, "/set") && strings.Count(rest, "/") == 2)
}

// OnPublish hands a command on itself, and has its publisher wait.
func (g *gate) OnPublish(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	if cl.Net.Inline || pk.FixedHeader.Qos != 1 || !g.command(pk.TopicName) {
		return pk, nil
	}
	if !g.perch(pk.TopicName) {
		cl.Stop(errNobody)
		return pk, packets.ErrRejectPacket
	}
	select {
	case g.held <- struct{}{}:
	default:
		cl.Stop(packets.ErrQuotaExceeded)
		return pk, packets.ErrRejectPacket
	}
	confirmed := g.hand(pk)
	g.waits.Go(func() {
		defer func() { <-g.held }()
		g.confirm(cl, pk.PacketID, confirmed)
	})
	return pk, packets.ErrRejectPacket // which for the library is the end of it
}

// confirm tells the publisher, once there is something to tell.
func (g *gate) confirm(cl *mochi.Client, packet uint16, confirmed <-chan struct{}) {
	late := time.NewTimer(confirmIn)
	defer late.Stop()
	select {
	case <-confirmed:
		ack := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Puback}, PacketID: packet}
		if err := cl.WritePacket(ack); err != nil {
			cl.Stop(err) // it publishes anew
		}
	case <-late.C:
		cl.Stop(errSilent)
	case <-g.over:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for t, c := range g.waiting {
		if c == confirmed {
			delete(g.waiting, t)
		}
	}
}

// perch waits a while for somebody who confirms what is published on a topic.
func (g *gate) perch(topic string) bool {
	late := time.NewTimer(perchIn)
	defer late.Stop()
	for {
		for id, s := range g.server.Topics.Subscribers(topic).Subscriptions {
			if strings.HasPrefix(id, g.keeper) && s.Qos > 0 {
				return true
			}
		}
		select {
		case <-time.After(lookAgain):
		case <-late.C:
			return false
		case <-g.over:
			return false
		}
	}
}

// hand hands a command on to all who subscribe to it.
func (g *gate) hand(pk packets.Packet) (confirmed chan struct{}) {
	confirmed = make(chan struct{})
	out := pk.Copy(true)
	out.Properties.TopicAlias, out.Properties.TopicAliasFlag = 0, false // between publisher and broker
	g.handing.Lock()
	defer g.handing.Unlock()
	g.set(confirmed)
	defer g.set(nil)
	_ = g.server.InjectPacket(g.self, out) // what it refuses nobody confirms
	return confirmed
}

func (g *gate) set(now chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now = now
}

// OnQosPublish notes on its way to Perch what is handed on.
func (g *gate) OnQosPublish(cl *mochi.Client, pk packets.Packet, _ int64, _ int) {
	if pk.Origin != gateClient || pk.FixedHeader.Dup || !strings.HasPrefix(cl.ID, g.keeper) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := (ticket{cl.ID, pk.PacketID}); g.now != nil && g.waiting[t] == nil {
		g.waiting[t] = g.now
	}
}

// OnQosComplete notes that a client has confirmed a message.
func (g *gate) OnQosComplete(cl *mochi.Client, pk packets.Packet) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := ticket{cl.ID, pk.PacketID}
	confirmed, waits := g.waiting[t]
	if !waits {
		return
	}
	for other, c := range g.waiting { // one who has confirmed it is enough
		if c == confirmed {
			delete(g.waiting, other)
		}
	}
	close(confirmed)
}
