// Package network is the appliance's place on its owner's network: it announces the appliance
// by name, knows the addresses at which robots and browsers find it, tells the owner the first
// steps, and searches for servers that the appliance can use.
package network

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"perch/gateway/mdns"
	"perch/health"
)

// Options describe an appliance and where it listens.
type Options struct {
	Name, ID, Version string
	PublicURL         string // that the owner gives others; may be empty
	MDNS              bool   // whether it is announced
	Interfaces        []string
	Listen            []string // the addresses for robots and everybody, as they were opened
	Local             []string // those for this machine
	Wyoming           net.Addr // of the Wyoming server; nil if it is off
	Log               *slog.Logger
}

// Network is the appliance's place on it.
type Network struct {
	o         Options
	port      int             // that robots connect to; 0 where none can come
	announcer *mdns.Announcer // nil where nothing is announced
	silent    string          // why not
}

// New returns the place of an appliance. Run announces it.
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
			Interfaces: o.Interfaces, Log: o.Log})
	}
	return n
}

// reachablePort returns the port of an address that robots can reach, and else 0.
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

// Host returns the name of the appliance on the network. taken is the name that it was given, if
// another machine has that.
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

// URL returns where a browser on the owner's network finds the appliance by name; empty where
// none can.
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

// URLs returns the addresses at which others on the network find the appliance, the best first.
func (n *Network) URLs() []string {
	return slices.DeleteFunc([]string{n.URL(), n.numericURL()}, func(url string) bool { return url == "" })
}

// numericURL returns the base address of this machine on the network, without a name; empty
// where none can come, or the owner has named another address.
func (n *Network) numericURL() string {
	if n.port == 0 || n.o.PublicURL != "" {
		return ""
	}
	for _, l := range n.o.Listen {
		if at, err := netip.ParseAddrPort(l); err == nil && !at.Addr().IsUnspecified() && !at.Addr().IsLoopback() {
			return "http://" + at.String()
		}
	}
	// The address that a packet to elsewhere would have; none is sent. A machine
	// with containers has many that nothing on the network can reach.
	if c, err := net.Dial("udp4", "192.0.2.1:9"); err == nil {
		defer c.Close()
		if at, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil {
			return "http://" + net.JoinHostPort(at.Addr().String(), strconv.Itoa(n.port))
		}
	}
	own, _ := net.InterfaceAddrs() // without them there is the name
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			return "http://" + net.JoinHostPort(p.Addr().String(), strconv.Itoa(n.port))
		}
	}
	return ""
}

// NotAnnounced begins the note of an appliance that is not announced.
const NotAnnounced = "not announced: "

// Condition returns the condition of the name.
func (n *Network) Condition() health.Part {
	if n.announcer == nil {
		return health.Part{Name: "mdns", OK: true, Note: n.silent}
	}
	return nameCondition(n.announcer.Status())
}

// nameCondition returns the condition of a name. A name that another machine has does not
// work: robots that know it connect to that machine.
func nameCondition(s mdns.Status) health.Part {
	part := health.Part{Name: "mdns"}
	switch {
	case s.By == "":
		return part.Saying(s.Reason.Error())
	case s.Renamed():
		return part.Saying(fmt.Sprintf("%s, answered by %s: %v", s.Host, s.By, NameTaken(s.Wanted, s.Rival)))
	}
	part.OK = true
	return part.Saying(fmt.Sprintf("%s, answered by %s", s.Host, s.By))
}

// NameTaken returns a sentence: another machine has a name, and the cure.
func NameTaken(name string, rival netip.Addr) string {
	machine := "another machine"
	if rival.IsValid() {
		machine = fmt.Sprintf("another machine (%s)", rival)
	}
	return fmt.Sprintf("%s has %s, and robots that were told that name go there; "+
		"give one of the two another name (name in the configuration) and restart it", machine, name)
}
