package broker

import (
	"errors"
	"strings"
	"sync"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Limits of commands that wait to be confirmed.
const (
	mostHeld  = 256
	perchIn   = 10 * time.Second // Perch has to be connected by then, or the publisher has to connect again
	confirmIn = 30 * time.Second
	lookAgain = 50 * time.Millisecond
	ownClient = "perch.gate"
)

var (
	errAway   = errors.New("no connection of Perch takes commands")
	errSilent = errors.New("a command was not confirmed by Perch")
)

// confirmations are a hook that confirms commands to their publishers (QoS 1)
// once Perch has confirmed them. The library would do so before it even forwards
// them.
type confirmations struct {
	mochi.HookBase
	server *mochi.Server
	base   string
	prefix string          // how the client ids of Perch's own connections begin
	self   *mochi.Client   // the client in whose name commands are forwarded
	over   <-chan struct{} // closed with the broker
	held   chan struct{}   // one for each command that waits
	waits  sync.WaitGroup

	forwarding sync.Mutex // one at a time
	mu         sync.Mutex
	now        chan struct{}            // of the command that is forwarded now
	waiting    map[ticket]chan struct{} // closed when it was confirmed
}

// ticket is a command on its way to one client.
type ticket struct {
	client string
	packet uint16
}

func newConfirmations(s *mochi.Server, base, prefix string, over <-chan struct{}) *confirmations {
	return &confirmations{server: s, base: base, prefix: prefix, self: s.NewClient(nil, "local", ownClient, true),
		over: over, held: make(chan struct{}, mostHeld), waiting: map[ticket]chan struct{}{}}
}

// ID is the hook's name within the broker.
func (*confirmations) ID() string { return "gate" }

// Provides are the moments that the hook is called at.
func (*confirmations) Provides(b byte) bool {
	return b == mochi.OnPublish || b == mochi.OnQosPublish || b == mochi.OnPacketRead
}

// command reports whether a topic is one of Perch's commands.
func (g *confirmations) command(topic string) bool {
	rest, ours := strings.CutPrefix(topic, g.base+"/")
	return ours && (rest == "bridge/request/notify" || strings.HasSuffix(rest, "/set") && strings.Count(rest, "/") == 2)
}

// OnPublish forwards a command itself, and has its publisher wait.
func (g *confirmations) OnPublish(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	if cl.Net.Inline || pk.FixedHeader.Qos != 1 || !g.command(pk.TopicName) {
		return pk, nil
	}
	if !g.perch(pk.TopicName) {
		cl.Stop(errAway)
		return pk, packets.ErrRejectPacket
	}
	select {
	case g.held <- struct{}{}:
	default:
		cl.Stop(packets.ErrQuotaExceeded)
		return pk, packets.ErrRejectPacket
	}
	confirmed := g.forward(pk)
	g.waits.Go(func() {
		defer func() { <-g.held }()
		g.confirm(cl, pk.PacketID, confirmed)
	})
	return pk, packets.ErrRejectPacket // the library does no more with it
}

// confirm sends the publisher its confirmation, once there is one.
func (g *confirmations) confirm(cl *mochi.Client, packet uint16, confirmed <-chan struct{}) {
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

// perch waits a while for a connection of Perch that confirms what is published
// on a topic.
func (g *confirmations) perch(topic string) bool {
	late := time.NewTimer(perchIn)
	defer late.Stop()
	for {
		for id, s := range g.server.Topics.Subscribers(topic).Subscriptions {
			if strings.HasPrefix(id, g.prefix) && s.Qos > 0 {
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

// forward sends a command to all its subscribers.
func (g *confirmations) forward(pk packets.Packet) (confirmed chan struct{}) {
	confirmed = make(chan struct{})
	out := pk.Copy(true)
	out.Properties.TopicAlias, out.Properties.TopicAliasFlag = 0, false // between publisher and broker
	g.forwarding.Lock()
	defer g.forwarding.Unlock()
	g.set(confirmed)
	defer g.set(nil)
	_ = g.server.InjectPacket(g.self, out) // what it refuses is not confirmed
	return confirmed
}

func (g *confirmations) set(now chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now = now
}

// OnQosPublish notes a forwarded command on its way to Perch.
func (g *confirmations) OnQosPublish(cl *mochi.Client, pk packets.Packet, _ int64, _ int) {
	if pk.Origin != ownClient || pk.FixedHeader.Dup || !strings.HasPrefix(cl.ID, g.prefix) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := (ticket{cl.ID, pk.PacketID}); g.now != nil && g.waiting[t] == nil {
		g.waiting[t] = g.now
	}
}

// OnPacketRead notes that a client confirms a message. The library's OnQosComplete does not
// tell that from its own confirmation of what the client has published, whose numbers are
// others and begin at 1 as well.
func (g *confirmations) OnPacketRead(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	if pk.FixedHeader.Type == packets.Puback {
		g.confirmed(ticket{cl.ID, pk.PacketID})
	}
	return pk, nil
}

func (g *confirmations) confirmed(t ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	confirmed, waits := g.waiting[t]
	if !waits {
		return
	}
	for other, c := range g.waiting { // one confirmation is enough
		if c == confirmed {
			delete(g.waiting, other)
		}
	}
	close(confirmed)
}
