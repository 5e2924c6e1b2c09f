// Package mdns lets robots, tools and Home Assistant find the appliance on the local link without knowing its address.
//
// It announces the host name, <name>.local, which a robot is given once and keeps, and services under the instance name
// <name>-<id>. zeroconf announces both and answers for the services. This package probes for the host name, answers for it
// where the system's responder does not, and browses, see [Search]. Rules are those of RFC 6762 (multicast DNS) and RFC
// 6763 (service discovery); comments cite the section.
//
// zeroconf prints a line to the standard logger for a family that it cannot join (IPv4 or IPv6 switched off).
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

// Types of services (DNS-SD).
const (
	Service       = "_xiaozhi._tcp" // appliances
	Wyoming       = "_wyoming._tcp" // servers of the Wyoming protocol
	HomeAssistant = "_home-assistant._tcp"
)

// The programs that answer for the host name.
const (
	BySystem = "system" // the machine's own responder: avahi, systemd-resolved
	ByPerch  = "perch"  // this package
)

// Options are what to announce. Name and ID hold letters, digits and hyphens, at most 59 together.
type Options struct {
	Name       string       // the host's label, <Name>.local
	ID         string       // tells this appliance from others, and is stable
	Version    string       // the program's, published in TXT
	Port       int          // the TCP port of the robots' server
	Wyoming    int          // the TCP port of the Wyoming server, which answers already: Home Assistant asks at once. 0 for no server
	Interfaces []string     // names; empty for all that carry multicast, without those of containers and virtual machines
	Log        *slog.Logger // receives what an owner should know
}

// Instance is the instance name of every service, "<Name>-<ID>". It is built from the configured name, never the suffixed
// one: Home Assistant takes it for an identity.
func (o Options) Instance() string { return o.Name + "-" + o.ID }

// hostName is the n-th choice of a host name, without the trailing dot: perch.local, perch-2.local, and so on.
func hostName(name string, n int) string {
	if n > 1 {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	return strings.ToLower(name) + ".local"
}

// Status is what is announced at this moment.
type Status struct {
	Host   string     // "perch.local"; with a suffix ("perch-2.local") where the name was taken
	By     string     // the program that answers for Host: BySystem or ByPerch; empty while nothing is announced
	Reason error      // why nothing is announced; nil while something is
	Wanted string     // "perch.local", the name that was configured and robots were given
	Rival  netip.Addr // where Host is another: an address of the machine that has Wanted, as far as is known
}

// Renamed reports whether another machine has the configured name, so that this one goes by another: a robot that was
// given the configured one finds the other machine.
func (s Status) Renamed() bool { return s.Host != s.Wanted }

// Announcer announces one appliance. Make it with [New]; [Announcer.Run] does the work.
type Announcer struct {
	opts   Options
	poll   time.Duration // between two checks of the machine's addresses; a machine that idles is woken up seldom
	retry  time.Duration // after a failure; RFC 6762 section 8.1 asks for 5 s after many conflicts
	suffix int           // of the name in use; 1 stands for no suffix. It stays, so that robots are not sent back and forth
	rival  netip.Addr    // of the other machine that has the configured name, if one does
	status atomic.Pointer[Status]
}

// New returns an announcer at rest.
func New(o Options) *Announcer {
	a := &Announcer{opts: o, poll: 9 * time.Second, retry: 5 * time.Second, suffix: 1}
	a.set("", errors.New("not started"))
	return a
}

// Status returns what is announced now. It may be called at any time, from any goroutine.
func (a *Announcer) Status() Status { return *a.status.Load() }

// set stores the status: the program that answers for the name, or why nothing is announced.
func (a *Announcer) set(by string, reason error) {
	s := Status{Host: hostName(a.opts.Name, a.suffix), Wanted: hostName(a.opts.Name, 1), By: by, Reason: reason}
	if s.Renamed() {
		s.Rival = a.rival
	}
	a.status.Store(&s)
}
