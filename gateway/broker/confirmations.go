package broker

import (
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// Limits of commands that wait to be confirmed.
const (
	mostPendingCommands = 256
	perchIn             = 10 * time.Second // Perch must be connected by then, or the publisher is disconnected
	confirmIn           = 30 * time.Second
	pollEvery           = 50 * time.Millisecond
	ownClient           = "perch.gate"
)

var (
	errAway   = errors.New("no connection of Perch takes commands")
	errSilent = errors.New("a command was not confirmed by Perch")
)

// confirmations is a hook that confirms commands to their publishers (QoS 1) after Perch has
// confirmed them. The library would do so even before it forwards them.
type confirmations struct {
	mochi.HookBase
	server  *mochi.Server
	base    string
	prefix  string          // of the client ids of Perch's connections
	self    *mochi.Client   // forwards commands
	over    <-chan struct{} // closed with the broker
	pending chan struct{}   // holds one for each command that waits
	waits   sync.WaitGroup

	forwarding sync.Mutex // one at a time
	mu         sync.Mutex
	now        chan struct{}              // of the command that is being forwarded
	waiting    map[delivery]chan struct{} // closed by the confirmation
}

// delivery is a command sent to one client.
type delivery struct {
	client string
	packet uint16
}

func newConfirmations(s *mochi.Server, base, prefix string, over <-chan struct{}) *confirmations {
	return &confirmations{server: s, base: base, prefix: prefix, self: s.NewClient(nil, "local", ownClient, true),
		over: over, pending: make(chan struct{}, mostPendingCommands), waiting: map[delivery]chan struct{}{}}
}

// ID is the hook's name within the broker.
func (*confirmations) ID() string { return "gate" }

// Provides reports which events the hook handles.
func (*confirmations) Provides(b byte) bool {
	return b == mochi.OnPublish || b == mochi.OnQosPublish || b == mochi.OnPacketRead
}

// isCommand reports whether a topic is a command to Perch.
func (g *confirmations) isCommand(topic string) bool {
	rest, ours := strings.CutPrefix(topic, g.base+"/")
	return ours && (rest == "bridge/request/notify" || strings.HasSuffix(rest, "/set") && strings.Count(rest, "/") == 2)
}

// OnPublish forwards a command, and has its publisher wait for the confirmation.
func (g *confirmations) OnPublish(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	if cl.Net.Inline || pk.FixedHeader.Qos != 1 || !g.isCommand(pk.TopicName) {
		return pk, nil
	}
	if !g.waitForPerch(pk.TopicName) {
		cl.Stop(errAway)
		return pk, packets.ErrRejectPacket
	}
	select {
	case g.pending <- struct{}{}:
	default:
		cl.Stop(packets.ErrQuotaExceeded)
		return pk, packets.ErrRejectPacket
	}
	confirmed := g.forward(pk)
	g.waits.Go(func() {
		defer func() { <-g.pending }()
		g.confirm(cl, pk.PacketID, confirmed)
	})
	return pk, packets.ErrRejectPacket // the library does no more with it
}

// confirm sends the publisher its confirmation after Perch's.
func (g *confirmations) confirm(cl *mochi.Client, packet uint16, confirmed <-chan struct{}) {
	late := time.NewTimer(confirmIn)
	defer late.Stop()
	select {
	case <-confirmed:
		ack := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Puback}, PacketID: packet}
		if err := cl.WritePacket(ack); err != nil {
			cl.Stop(err) // it publishes again
		}
	case <-late.C:
		cl.Stop(errSilent)
	case <-g.over:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(confirmed)
}

// forget removes the deliveries of a command. The lock must be held.
func (g *confirmations) forget(confirmed <-chan struct{}) {
	maps.DeleteFunc(g.waiting, func(_ delivery, c chan struct{}) bool { return c == confirmed })
}

// waitForPerch waits for a connection of Perch that confirms messages of a topic, and reports
// whether there is one in time.
func (g *confirmations) waitForPerch(topic string) bool {
	late := time.NewTimer(perchIn)
	defer late.Stop()
	for {
		for id, s := range g.server.Topics.Subscribers(topic).Subscriptions {
			if strings.HasPrefix(id, g.prefix) && s.Qos > 0 {
				return true
			}
		}
		select {
		case <-time.After(pollEvery):
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
	_ = g.server.InjectPacket(g.self, out) // a refused command is not confirmed
	return confirmed
}

func (g *confirmations) set(now chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now = now
}

// OnQosPublish records the delivery of a forwarded command to Perch.
func (g *confirmations) OnQosPublish(cl *mochi.Client, pk packets.Packet, _ int64, _ int) {
	if pk.Origin != ownClient || pk.FixedHeader.Dup || !strings.HasPrefix(cl.ID, g.prefix) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if d := (delivery{cl.ID, pk.PacketID}); g.now != nil && g.waiting[d] == nil {
		g.waiting[d] = g.now
	}
}

// OnPacketRead handles a client's confirmation of a message. The library's OnQosComplete does not
// distinguish it from its own confirmation of a message of the client, whose numbers are
// independent and begin at 1 as well.
func (g *confirmations) OnPacketRead(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	if pk.FixedHeader.Type != packets.Puback {
		return pk, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if confirmed, waits := g.waiting[delivery{cl.ID, pk.PacketID}]; waits {
		g.forget(confirmed) // one confirmation is enough
		close(confirmed)
	}
	return pk, nil
}
