package mdns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// ErrNoMulticast is returned where no interface of the machine is up, has an address and carries multicast: nothing can
// be found or announced by name there, and an address must be given instead.
var ErrNoMulticast = errors.New("no network interface carries multicast")

// link is one interface and the addresses announced on it, and only on it: an address of one network is of no use to
// the other.
type link struct {
	net.Interface
	v4 []netip.Addr
	v6 []netip.Addr // routable ones; the link-local ones where there are no others
}

func (l link) addrs() []netip.Addr { return slices.Concat(l.v4, l.v6) }

func (l link) equal(o link) bool {
	return l.Index == o.Index && l.Name == o.Name && slices.Equal(l.v4, o.v4) && slices.Equal(l.v6, o.v6)
}

// machineLinks lists the links to announce on: those named, or all fitting ones. It is never empty without an error.
func machineLinks(names []string) ([]link, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	var links []link
	for _, ifi := range chooseInterfaces(all, names) {
		addrs, _ := ifi.Addrs() // none where it went away between the two calls
		if l := newLink(ifi, addrs); len(l.addrs()) > 0 {
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

// chooseInterfaces returns the interfaces that are up and are named; without names, those that carry multicast and belong
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

// isVirtual knows interfaces by the names their makers give them. A bridge made by hand (br0) is not among them: it may
// be the machine's only interface. Docker's are br-<hex>.
func isVirtual(name string) bool {
	prefixes := [...]string{
		"docker", "br-", "veth", "hassio", "podman", "cni", "flannel", "cali", "kube", "weave", // containers
		"virbr", "vnet", "vmnet", "vboxnet", "lxc", "lxd", "incus", "tap", // virtual machines
		"tailscale", "zt", "wg", "tun", "utun", "dummy", "awdl", "llw", // tunnels, and Apple's peer-to-peer radios
	}
	return slices.ContainsFunc(prefixes[:], func(p string) bool { return strings.HasPrefix(name, p) })
}

// newLink sorts an interface's addresses. zeroconf and avahi choose by the same rule, so all three announce the same.
func newLink(ifi net.Interface, addrs []net.Addr) link {
	l := link{Interface: ifi}
	var local []netip.Addr
	for _, ip := range parseAddrs(addrs) {
		switch {
		case ip.IsLoopback() || ip.IsMulticast() || ip.IsUnspecified():
		case ip.Is4():
			l.v4 = append(l.v4, ip)
		case ip.IsLinkLocalUnicast():
			local = append(local, ip)
		default:
			l.v6 = append(l.v6, ip)
		}
	}
	if len(l.v6) == 0 {
		l.v6 = local
	}
	return l
}

// ownAddresses are all of the machine's, on any interface: a record that leads to one of them is no stranger's.
func ownAddresses(links []link) map[netip.Addr]bool {
	own := map[netip.Addr]bool{}
	addrs, _ := net.InterfaceAddrs() // none where they cannot be had
	all := parseAddrs(addrs)
	for _, l := range links {
		all = append(all, l.addrs()...)
	}
	for _, ip := range all {
		own[ip] = true
	}
	return own
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
