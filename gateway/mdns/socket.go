package mdns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

const (
	port      = 5353 // UDP port of mDNS (RFC 6762 section 2); a query from another port is a legacy query (section 6.7)
	maxPacket = 9000 // maximum size of a message in bytes (RFC 6762 section 17)
)

// conn is a multicast socket of the network "udp4" or "udp6".
type conn struct {
	*net.UDPConn
	network string
}

// group returns the address of the mDNS multicast group.
func (c conn) group() *net.UDPAddr {
	return &net.UDPAddr{IP: net.ParseIP(map[string]string{"udp4": "224.0.0.251", "udp6": "ff02::fb"}[c.network]), Port: port}
}

// join opens the socket and joins the group on the links. It returns an error if it could join the group on no link.
// For a multicast address, Go binds the wildcard address and shares the port, so the system's responder can use the
// same port. The hop limit of 255 shows old receivers that a packet has not passed a router (RFC 6762 section 11).
func (c conn) join(links []link) (_ conn, err error) {
	if c.UDPConn, err = net.ListenUDP(c.network, c.group()); err != nil {
		return c, err
	}
	p4, p6 := ipv4.NewPacketConn(c), ipv6.NewPacketConn(c)
	join := p4.JoinGroup
	if c.network == "udp4" {
		err = errors.Join(p4.SetMulticastTTL(255), p4.SetTTL(255), p4.SetControlMessage(ipv4.FlagInterface|ipv4.FlagDst, true))
	} else {
		join = p6.JoinGroup
		err = errors.Join(p6.SetMulticastHopLimit(255), p6.SetHopLimit(255), p6.SetControlMessage(ipv6.FlagInterface|ipv6.FlagDst, true))
	}
	joined := false
	for _, l := range links {
		failed := join(&l.Interface, c.group())
		err, joined = errors.Join(err, failed), joined || failed == nil
	}
	if !joined {
		return c, errors.Join(err, c.Close())
	}
	return c, nil
}

// write sends a message on a link, to the group if to is nil. It ignores errors. They occur if to is an address of the
// other IP version, or after a link has gone down, which the next check of the interfaces detects.
func (c conn) write(msg *dns.Msg, l link, to *net.UDPAddr) {
	control := (&ipv4.ControlMessage{IfIndex: l.Index}).Marshal
	if c.network == "udp6" {
		control = (&ipv6.ControlMessage{IfIndex: l.Index}).Marshal
	}
	if b, err := msg.Pack(); err == nil {
		_, _, _ = c.WriteMsgUDP(b, control(), cmp.Or(to, c.group()))
	}
}

// packet is a message that was received on one of the links.
type packet struct {
	msg  *dns.Msg
	from *net.UDPAddr
	link link
}

// isLegacy reports whether the sender does not implement mDNS, and accepts only a conventional DNS response (RFC 6762
// section 6.7).
func (p packet) isLegacy() bool { return p.from.Port != port }

// socket receives and sends mDNS messages on some links.
type socket struct {
	links   []link
	packets chan packet
	failed  chan error                                  // the error of each reading goroutine that has ended; has room for all
	send    func(msg *dns.Msg, l link, to *net.UDPAddr) // to the group if to is nil
	close   func()                                      // ends the reading goroutines and waits for them
}

// listen joins the mDNS groups of IPv4 and IPv6 on the links. It returns an error if it can join neither.
func listen(links []link) (*socket, error) {
	s := &socket{links: links, packets: make(chan packet, 128), failed: make(chan error, 2)}
	var conns []conn
	var failed error
	var readers sync.WaitGroup
	for _, network := range [...]string{"udp4", "udp6"} {
		c, err := conn{network: network}.join(links)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		conns = append(conns, c)
		readers.Go(func() { s.failed <- fmt.Errorf("receive multicast: %w", s.read(c)) })
	}
	if len(conns) == 0 {
		return nil, fmt.Errorf("listen for multicast: %w", failed)
	}
	s.send = func(msg *dns.Msg, l link, to *net.UDPAddr) {
		for _, c := range conns {
			c.write(msg, l, to)
		}
	}
	s.close = func() {
		for _, c := range conns {
			_ = c.Close()
		}
		readers.Wait()
	}
	return s, nil
}

// read queues received packets until the socket fails. Packets from outside of the local link must be ignored (RFC 6762
// section 11), and routers do not forward packets to the group; read therefore ignores packets to any other address. It
// also ignores packets from other links, which the shared port receives if other programs have joined the group there.
func (s *socket) read(c conn) error {
	buf, oob, group := make([]byte, maxPacket), make([]byte, 128), c.group().IP
	for {
		n, oobn, _, from, err := c.ReadMsgUDP(buf, oob)
		if err != nil {
			return err
		}
		var cm4 ipv4.ControlMessage
		var cm6 ipv6.ControlMessage
		_, _ = cm4.Parse(oob[:oobn]), cm6.Parse(oob[:oobn]) // each parses only the messages of its family
		i := slices.IndexFunc(s.links, func(l link) bool { return l.Index == cm4.IfIndex+cm6.IfIndex })
		msg := parse(buf[:n])
		if i >= 0 && msg != nil && (cm4.Dst.Equal(group) || cm6.Dst.Equal(group)) {
			select {
			case s.packets <- packet{msg, from, s.links[i]}:
			default: // the channel is full, because nobody calls receive at present; the packet is dropped
			}
		}
	}
}

// receive calls handle with each packet for the duration d. It returns early with an error of handle, of ctx, or of a
// reading goroutine.
func (s *socket) receive(ctx context.Context, d time.Duration, handle func(packet) error) error {
	for over := time.After(d); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.failed:
			return err
		case <-over:
			return nil
		case p := <-s.packets:
			if err := handle(p); err != nil {
				return err
			}
		}
	}
}

// multicast sends a message on every link. build returns the message for a link.
func (s *socket) multicast(build func(link) *dns.Msg) {
	for _, l := range s.links {
		s.send(build(l), l, nil)
	}
}

// ErrNoMulticast is the error if no network interface is up, has an address, and supports multicast. Nothing can then be
// found or announced by name.
var ErrNoMulticast = errors.New("no network interface carries multicast")

// link is a network interface and the addresses that are announced on it. The addresses of other interfaces are not
// announced on it, because they cannot be reached there.
type link struct {
	net.Interface
	addrs []netip.Addr // IPv4 first; link-local IPv6 addresses only if there are no routable IPv6 addresses
}

// equal reports whether two links have the same interface and addresses.
func (l link) equal(o link) bool {
	return l.Index == o.Index && l.Name == o.Name && slices.Equal(l.addrs, o.addrs)
}

// machineLinks returns the links to use: those of the named interfaces, or of all suitable interfaces if names is
// empty. It returns an error if no link can be used.
func machineLinks(names []string) ([]link, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	var links []link
	for _, ifi := range chooseInterfaces(interfaces, names) {
		addrs, _ := ifi.Addrs() // empty if the interface was removed after net.Interfaces
		if l := newLink(ifi, addrs); len(l.addrs) > 0 {
			links = append(links, l)
		}
	}
	switch {
	case len(links) > 0:
		return links, nil
	case len(names) > 0:
		return nil, fmt.Errorf("%w: none of %s is up with an address; see mdns.interfaces", ErrNoMulticast, strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("%w: none is up with an address", ErrNoMulticast)
}

// Addresses returns the addresses of this machine on the named interfaces, or on the interfaces that are announced by
// default if names is empty.
func Addresses(names []string) []netip.Addr {
	links, _ := machineLinks(names) // none without a network
	return announced(links)
}

// chooseInterfaces returns the named interfaces that are up. If names is empty, it returns all interfaces that are up,
// support multicast, are neither loopback nor point-to-point, and do not belong to a container, a virtual machine or a tunnel.
func chooseInterfaces(all []net.Interface, names []string) []net.Interface {
	const usable = net.FlagUp | net.FlagMulticast
	return slices.DeleteFunc(slices.Clone(all), func(i net.Interface) bool {
		if len(names) > 0 {
			return i.Flags&net.FlagUp == 0 || !slices.Contains(names, i.Name)
		}
		return i.Flags&usable != usable || i.Flags&(net.FlagLoopback|net.FlagPointToPoint) != 0 || isVirtual(i.Name)
	})
}

// isVirtual reports whether the name of an interface belongs to a container, a virtual machine or a tunnel. A bridge such
// as br0 is not virtual, because it may be the only interface of the machine; the bridges of Docker are named br-<hex>.
func isVirtual(name string) bool {
	prefixes := [...]string{
		"docker", "br-", "veth", "hassio", "podman", "cni", "flannel", "cali", "kube", "weave", // containers
		"virbr", "vnet", "vmnet", "vboxnet", "lxc", "lxd", "incus", "tap", // virtual machines
		"tailscale", "zt", "wg", "tun", "utun", "dummy", "awdl", "llw", // tunnels, and Apple's peer-to-peer radios
	}
	return slices.ContainsFunc(prefixes[:], func(p string) bool { return strings.HasPrefix(name, p) })
}

// newLink returns the link of an interface. It selects the same addresses as zeroconf and avahi, so that all three announce
// the same.
func newLink(ifi net.Interface, addrs []net.Addr) link {
	isLocal := func(ip netip.Addr) bool { return ip.Is6() && ip.IsLinkLocalUnicast() }
	ips := slices.DeleteFunc(parseAddrs(addrs), func(ip netip.Addr) bool { return !ip.IsGlobalUnicast() && !ip.IsLinkLocalUnicast() })
	if slices.ContainsFunc(ips, func(ip netip.Addr) bool { return ip.Is6() && !isLocal(ip) }) {
		ips = slices.DeleteFunc(ips, isLocal)
	}
	slices.SortStableFunc(ips, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	return link{ifi, ips}
}

// announced returns the addresses of all links.
func announced(links []link) (ips []netip.Addr) {
	for _, l := range links {
		ips = append(ips, l.addrs...)
	}
	return ips
}

// ownAddresses returns the addresses of all interfaces of this machine, so that a record with any other address is
// known to come from another machine.
func ownAddresses(links []link) []netip.Addr {
	addrs, _ := net.InterfaceAddrs() // after an error, only the addresses of links are returned
	return append(parseAddrs(addrs), announced(links)...)
}

// parseAddrs returns the addresses of interfaces without masks and zones.
func parseAddrs(addrs []net.Addr) (ips []netip.Addr) {
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			ips = append(ips, p.Addr().Unmap().WithZone(""))
		}
	}
	return ips
}
