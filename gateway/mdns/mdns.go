// Package mdns makes the appliance discoverable on the local link by multicast DNS (RFC 6762) and service discovery (RFC
// 6763), so that robots, tools and Home Assistant need not know its address.
//
// It announces the host name <name>.local, which robots store, and services with the instance name <name>-<id>. The
// library zeroconf sends the announcements, and responds to queries for the services. This package checks that no other
// machine uses the host name (RFC 6762 calls this probing), responds to queries for the host name unless the operating
// system's own mDNS responder does, and searches for services, see [Search].
//
// zeroconf prints a line to Go's standard logger if IPv4 or IPv6 is switched off.
package mdns

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
)

// DNS-SD service types.
const (
	Service       = "_xiaozhi._tcp"        // appliances: servers for robots with the xiaozhi firmware
	Wyoming       = "_wyoming._tcp"        // servers of the Wyoming protocol, which offer speech engines to Home Assistant
	HomeAssistant = "_home-assistant._tcp" // Home Assistant
	OSC           = "_osc._udp"            // programs that receive Open Sound Control, such as VRChat
	OSCQuery      = "_oscjson._tcp"        // HTTP servers that describe what an OSC program sends and receives
)

// Offer is a further service that an appliance announces.
type Offer struct {
	Instance string // instance name; letters, digits and hyphens, at most 63 bytes
	Type     string // DNS-SD service type, such as OSC
	Port     int
}

// The programs that can respond to queries for the host name.
const (
	BySystem = "system" // the machine's own responder: avahi, systemd-resolved
	ByPerch  = "perch"  // this package
)

// Options configures an Announcer. Name and ID may contain letters, digits and hyphens, together at most 59 characters.
type Options struct {
	Name       string         // host name without ".local"
	ID         string         // stable and unique ID of the appliance
	Version    string         // version of Perch, published in the TXT record
	Port       int            // TCP port of the server for robots; 0 if there is none
	Wyoming    int            // TCP port of the Wyoming server, which must be running already because Home Assistant connects at once; 0 if the appliance runs no such server
	Offers     func() []Offer // returns further services, which may come and go; may be nil
	Interfaces []string       // names of network interfaces; if empty, all multicast interfaces except those of containers and virtual machines
	Log        *slog.Logger   // for messages to the owner
}

// Instance returns the instance name of all services except those of Offers: "<Name>-<ID>". It contains the configured
// name even if the host name has a suffix such as -2, because Home Assistant identifies the appliance by the instance
// name.
func (o Options) Instance() string { return o.Name + "-" + o.ID }

// hostName returns the n-th candidate for the host name without a trailing dot: perch.local, perch-2.local, and so on.
func hostName(name string, n int) string {
	if n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	return strings.ToLower(name) + ".local"
}

// Status describes what is announced.
type Status struct {
	Host   string     // host name: Wanted, or with a suffix such as "perch-2.local" if another machine uses Wanted
	By     string     // the program that responds to queries for Host: BySystem or ByPerch; empty while nothing is announced
	Reason error      // why nothing is announced; nil while the appliance is announced
	Wanted string     // configured host name, "perch.local"
	Rival  netip.Addr // if Host has a suffix, an address of the machine that uses Wanted; the zero Addr if unknown
}

// Renamed reports whether the host name has a suffix because another machine uses the configured name. A robot that has
// stored the configured name connects to the other machine.
func (s Status) Renamed() bool { return s.Host != s.Wanted }

// Announcer announces one appliance. [New] returns an Announcer, and [Announcer.Run] runs it.
type Announcer struct {
	opts   Options
	poll   time.Duration // time between two checks of the machine's addresses; long, so that an idle machine is not woken up often
	retry  time.Duration // pause after a failure; RFC 6762 section 8.1 requires 5 s after many conflicts
	suffix int           // number at the end of the host name; 1 means no number. Kept for later announcements, so that the host name does not alternate
	rival  netip.Addr    // address of another machine that uses the configured name; the zero Addr if unknown
	status atomic.Pointer[Status]
}

// New returns an announcer, which does nothing until Run is called.
func New(o Options) *Announcer {
	a := &Announcer{opts: o, poll: 9 * time.Second, retry: 5 * time.Second, suffix: 1}
	a.set("", errors.New("not started"))
	return a
}

// Status returns what is announced now. It is safe for concurrent use.
func (a *Announcer) Status() Status { return *a.status.Load() }

// set stores the status. by is the program that responds to queries for the host name. If by is empty, nothing is
// announced, and reason says why.
func (a *Announcer) set(by string, reason error) {
	s := Status{Host: hostName(a.opts.Name, a.suffix), Wanted: hostName(a.opts.Name, 1), By: by, Reason: reason}
	if s.Renamed() {
		s.Rival = a.rival
	}
	a.status.Store(&s)
}
