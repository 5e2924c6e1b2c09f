// Package mdns lets robots, tools and Home Assistant find the appliance on the local link without knowing its address.
//
// It announces the host name, <name>.local, which a robot is given once and keeps, and services under the instance name
// <name>-<id>. zeroconf answers for the services. This package answers for the host name, where the system's responder
// does not, after probing for it; and it browses, see [Search]. Rules are those of RFC 6762 (multicast DNS) and RFC 6763
// (service discovery); comments cite the section.
//
// zeroconf prints a line to the standard logger for a family that it cannot join (IPv4 or IPv6 switched off).
package mdns

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Types of services (DNS-SD).
const (
	Service       = "_xiaozhi._tcp" // appliances
	Wyoming       = "_wyoming._tcp" // servers of the Wyoming protocol
	HomeAssistant = "_home-assistant._tcp"
)

// By is the program that answers for the host name.
type By string

// The programs that can answer for the host name.
const (
	ByNobody By = ""       // nothing is announced
	BySystem By = "system" // the machine's own responder: avahi, systemd-resolved
	ByPerch  By = "perch"  // this package
)

// Status is what is announced at this moment.
type Status struct {
	Host       string       // "perch.local"; with a suffix ("perch-2.local") where the name was taken
	Instance   string       // "perch-<id>", of every service
	Services   []string     // types announced, Service first; empty while nothing is
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

	suffix int        // of the name in use; 1 stands for no suffix. It stays, so that robots are not sent back and forth
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
	a.rest(errors.New("not started"))
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
// it returns, with nil. Without a network it waits for one. Run once. A goroutine of zeroconf's announcer may outlive the
// call by at most 3.5 s; its sockets are closed by then.
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
		a.rest(err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	a.rest(errors.New("stopped"))
	return nil
}

// rest sets the status of an announcer that announces nothing.
func (a *Announcer) rest(reason error) {
	s := a.known()
	s.Reason = reason
	a.set(s)
}

// known is the part of the status that does not depend on whether anything is announced.
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
		s.Interfaces, s.Addresses = append(s.Interfaces, l.Name), append(s.Addresses, l.addrs()...)
	}
	return s
}
