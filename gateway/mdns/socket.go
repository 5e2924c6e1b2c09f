package mdns

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

const (
	port      = 5353 // of mDNS (RFC 6762 section 2). A query from any other is a legacy one (section 6.7)
	maxPacket = 9000 // bytes of the longest message (section 17)
)

func group4() *net.UDPAddr { return &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: port} }
func group6() *net.UDPAddr { return &net.UDPAddr{IP: net.ParseIP("ff02::fb"), Port: port} }

// conn is a multicast socket of one address family.
type conn interface {
	// read returns the index of the interface a packet came by, 0 where it was not sent to the group. RFC 6762 section 11:
	// what is not from the local link is ignored; a packet to the group cannot have passed a router.
	read(buf []byte) (n, ifIndex int, from net.Addr, err error)
	// write sends to the group where to is nil.
	write(b []byte, ifIndex int, to *net.UDPAddr) error
	join(*net.Interface) error
	Close() error
}

type (
	conn4 struct{ *ipv4.PacketConn }
	conn6 struct{ *ipv6.PacketConn }
)

// open4 opens the mDNS port for IPv4. Go binds a multicast address to the wildcard and shares the port, so the system's
// responder is not disturbed. RFC 6762 section 11: hop limit 255, which shows an old receiver that no router was passed.
func open4() (conn, error) {
	udp, err := net.ListenUDP("udp4", group4())
	if err != nil {
		return nil, err
	}
	c := ipv4.NewPacketConn(udp)
	return conn4{c}, errors.Join(c.SetMulticastTTL(255), c.SetTTL(255), c.SetControlMessage(ipv4.FlagInterface|ipv4.FlagDst, true))
}

// open6 is open4 for IPv6.
func open6() (conn, error) {
	udp, err := net.ListenUDP("udp6", group6())
	if err != nil {
		return nil, err
	}
	c := ipv6.NewPacketConn(udp)
	return conn6{c}, errors.Join(c.SetMulticastHopLimit(255), c.SetHopLimit(255), c.SetControlMessage(ipv6.FlagInterface|ipv6.FlagDst, true))
}

func (c conn4) join(ifi *net.Interface) error { return c.JoinGroup(ifi, group4()) }
func (c conn6) join(ifi *net.Interface) error { return c.JoinGroup(ifi, group6()) }

func (c conn4) read(buf []byte) (n, ifIndex int, from net.Addr, err error) {
	n, cm, from, err := c.ReadFrom(buf)
	if cm != nil && cm.Dst.Equal(group4().IP) {
		ifIndex = cm.IfIndex
	}
	return n, ifIndex, from, err
}

func (c conn6) read(buf []byte) (n, ifIndex int, from net.Addr, err error) {
	n, cm, from, err := c.ReadFrom(buf)
	if cm != nil && cm.Dst.Equal(group6().IP) {
		ifIndex = cm.IfIndex
	}
	return n, ifIndex, from, err
}

func (c conn4) write(b []byte, ifIndex int, to *net.UDPAddr) error {
	_, err := c.WriteTo(b, &ipv4.ControlMessage{IfIndex: ifIndex}, cmp.Or(to, group4()))
	return err
}

func (c conn6) write(b []byte, ifIndex int, to *net.UDPAddr) error {
	_, err := c.WriteTo(b, &ipv6.ControlMessage{IfIndex: ifIndex}, cmp.Or(to, group6()))
	return err
}

// packet is a message that reached the mDNS group on one of our links.
type packet struct {
	msg  *dns.Msg
	from *net.UDPAddr
	link link
	via  conn
}

// legacy reports whether the querier is no mDNS participant and takes only a conventional answer (RFC 6762 section 6.7).
func (p packet) legacy() bool { return p.from.Port != port }

// reply sends to the group where to is nil.
func (p packet) reply(msg *dns.Msg, to *net.UDPAddr) {
	if b, err := msg.Pack(); err == nil {
		_ = p.via.write(b, p.link.Index, to)
	}
}

// socket receives and sends mDNS on some links. Its reader goroutines end with close, which waits for them.
type socket struct {
	links   []link
	packets chan packet
	failed  chan error // a reader that gave up; there is one slot for each

	conns   []conn
	done    chan struct{}
	readers sync.WaitGroup
}

// listen joins the mDNS groups on the links, in both families where both are there.
func listen(links []link) (*socket, error) {
	var conns []conn
	var failed error
	for _, open := range []func() (conn, error){open4, open6} {
		c, err := open()
		if c == nil {
			failed = errors.Join(failed, err)
			continue
		}
		joined := 0
		for _, l := range links {
			if err = c.join(&l.Interface); err == nil {
				joined++
			}
		}
		if joined == 0 {
			failed = errors.Join(failed, err, c.Close())
			continue
		}
		conns = append(conns, c)
	}
	if len(conns) == 0 {
		return nil, fmt.Errorf("listen for multicast: %w", failed)
	}
	return newSocket(links, conns...), nil
}

func newSocket(links []link, conns ...conn) *socket {
	s := &socket{links: links, packets: make(chan packet, 32), failed: make(chan error, len(conns)), conns: conns, done: make(chan struct{})}
	for _, c := range conns {
		s.readers.Go(func() { s.read(c) })
	}
	return s
}

func (s *socket) read(c conn) {
	buf := make([]byte, maxPacket)
	for {
		n, ifIndex, from, err := c.read(buf)
		if err != nil {
			s.failed <- fmt.Errorf("hear multicast: %w", err)
			return
		}
		i := slices.IndexFunc(s.links, func(l link) bool { return l.Index == ifIndex })
		udp, ok := from.(*net.UDPAddr)
		if i < 0 || !ok {
			continue // a shared port also receives from the links that other programs joined
		}
		if msg := parse(buf[:n]); msg != nil {
			select {
			case s.packets <- packet{msg, udp, s.links[i], c}:
			case <-s.done:
				return
			}
		}
	}
}

// multicast sends on every link the message made for it. What cannot be sent is lost, as any packet may be: the link may
// be on its way down, and the next look at the interfaces will show it.
func (s *socket) multicast(build func(link) *dns.Msg) {
	for _, l := range s.links {
		for _, c := range s.conns {
			packet{link: l, via: c}.reply(build(l), nil)
		}
	}
}

func (s *socket) close() {
	close(s.done)
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.readers.Wait()
}
