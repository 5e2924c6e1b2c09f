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
	port      = 5353 // of mDNS (RFC 6762 section 2). A query from any other is a legacy one (section 6.7)
	maxPacket = 9000 // bytes of the longest message (section 17)
)

// conn is a multicast socket of the network "udp4" or "udp6".
type conn struct {
	*net.UDPConn
	network string
}

func (c conn) group() *net.UDPAddr {
	return &net.UDPAddr{IP: net.ParseIP(map[string]string{"udp4": "224.0.0.251", "udp6": "ff02::fb"}[c.network]), Port: port}
}

// join opens the socket and joins the group on the links; it fails if no link can. Go binds a multicast address to the
// wildcard and shares the port, so the system's responder is not disturbed. RFC 6762 section 11: hop limit 255, which
// shows an old receiver that no router was passed.
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

// write sends on a link, to the group if to is nil. A message that cannot be sent, as to an address of the other family,
// is lost as any packet may be: the link may be going down, which the next poll of the interfaces shows.
func (c conn) write(msg *dns.Msg, l link, to *net.UDPAddr) {
	control := (&ipv4.ControlMessage{IfIndex: l.Index}).Marshal
	if c.network == "udp6" {
		control = (&ipv6.ControlMessage{IfIndex: l.Index}).Marshal
	}
	if b, err := msg.Pack(); err == nil {
		_, _, _ = c.WriteMsgUDP(b, control(), cmp.Or(to, c.group()))
	}
}

// packet is a message that reached the mDNS group on one of our links.
type packet struct {
	msg  *dns.Msg
	from *net.UDPAddr
	link link
}

// legacy reports whether the querier is no mDNS participant and takes only a conventional answer (RFC 6762 section 6.7).
func (p packet) legacy() bool { return p.from.Port != port }

// socket receives and sends mDNS on some links.
type socket struct {
	links   []link
	packets chan packet
	failed  chan error                                  // from readers that ended; there is room for all
	send    func(msg *dns.Msg, l link, to *net.UDPAddr) // to the group if to is nil
	close   func()                                      // ends the readers and waits for them
}

// listen joins the mDNS groups on the links, of IPv4, IPv6 or both, as the machine can.
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
		readers.Go(func() { s.failed <- fmt.Errorf("hear multicast: %w", s.read(c)) })
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

// read queues packets until the socket fails. RFC 6762 section 11: packets from outside the local link are ignored; one
// sent to the group cannot have passed a router. A shared port also receives from the links that other programs joined.
func (s *socket) read(c conn) error {
	buf, oob, group := make([]byte, maxPacket), make([]byte, 128), c.group().IP
	for {
		n, oobn, _, from, err := c.ReadMsgUDP(buf, oob)
		if err != nil {
			return err
		}
		var cm4 ipv4.ControlMessage
		var cm6 ipv6.ControlMessage
		_, _ = cm4.Parse(oob[:oobn]), cm6.Parse(oob[:oobn]) // each reads only messages of its family
		i := slices.IndexFunc(s.links, func(l link) bool { return l.Index == cm4.IfIndex+cm6.IfIndex })
		msg := parse(buf[:n])
		if i >= 0 && msg != nil && (cm4.Dst.Equal(group) || cm6.Dst.Equal(group)) {
			select {
			case s.packets <- packet{msg, from, s.links[i]}:
			default: // no one receives
			}
		}
	}
}

// receive hands packets to handle for d. It returns early with an error: handle's, ctx's or a failed reader's.
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

// multicast sends on every link the message made for it.
func (s *socket) multicast(build func(link) *dns.Msg) {
	for _, l := range s.links {
		s.send(build(l), l, nil)
	}
}

// ErrNoMulticast is returned if no interface of the machine is up, has an address and carries multicast: nothing can be
// found or announced by name, and an address must be given instead.
var ErrNoMulticast = errors.New("no network interface carries multicast")

// link is one interface and the addresses announced on it, and on no other: an address of one network is useless in
// another.
type link struct {
	net.Interface
	addrs []netip.Addr // IPv4 first; link-local IPv6 addresses only without routable ones
}

func (l link) equal(o link) bool {
	return l.Index == o.Index && l.Name == o.Name && slices.Equal(l.addrs, o.addrs)
}

// machineLinks lists the links to announce on: the named ones, or all suitable ones. It is never empty without an error.
func machineLinks(names []string) ([]link, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	var links []link
	for _, ifi := range chooseInterfaces(all, names) {
		addrs, _ := ifi.Addrs() // empty if the interface went away between the two calls
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

// chooseInterfaces returns the named interfaces that are up; without names, all that are up, carry multicast and belong
// to the home network rather than to a container, a virtual machine or a tunnel.
func chooseInterfaces(all []net.Interface, names []string) []net.Interface {
	const usable = net.FlagUp | net.FlagMulticast
	return slices.DeleteFunc(slices.Clone(all), func(i net.Interface) bool {
		if len(names) > 0 {
			return i.Flags&net.FlagUp == 0 || !slices.Contains(names, i.Name)
		}
		return i.Flags&usable != usable || i.Flags&(net.FlagLoopback|net.FlagPointToPoint) != 0 || isVirtual(i.Name)
	})
}

// isVirtual knows interfaces by the names that programs give them. A bridge made by hand (br0) does not count: it may be
// the machine's only interface. Docker's are br-<hex>.
func isVirtual(name string) bool {
	prefixes := [...]string{
		"docker", "br-", "veth", "hassio", "podman", "cni", "flannel", "cali", "kube", "weave", // containers
		"virbr", "vnet", "vmnet", "vboxnet", "lxc", "lxd", "incus", "tap", // virtual machines
		"tailscale", "zt", "wg", "tun", "utun", "dummy", "awdl", "llw", // tunnels, and Apple's peer-to-peer radios
	}
	return slices.ContainsFunc(prefixes[:], func(p string) bool { return strings.HasPrefix(name, p) })
}

// newLink selects from an interface's addresses by the rule of zeroconf and avahi, so that all three announce the same.
func newLink(ifi net.Interface, addrs []net.Addr) link {
	local := func(ip netip.Addr) bool { return ip.Is6() && ip.IsLinkLocalUnicast() }
	ips := slices.DeleteFunc(parseAddrs(addrs), func(ip netip.Addr) bool { return !ip.IsGlobalUnicast() && !ip.IsLinkLocalUnicast() })
	if slices.ContainsFunc(ips, func(ip netip.Addr) bool { return ip.Is6() && !local(ip) }) {
		ips = slices.DeleteFunc(ips, local)
	}
	slices.SortStableFunc(ips, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	return link{ifi, ips}
}

// announced returns the addresses of the links.
func announced(links []link) (ips []netip.Addr) {
	for _, l := range links {
		ips = append(ips, l.addrs...)
	}
	return ips
}

// ownAddresses returns the addresses of all the machine's interfaces: a record with one of them is no other machine's.
func ownAddresses(links []link) []netip.Addr {
	addrs, _ := net.InterfaceAddrs() // on failure the addresses of links must do
	return append(parseAddrs(addrs), announced(links)...)
}

// parseAddrs returns the addresses of interfaces without their masks.
func parseAddrs(addrs []net.Addr) (ips []netip.Addr) {
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			ips = append(ips, p.Addr().Unmap().WithZone(""))
		}
	}
	return ips
}
