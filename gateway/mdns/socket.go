package mdns

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"
)

const (
	port      = 5353 // of mDNS (RFC 6762 section 2). A query from any other is a legacy one (section 6.7)
	maxPacket = 9000 // bytes of the longest message (section 17)
)

func group() *net.UDPAddr { return &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: port} }

// conn is a multicast socket.
type conn interface {
	// read returns the index of the interface a packet came by, 0 where it was not sent to the group. RFC 6762 section 11:
	// what is not from the local link is ignored; a packet to the group cannot have passed a router.
	read(buf []byte) (n, ifIndex int, from *net.UDPAddr, err error)
	// write sends to the group where to is nil.
	write(b []byte, ifIndex int, to *net.UDPAddr) error
	Close() error
}

// conn4 is a conn of IPv4, over which every mDNS participant speaks of its IPv6 addresses, too.
type conn4 struct{ *ipv4.PacketConn }

func (c conn4) read(buf []byte) (int, int, *net.UDPAddr, error) {
	n, cm, from, err := c.ReadFrom(buf)
	udp, ok := from.(*net.UDPAddr)
	if !ok || cm == nil || !cm.Dst.Equal(group().IP) {
		return n, 0, udp, err
	}
	return n, cm.IfIndex, udp, err
}

func (c conn4) write(b []byte, ifIndex int, to *net.UDPAddr) error {
	_, err := c.WriteTo(b, &ipv4.ControlMessage{IfIndex: ifIndex}, cmp.Or(to, group()))
	return err
}

// packet is a message that reached the mDNS group on one of our links.
type packet struct {
	msg  *dns.Msg
	from *net.UDPAddr
	link link
}

// legacy reports whether the querier is no mDNS participant and takes only a conventional answer (RFC 6762 section 6.7).
func (p packet) legacy() bool { return p.from.Port != port }

// socket receives and sends mDNS on some links. Its reader goroutine ends with close, which waits for it.
type socket struct {
	links   []link
	packets chan packet
	failed  chan error // why the reader gave up

	conn   conn
	done   chan struct{}
	reader sync.WaitGroup
}

// listen opens the mDNS port and joins the group on the links. Go binds a multicast address to the wildcard and shares the
// port, so the system's responder is not disturbed.
func listen(links []link) (*socket, error) {
	udp, err := net.ListenUDP("udp4", group())
	if err != nil {
		return nil, fmt.Errorf("listen for multicast: %w", err)
	}
	c := ipv4.NewPacketConn(udp)
	// RFC 6762 section 11: hop limit 255, which shows an old receiver that no router was passed.
	_ = c.SetMulticastTTL(255)
	_ = c.SetTTL(255)
	_ = c.SetControlMessage(ipv4.FlagInterface|ipv4.FlagDst, true)
	joined := 0
	for _, l := range links {
		if err = c.JoinGroup(&l.Interface, group()); err == nil {
			joined++
		}
	}
	if joined == 0 {
		_ = c.Close()
		return nil, fmt.Errorf("listen for multicast: %w", err)
	}
	return newSocket(conn4{c}, links), nil
}

func newSocket(c conn, links []link) *socket {
	s := &socket{links: links, packets: make(chan packet, 32), failed: make(chan error, 1), conn: c, done: make(chan struct{})}
	s.reader.Go(s.read)
	return s
}

func (s *socket) read() {
	buf := make([]byte, maxPacket)
	for {
		n, ifIndex, from, err := s.conn.read(buf)
		if err != nil {
			s.failed <- fmt.Errorf("hear multicast: %w", err)
			return
		}
		i := slices.IndexFunc(s.links, func(l link) bool { return l.Index == ifIndex })
		if i < 0 {
			continue // a shared port also receives from the links that other programs joined
		}
		if msg := parse(buf[:n]); msg != nil {
			select {
			case s.packets <- packet{msg, from, s.links[i]}:
			case <-s.done:
				return
			}
		}
	}
}

// send sends a message by a link, to the group where to is nil. What cannot be sent is lost, as any packet may be: the
// link may be on its way down, and the next look at the interfaces will show it.
func (s *socket) send(msg *dns.Msg, l link, to *net.UDPAddr) {
	if b, err := msg.Pack(); err == nil {
		_ = s.conn.write(b, l.Index, to)
	}
}

// multicast sends on every link the message made for it.
func (s *socket) multicast(build func(link) *dns.Msg) {
	for _, l := range s.links {
		s.send(build(l), l, nil)
	}
}

func (s *socket) close() {
	close(s.done)
	_ = s.conn.Close()
	s.reader.Wait()
}
