package mdns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/grandcat/zeroconf"
)

// Found is an appliance that answered.
type Found struct {
	Instance string            // "perch-<id>"
	Host     string            // "perch.local", without a trailing dot
	Port     int               // TCP
	Addrs    []netip.Addr      // IPv4 first; link-local IPv6 ones carry no zone
	TXT      map[string]string // ota, ws, version, id; keys in lower case
}

// maxFound bounds what a hostile neighbour can make Browse report.
const maxFound = 64

// Browse looks for appliances on the local link and hands each to found, once, until found returns false or ctx ends;
// neither is an error. It returns [ErrNoMulticast] where there is no link to look on.
func Browse(ctx context.Context, found func(Found) bool) error {
	links, err := machineLinks(nil)
	if err != nil {
		return err
	}
	resolver, err := newResolver(links)
	if err != nil {
		return fmt.Errorf("browse %s: %w", Service, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries := make(chan *zeroconf.ServiceEntry)
	if err := resolver.Browse(ctx, Service, "local", entries); err != nil {
		return fmt.Errorf("browse %s: %w", Service, err)
	}
	// zeroconf closes the channel when ctx has ended, and blocks for good on a reader that left earlier.
	left := maxFound
	for e := range entries {
		if left == 0 {
			continue
		}
		if left--; left == 0 || !found(newFound(e)) {
			left = 0
			cancel()
		}
	}
	return nil
}

// newResolver asks only the address families that are there: zeroconf fails as a whole, and keeps a socket, when one of
// them cannot be joined.
func newResolver(links []link) (*zeroconf.Resolver, error) {
	var family zeroconf.IPType
	for _, l := range links {
		if len(l.v4) > 0 {
			family |= zeroconf.IPv4
		}
		if len(l.v6) > 0 {
			family |= zeroconf.IPv6
		}
	}
	return zeroconf.NewResolver(zeroconf.SelectIPTraffic(family), zeroconf.SelectIfaces(interfacesOf(links)))
}

func newFound(e *zeroconf.ServiceEntry) Found {
	f := Found{Instance: e.Instance, Host: strings.TrimSuffix(e.HostName, "."), Port: e.Port, TXT: map[string]string{}}
	for _, ips := range [][]net.IP{e.AddrIPv4, e.AddrIPv6} {
		for _, ip := range ips {
			if a, ok := netip.AddrFromSlice(ip); ok {
				f.Addrs = append(f.Addrs, a.Unmap())
			}
		}
	}
	for _, s := range e.Text {
		key, value, _ := strings.Cut(s, "=")
		key = strings.ToLower(key)
		if _, again := f.TXT[key]; key != "" && !again { // RFC 6763 section 6.4: the first of equal keys counts
			f.TXT[key] = value
		}
	}
	return f
}
