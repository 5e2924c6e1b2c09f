// Package mdns lets robots, tools and Home Assistant find the appliance on the local link without knowing its address.
//
// Two things are announced. The host name, <name>.local, which a robot is given once and keeps: its A and AAAA
// records are answered by the system's responder where that already answers for the name, by this package where not. And
// the service, instance <name>-<id> of _xiaozhi._tcp, for programs that browse. Further services of the appliance can be
// announced beside it, under the same instance name. Those of others are found with [Search].
//
// Who sends what:
//
//	zeroconf    the services: PTR, SRV, TXT, and their goodbyes
//	pion/mdns   answers to A and AAAA questions for the host name, one-shot legacy queries included
//	this code   what neither does: probing before claiming, announcing and withdrawing the host name, defending it
//	            against probes (questions of type ANY), saying that a record does not exist (NSEC), and browsing
//
// One goroutine, the caller's in [Announcer.Run], owns all state; packets reach it over a channel.
//
// Rules are those of RFC 6762 (multicast DNS) and RFC 6763 (service discovery); comments cite the section.
//
// zeroconf prints a line to the standard logger for a family it cannot join (IPv4 or IPv6 switched off). A program that
// has called slog.SetDefault finds that line in its own log; nothing here touches the standard logger.
package mdns

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Service is the DNS-SD type under which an appliance announces itself.
const Service = "_xiaozhi._tcp"

// Wyoming is the type under which servers of the Wyoming protocol announce themselves.
const Wyoming = "_wyoming._tcp"

// HomeAssistant is the type under which Home Assistant announces itself.
const HomeAssistant = "_home-assistant._tcp"

// Options are what to announce.
type Options struct {
	// Name is the host's label: <Name>.local. Letters, digits and hyphens.
	Name string
	// ID distinguishes this appliance from others, and is stable: the instance name is built from it. Same alphabet as Name.
	ID string
	// Version is the program's, published in TXT.
	Version string
	// Port is the TCP port of the robots' doors.
	Port int
	// Also lists further services. They are announced, moved and withdrawn together with the first.
	Also []Offer
	// Interfaces names the interfaces to use. Empty means all that are up and carry multicast, without those of
	// containers and virtual machines.
	Interfaces []string
	// Log receives what a user should know; nil discards it.
	Log *slog.Logger
}

// By is the program that answers for the host name.
type By string

// What answers for the host name: nothing yet, the machine's own responder (avahi, systemd-resolved), or this package.
const (
	ByNobody By = ""
	BySystem By = "system"
	ByPerch  By = "perch"
)

// Status is what is announced at this moment.
type Status struct {
	Host       string       // "perch.local"; with a suffix ("perch-2.local") where the name was taken
	Instance   string       // "perch-<id>", of every service
	Services   []string     // types announced, Service first; none while nothing is
	Addresses  []netip.Addr // those the host name leads to
	Interfaces []string     // names, in the system's order
	By         By           // the program that answers for Host; ByNobody while nothing is announced
	Reason     error        // why nothing is announced; nil while something is
	Wanted     string       // "perch.local", the name that was configured and robots were given
	Rival      netip.Addr   // where Host is another: an address of the machine that has Wanted, as far as is known
}

// Renamed reports whether another machine has the configured name, so that this one goes by another: a robot that was
// given the configured one finds the other machine.
func (s Status) Renamed() bool { return s.Host != s.Wanted }

// Announcer announces one appliance. Make it with [New]; [Announcer.Run] does the work.
type Announcer struct {
	opts  Options
	log   *slog.Logger
	poll  time.Duration // between two looks at the machine's addresses; three times that while it is announced
	retry time.Duration // after a failure; RFC 6762 section 8.1 asks for 5 s after many conflicts
	check time.Duration // between two questions whether the system's responder still answers

	suffix int        // of the name in use: 1 is none. It stays for the life of Run, so robots are not sent back and forth.
	holder netip.Addr // of the other machine that has the configured name, if one does

	mu     sync.Mutex
	status Status
}

// New checks the options and returns an announcer at rest.
func New(o Options) (*Announcer, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o.Also = slices.Clone(o.Also)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	a := &Announcer{opts: o, log: o.Log, poll: 3 * time.Second, retry: 5 * time.Second, check: time.Minute, suffix: 1}
	a.status = a.resting(errors.New("not started"))
	return a, nil
}

// Status returns what is announced now. It may be called at any time, from any goroutine.
func (a *Announcer) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.status
	s.Services, s.Addresses, s.Interfaces = slices.Clone(s.Services), slices.Clone(s.Addresses), slices.Clone(s.Interfaces)
	return s
}

// Run probes, announces, follows the machine's addresses, and withdraws everything when ctx ends, which is the only way
// it returns, with nil. Without a network it waits for one. Run once.
//
// A goroutine of zeroconf's announcer may outlive the call by at most 3.5 s; its sockets are closed by then.
func (a *Announcer) Run(ctx context.Context) error {
	logged := "" // a cause is logged when it is new, not each time it recurs
	for ctx.Err() == nil {
		links, err := machineLinks(a.opts.Interfaces)
		wait := a.poll
		if err == nil {
			if err = a.serve(ctx, links); err == nil {
				logged = ""
				continue // the links changed, or ctx ended
			}
			wait = a.retry
		}
		if errors.Is(err, errTaken) {
			wait = probeYield
		}
		if cause := err.Error(); cause != logged {
			logged = cause
			a.log.Warn("mdns is not announcing; will try again", "err", cause)
		}
		a.set(a.resting(err))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	a.set(a.resting(errors.New("stopped")))
	return nil
}

func (a *Announcer) resting(reason error) Status {
	s := a.known()
	s.Reason = reason
	return s
}

// known is what is so whether or not anything is announced.
func (a *Announcer) known() Status {
	s := Status{Host: hostName(a.opts.Name, a.suffix), Wanted: hostName(a.opts.Name, 1), Instance: a.opts.Instance()}
	if s.Renamed() {
		s.Rival = a.holder
	}
	return s
}

func (a *Announcer) set(s Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status = s
}

// announced is the status while links carry the announcement.
func (a *Announcer) announced(host string, by By, links []link) Status {
	s := a.known()
	s.Host, s.By = host, by
	for _, o := range a.opts.offers() {
		s.Services = append(s.Services, o.Type)
	}
	for _, l := range links {
		s.Interfaces = append(s.Interfaces, l.Name)
		s.Addresses = append(s.Addresses, l.addrs()...)
	}
	return s
}

func interfacesOf(links []link) []net.Interface {
	ifaces := make([]net.Interface, len(links))
	for i, l := range links {
		ifaces[i] = l.Interface
	}
	return ifaces
}
