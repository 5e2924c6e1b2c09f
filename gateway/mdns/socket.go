package mdns

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/miekg/dns"
)

// maxPacket is the longest mDNS message (RFC 6762 section 17).
const maxPacket = 9000

// packet is a message that reached the mDNS group on one of our links.
type packet struct {
	msg  *dns.Msg
	from *net.UDPAddr
	link link
	via  conn
}

// legacy reports whether the querier is no mDNS participant and takes only a conventional answer (RFC 6762 section 6.7).
func (p packet) legacy() bool { return p.from.Port != port }

// overV4 reports whether the packet came over IPv4.
func (p packet) overV4() bool { return p.from.IP.To4() != nil }

// socket receives and sends mDNS on some links. Its reader goroutines end with close, which waits for them.
type socket struct {
	links   map[int]link
	packets chan packet
	failed  chan error // a reader that gave up; there is one slot for each

	conns   []conn
	done    chan struct{}
	readers sync.WaitGroup
}

// listen joins the mDNS groups on the links, in both families where both are there.
func listen(links []link) (*socket, error) {
	s := newSocket(links)
	c4, err4 := open4()
	if err4 == nil {
		err4 = s.add(conn4{c4}, links)
	}
	c6, err6 := open6()
	if err6 == nil {
		err6 = s.add(conn6{c6}, links)
	}
	if len(s.conns) == 0 {
		return nil, fmt.Errorf("listen for multicast: %w", errors.Join(err4, err6))
	}
	s.start()
	return s, nil
}

func newSocket(links []link) *socket {
	s := &socket{links: map[int]link{}, packets: make(chan packet, 32), failed: make(chan error, 2), done: make(chan struct{})}
	for _, l := range links {
		s.links[l.Index] = l
	}
	return s
}

func (s *socket) start() {
	for _, c := range s.conns {
		s.readers.Go(func() { s.read(c) })
	}
}

// add keeps a connection that could join at least one link and closes it otherwise.
func (s *socket) add(c conn, links []link) error {
	var last error
	joined := 0
	for _, l := range links {
		if err := c.join(&l.Interface); err != nil {
			last = fmt.Errorf("join on %s: %w", l.Name, err)
			continue
		}
		joined++
	}
	if joined == 0 {
		_ = c.Close()
		return last
	}
	s.conns = append(s.conns, c)
	return nil
}

func (s *socket) read(c conn) {
	buf := make([]byte, maxPacket)
	for {
		n, ifIndex, to, from, err := c.read(buf)
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				s.failed <- fmt.Errorf("hear multicast: %w", err)
			}
			return
		}
		// A shared port also receives from the links other programs joined, and unicast from anywhere. RFC 6762 section 11:
		// what is not from the local link is ignored; the group's address cannot have passed a router.
		l, ours := s.links[ifIndex]
		udp, ok := from.(*net.UDPAddr)
		if !ours || !ok || !to.Equal(c.group().IP) {
			continue
		}
		msg := parse(buf[:n])
		if msg == nil {
			continue
		}
		select {
		case s.packets <- packet{msg, udp, l, c}:
		case <-s.done:
			return
		}
	}
}

// multicast sends on every link the message made for it; nil makes none. What cannot be sent is lost, as any packet may
// be: the link may be on its way down, and the next look at the interfaces will show it.
func (s *socket) multicast(build func(link) *dns.Msg) {
	for _, l := range s.links {
		msg := build(l)
		if msg == nil {
			continue
		}
		b, err := msg.Pack()
		if err != nil {
			continue
		}
		for _, c := range s.conns {
			_ = c.write(b, l.Index, c.group())
		}
	}
}

// reply answers a packet: to its sender alone when to is not nil, else to the group.
func (s *socket) reply(p packet, msg *dns.Msg, to *net.UDPAddr) {
	b, err := msg.Pack()
	if err != nil {
		return
	}
	if to == nil {
		to = p.via.group()
	}
	_ = p.via.write(b, p.link.Index, to)
}

func (s *socket) close() {
	close(s.done)
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.readers.Wait()
}
