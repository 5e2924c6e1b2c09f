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

// Limits on commands that wait to be confirmed.
const (
	maxPendingCommands = 256
	perchTimeout       = 10 * time.Second      // how long a command waits for Perch to connect before its publisher is disconnected
	confirmTimeout     = 30 * time.Second      // how long a command waits for Perch's confirmation before its publisher is disconnected
	pollInterval       = 50 * time.Millisecond // time between two checks whether Perch is connected
)

// ownClient is the client ID of the broker's own client, which forwards commands.
const ownClient = "perch.gate"

var (
	errAway   = errors.New("no client of Perch is connected")
	errSilent = errors.New("a command was not confirmed by Perch")
)

// confirmations is a hook that confirms a command with QoS 1 to its publisher only after Perch has confirmed the command.
// Without the hook, the library would confirm a command before forwarding it to Perch.
type confirmations struct {
	mochi.HookBase
	server  *mochi.Server
	base    string          // beginning of Perch's topics
	prefix  string          // prefix of the client IDs of Perch's connections
	self    *mochi.Client   // the client that forwards commands
	over    <-chan struct{} // closed when the broker ends
	pending chan struct{}   // holds a value for each command that waits to be confirmed
	waits   sync.WaitGroup  // counts the goroutines that run confirm

	forwarding sync.Mutex // held while a command is being forwarded; locked before mu
	mu         sync.Mutex
	forwarded  chan struct{}              // confirmation channel of the command that is being forwarded; nil between commands
	waiting    map[delivery]chan struct{} // confirmation channels, each closed when a delivery of its command is confirmed
}

// delivery identifies a command that was sent to a client.
type delivery struct {
	client string // client ID
	packet uint16 // packet ID
}

func newConfirmations(s *mochi.Server, base, prefix string, over <-chan struct{}) *confirmations {
	return &confirmations{server: s, base: base, prefix: prefix, self: s.NewClient(nil, "local", ownClient, true),
		over: over, pending: make(chan struct{}, maxPendingCommands), waiting: map[delivery]chan struct{}{}}
}

// ID returns the name of the hook.
func (*confirmations) ID() string { return "gate" }

// Provides reports whether the hook handles an event.
func (*confirmations) Provides(b byte) bool {
	return b == mochi.OnPublish || b == mochi.OnQosPublish || b == mochi.OnPacketRead
}

// isCommand reports whether a topic is for commands to Perch or for the request notify.
func (g *confirmations) isCommand(topic string) bool {
	rest, isPerch := strings.CutPrefix(topic, g.base+"/")
	return isPerch && (rest == "bridge/request/notify" || strings.HasSuffix(rest, "/set") && strings.Count(rest, "/") == 2)
}

// OnPublish forwards a command, and starts a goroutine that confirms the command to its publisher. It disconnects the
// publisher if Perch does not connect within perchTimeout, if the broker ends before, or if maxPendingCommands wait already.
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
	return pk, packets.ErrRejectPacket // makes the library ignore the packet
}

// confirm waits for Perch's confirmation and then sends the confirmation to the publisher.
func (g *confirmations) confirm(cl *mochi.Client, packet uint16, confirmed <-chan struct{}) {
	late := time.NewTimer(confirmTimeout)
	defer late.Stop()
	select {
	case <-confirmed:
		ack := packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Puback}, PacketID: packet}
		if err := cl.WritePacket(ack); err != nil {
			cl.Stop(err) // the publisher will publish the command again
		}
	case <-late.C:
		cl.Stop(errSilent)
	case <-g.over:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(confirmed)
}

// forget removes the deliveries of a command. mu must be held.
func (g *confirmations) forget(confirmed <-chan struct{}) {
	maps.DeleteFunc(g.waiting, func(_ delivery, c chan struct{}) bool { return c == confirmed })
}

// waitForPerch waits until a connection of Perch has subscribed to a topic with QoS 1 or 2. It returns false after perchTimeout,
// or when the broker ends.
func (g *confirmations) waitForPerch(topic string) bool {
	late := time.NewTimer(perchTimeout)
	defer late.Stop()
	for {
		for id, s := range g.server.Topics.Subscribers(topic).Subscriptions {
			if strings.HasPrefix(id, g.prefix) && s.Qos > 0 {
				return true
			}
		}
		select {
		case <-time.After(pollInterval):
		case <-late.C:
			return false
		case <-g.over:
			return false
		}
	}
}

// forward sends a command to all subscribers. It returns a channel that is closed when Perch has confirmed the command.
func (g *confirmations) forward(pk packets.Packet) (confirmed chan struct{}) {
	confirmed = make(chan struct{})
	out := pk.Copy(true)
	out.Properties.TopicAlias, out.Properties.TopicAliasFlag = 0, false // the alias is valid only on the publisher's connection
	g.forwarding.Lock()
	defer g.forwarding.Unlock()
	g.setForwarded(confirmed)
	defer g.setForwarded(nil)
	_ = g.server.InjectPacket(g.self, out) // after an error the command is never confirmed
	return confirmed
}

// setForwarded sets the confirmation channel of the command that is being forwarded.
func (g *confirmations) setForwarded(confirmed chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forwarded = confirmed
}

// OnQosPublish records the delivery of a forwarded command to Perch.
func (g *confirmations) OnQosPublish(cl *mochi.Client, pk packets.Packet, _ int64, _ int) {
	if pk.Origin != ownClient || pk.FixedHeader.Dup || !strings.HasPrefix(cl.ID, g.prefix) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if d := (delivery{cl.ID, pk.PacketID}); g.forwarded != nil && g.waiting[d] == nil {
		g.waiting[d] = g.forwarded
	}
}

// OnPacketRead handles the confirmation of a delivery. The library's OnQosComplete cannot be used, because it is also called
// when the broker confirms a message of the client, and such a message may have the packet ID of a delivery: the IDs of the
// two directions are independent and both begin at 1.
func (g *confirmations) OnPacketRead(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	if pk.FixedHeader.Type != packets.Puback {
		return pk, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if confirmed, waits := g.waiting[delivery{cl.ID, pk.PacketID}]; waits {
		g.forget(confirmed) // the first confirmation is enough
		close(confirmed)
	}
	return pk, nil
}
