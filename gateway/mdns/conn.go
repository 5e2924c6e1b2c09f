package mdns

import (
	"fmt"
	"net"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// port is the mDNS port (RFC 6762 section 2). A query from any other is a legacy one (section 6.7).
const port = 5353

func group4() *net.UDPAddr { return &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: port} }
func group6() *net.UDPAddr { return &net.UDPAddr{IP: net.ParseIP("ff02::fb"), Port: port} }

// conn is a multicast socket of one address family.
type conn interface {
	// read returns the interface a packet came by and the address it was sent to.
	read(buf []byte) (n, ifIndex int, to net.IP, from net.Addr, err error)
	write(b []byte, ifIndex int, to net.Addr) error
	join(ifi *net.Interface) error
	group() *net.UDPAddr
	Close() error
}

type conn4 struct{ *ipv4.PacketConn }
type conn6 struct{ *ipv6.PacketConn }

// open4 opens the mDNS port for IPv4. Go binds a multicast address to the wildcard and shares the port, so the system's
// responder is not disturbed.
func open4() (*ipv4.PacketConn, error) {
	udp, err := net.ListenUDP("udp4", group4())
	if err != nil {
		return nil, fmt.Errorf("open IPv4 port %d: %w", port, err)
	}
	c := ipv4.NewPacketConn(udp)
	// RFC 6762 section 11: hop limit 255, which shows an old receiver that no router was passed.
	_ = c.SetMulticastTTL(255)
	_ = c.SetTTL(255)
	_ = c.SetControlMessage(ipv4.FlagInterface|ipv4.FlagDst, true)
	return c, nil
}

// open6 is open4 for IPv6.
func open6() (*ipv6.PacketConn, error) {
	udp, err := net.ListenUDP("udp6", group6())
	if err != nil {
		return nil, fmt.Errorf("open IPv6 port %d: %w", port, err)
	}
	c := ipv6.NewPacketConn(udp)
	_ = c.SetMulticastHopLimit(255)
	_ = c.SetHopLimit(255)
	_ = c.SetControlMessage(ipv6.FlagInterface|ipv6.FlagDst, true)
	return c, nil
}

func (c conn4) group() *net.UDPAddr           { return group4() }
func (c conn6) group() *net.UDPAddr           { return group6() }
func (c conn4) join(ifi *net.Interface) error { return c.JoinGroup(ifi, group4()) }
func (c conn6) join(ifi *net.Interface) error { return c.JoinGroup(ifi, group6()) }

func (c conn4) read(buf []byte) (int, int, net.IP, net.Addr, error) {
	n, cm, from, err := c.ReadFrom(buf)
	if cm == nil {
		return n, 0, nil, from, err
	}
	return n, cm.IfIndex, cm.Dst, from, err
}

func (c conn6) read(buf []byte) (int, int, net.IP, net.Addr, error) {
	n, cm, from, err := c.ReadFrom(buf)
	if cm == nil {
		return n, 0, nil, from, err
	}
	return n, cm.IfIndex, cm.Dst, from, err
}

func (c conn4) write(b []byte, ifIndex int, to net.Addr) error {
	_, err := c.WriteTo(b, &ipv4.ControlMessage{IfIndex: ifIndex}, to)
	return err
}

func (c conn6) write(b []byte, ifIndex int, to net.Addr) error {
	_, err := c.WriteTo(b, &ipv6.ControlMessage{IfIndex: ifIndex}, to)
	return err
}
