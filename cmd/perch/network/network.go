// Package network announces the appliance on the owner's network, computes the URLs at which robots
// and browsers reach it, prints the first steps for the owner, and searches the network for servers
// that the appliance can use.
package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	"perch/gateway/mdns"
	"perch/health"
)

// Options describes an appliance and its open addresses.
type Options struct {
	Name, ID, Version string
	PublicURL         string   // base URL that the owner has configured; may be empty
	MDNS              bool     // whether to announce the appliance
	Interfaces        []string // names of the interfaces to use; empty for all except those of containers and virtual machines
	Listen            []string // open addresses for robots and everybody on the network
	Local             []string // open addresses for this machine
	Wyoming           net.Addr // address of the Wyoming server; nil if it is off
	Page              bool     // whether the owner's page is on
	Log               *slog.Logger
}

// Network announces an appliance, and finds its URLs and other servers.
type Network struct {
	o         Options
	port      int             // TCP port for robots; 0 if they cannot reach this machine
	announcer *mdns.Announcer // nil if the appliance is not announced
	silent    string          // why the appliance is not announced

	offers func() []mdns.Offer // set by SetOffers; may be nil
}

// New returns the Network of an appliance. Run announces the appliance.
func New(o Options) *Network {
	n := &Network{o: o}
	for _, address := range o.Listen {
		if n.port = reachablePort(address); n.port > 0 {
			break
		}
	}
	switch {
	case !o.MDNS:
		n.silent = NotAnnounced + "turned off by mdns.enabled"
	case n.port == 0:
		n.silent = NotAnnounced + "only this machine can reach the addresses in listen"
	default:
		wyoming := 0
		if o.Wyoming != nil {
			wyoming = reachablePort(o.Wyoming.String())
		}
		n.announcer = mdns.New(mdns.Options{Name: o.Name, ID: o.ID, Version: o.Version, Port: n.port, Wyoming: wyoming,
			Offers: n.currentOffers, Interfaces: o.Interfaces, Log: o.Log})
	}
	return n
}

// SetOffers sets the function that returns further services to announce. It must be called before Run.
func (n *Network) SetOffers(offers func() []mdns.Offer) { n.offers = offers }

// currentOffers returns the further services to announce now.
func (n *Network) currentOffers() []mdns.Offer {
	if n.offers == nil {
		return nil
	}
	return n.offers()
}

// Instance returns the name under which services are announced, and the host to listen on for further
// services: the host of the first address in Listen that others can reach. announced is false if nothing is
// announced.
func (n *Network) Instance() (name, host string, announced bool) {
	for _, address := range n.o.Listen {
		if reachablePort(address) > 0 {
			host, _, _ = net.SplitHostPort(address)
			break
		}
	}
	return n.self(), host, n.announcer != nil
}

// self returns the instance name of this appliance.
func (n *Network) self() string { return mdns.Options{Name: n.o.Name, ID: n.o.ID}.Instance() }

// Browse returns the services of a type that others announce, found before ctx ended.
func (n *Network) Browse(ctx context.Context, kind string) ([]mdns.Found, error) {
	return n.others(kind).All(ctx)
}

// reachablePort returns the port of an address, or 0 if the address is invalid or a loopback address.
func reachablePort(address string) int {
	at, err := netip.ParseAddrPort(address)
	if err != nil || at.Addr().IsLoopback() {
		return 0
	}
	return int(at.Port())
}

// Run announces the appliance until ctx ends.
func (n *Network) Run(ctx context.Context) error {
	if n.announcer == nil {
		return nil
	}
	return n.announcer.Run(ctx)
}

// Host returns the name under which the appliance is announced, or "" if the appliance is not
// announced. taken is the configured name if another machine uses it, and otherwise "".
func (n *Network) Host() (host, taken string) {
	if n.announcer == nil {
		return "", ""
	}
	s := n.announcer.Status()
	if s.By != "" {
		host = s.Host
	}
	if s.Renamed() {
		taken = s.Wanted
	}
	return host, taken
}

// URL returns the base URL for robots and browsers on the owner's network: the configured one, or one with
// the appliance's name. It is empty if the appliance is not announced and no URL is configured.
func (n *Network) URL() string {
	if n.o.PublicURL != "" {
		return n.o.PublicURL
	}
	if n.port == 0 || !n.o.MDNS {
		return ""
	}
	host := n.o.Name + ".local"
	if found, _ := n.Host(); found != "" {
		host = found
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(n.port))
}

// URLs returns the base URLs at which others on the network reach the appliance: the URL with the name, then
// the one with an IP address.
func (n *Network) URLs() []string {
	return slices.DeleteFunc([]string{n.URL(), n.numericURL()}, func(url string) bool { return url == "" })
}

// Hosts returns the names and IP addresses of this machine on the network, best first. Devices may not reach all of them.
func (n *Network) Hosts() []string {
	var hosts []string
	for _, base := range n.URLs() {
		if u, err := url.Parse(base); err == nil {
			hosts = append(hosts, u.Hostname())
		}
	}
	hosts = append(hosts, n.o.Name+".local")
	for _, ip := range mdns.Addresses(n.o.Interfaces) {
		hosts = append(hosts, ip.String())
	}
	return hosts
}

// numericURL returns the base URL with an IP address of this machine. It is empty if others cannot
// reach this machine, or the owner has configured another URL.
func (n *Network) numericURL() string {
	if n.port == 0 || n.o.PublicURL != "" {
		return ""
	}
	for _, l := range n.o.Listen {
		if at, err := netip.ParseAddrPort(l); err == nil && !at.Addr().IsUnspecified() && !at.Addr().IsLoopback() {
			return "http://" + at.String()
		}
	}
	// Connecting a UDP socket sends no packet, but makes the kernel choose this machine's address on
	// the network. The list of interfaces is the second choice, because containers add addresses
	// that the network cannot reach.
	if c, err := net.Dial("udp4", "192.0.2.1:9"); err == nil {
		defer c.Close()
		if at, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil {
			return "http://" + net.JoinHostPort(at.Addr().String(), strconv.Itoa(n.port))
		}
	}
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			return "http://" + net.JoinHostPort(p.Addr().String(), strconv.Itoa(n.port))
		}
	}
	return ""
}

// NotAnnounced is the start of Condition's note if the appliance is not announced.
const NotAnnounced = "not announced: "

// Condition returns the condition of the announcement.
func (n *Network) Condition() health.Part {
	if n.announcer == nil {
		return health.Part{Name: "mdns", OK: true, Note: n.silent}
	}
	return nameCondition(n.announcer.Status())
}

// nameCondition returns the condition of an announced name. The condition is a failure if nobody answers for the
// name, and also if another machine uses the configured name, because robots that use this name then connect to
// the other machine.
func nameCondition(s mdns.Status) health.Part {
	part := health.Part{Name: "mdns"}
	switch {
	case errors.Is(s.Reason, mdns.ErrNoMulticast):
		return part.Saying(fmt.Sprintf("%v; connect this machine to a network; until then no robot finds it", s.Reason))
	case s.By == "":
		return part.Saying(fmt.Sprintf("%v; until then, give robots this machine's IP address instead of its name", s.Reason))
	case s.Renamed():
		return part.Saying(fmt.Sprintf("%s, answered by %s: %v", s.Host, s.By, NameTaken(s.Wanted, s.Rival)))
	}
	part.OK = true
	return part.Saying(fmt.Sprintf("%s, answered by %s", s.Host, s.By))
}

// NameTaken returns a sentence about another machine that uses a name, with advice for the owner. rival is
// the address of the machine, or invalid if the address is unknown.
func NameTaken(name string, rival netip.Addr) string {
	machine := "another machine"
	if rival.IsValid() {
		machine = fmt.Sprintf("another machine (%s)", rival)
	}
	return fmt.Sprintf("%s has %s, and robots that use that name connect there; "+
		"give one of the two another name (name in the configuration) and restart it", machine, name)
}
