package mdns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/grandcat/zeroconf"
	"github.com/miekg/dns"
)

const (
	// checkEach is the number of polls between two questions whether the system's responder still answers: about a minute.
	checkEach = 7
	// startup is how long a zeroconf server lives at least. Its Shutdown waits for read loops that count themselves in only
	// once they run, so one right after RegisterProxy would race with them.
	startup = 250 * time.Millisecond
)

// errTaken ends an announcement whose name another machine has as well; the next one probes again.
var errTaken = errors.New("another machine answers for the name")

// Run probes, announces, follows the machine's addresses, and withdraws everything when ctx ends, which is the only way
// it returns, with nil. Without a network it waits for one. Run once. A goroutine of zeroconf's announcer may outlive the
// call by at most 3.5 s; its sockets are closed by then.
func (a *Announcer) Run(ctx context.Context) error {
	logged := "" // a cause is logged when it is new, not each time it recurs
	for ctx.Err() == nil {
		links, err := machineLinks(a.opts.Interfaces)
		if err == nil {
			err = a.serve(ctx, links)
		}
		if err == nil || errors.Is(err, errTaken) || ctx.Err() != nil {
			logged = ""
			continue
		}
		if err.Error() != logged {
			logged = err.Error()
			a.opts.Log.Warn("mdns is not announcing; will try again", "err", err)
		}
		a.set("", err)
		select {
		case <-ctx.Done():
		case <-time.After(a.retry):
		}
	}
	a.set("", errors.New("stopped"))
	return nil
}

// serve probes and announces on these links until they change, ctx ends or the name is lost, and withdraws everything.
func (a *Announcer) serve(ctx context.Context, links []link) error {
	s, err := listen(links)
	if err != nil {
		return err
	}
	defer s.close()
	by, err := a.claim(ctx, s)
	if err != nil {
		return err
	}
	host := hostName(a.opts.Name, a.suffix)
	if by == ByPerch {
		defer s.multicast(func(l link) *dns.Msg { return goodbye(host+".", l) })
	}
	servers, err := register(a.opts, host, links)
	for _, server := range servers {
		defer server.Shutdown()
	}
	if err != nil {
		return err
	}
	a.set(by, nil)
	a.opts.Log.Info("mdns announced", "host", host, "instance", a.opts.Instance(), "by", by, "addresses", announced(links))
	return a.answerHost(ctx, s, by)
}

// register announces the services on the links, leading to host, a name without its trailing dot. One zeroconf server
// knows one service.
//
// zeroconf is given no addresses on purpose. It then adds to each answer those the interface has at that moment, so one
// network does not get the addresses of another; and its goodbye, which carries the addresses it was given, does not
// withdraw those of a host name that the system's responder goes on answering for.
func register(o Options, host string, links []link) (servers []*zeroconf.Server, err error) {
	var ifaces []net.Interface
	for _, l := range links {
		ifaces = append(ifaces, l.Interface)
	}
	announce := func(kind string, port int, txt ...string) {
		// The host must end in a dot and the domain must not: else the domain is appended a second time, or never packed.
		server, failed := zeroconf.RegisterProxy(o.Instance(), kind, "local", port, host+".", nil, txt, ifaces)
		if failed == nil {
			servers = append(servers, server)
		} else {
			err = fmt.Errorf("announce %s: %w", kind, failed)
		}
	}
	announce(Service, o.Port, "ota=/xiaozhi/ota/", "ws=/xiaozhi/v1/", "version="+o.Version, "id="+o.ID)
	if o.Wyoming != 0 {
		announce(Wyoming, o.Wyoming, "") // a record without text holds one empty string (RFC 6763 section 6.1)
	}
	time.Sleep(startup)
	return servers, err
}

// answerHost answers for the host name unless the system's responder does. It returns nil when the links or the responder
// have changed, and errTaken when a packet shows that another machine has the name.
func (a *Announcer) answerHost(ctx context.Context, s *socket, by string) error {
	name := hostName(a.opts.Name, a.suffix) + "."
	receive := func(p packet) error {
		switch {
		case by == BySystem:
		case !p.msg.Response:
			if msg, to := answer(p, name); msg != nil {
				s.send(msg, p.link, to)
			}
		case len(addressesFor(p.msg.Answer, name)) > 0 && judge(p, name, ownAddresses(s.links)).verdict == occupied:
			return errTaken
		}
		return nil
	}
	for n := 1; ; n++ {
		if err := s.receive(ctx, a.poll, receive); err != nil {
			return err
		}
		// Without any link, Run gets the same error and pauses.
		if now, err := machineLinks(a.opts.Interfaces); err != nil || !slices.EqualFunc(now, s.links, link.equal) {
			return nil
		}
		if by == BySystem && n%checkEach == 0 { // the responder may have been stopped
			if found, err := s.ask(ctx, name); err != nil || found.verdict != system {
				return err
			}
		}
	}
}

// Probing sends three questions, 250 ms apart, after a random delay since a power cut starts many machines at the same
// moment, and waits a second after losing to another prober (RFC 6762 sections 8.1 and 8.2). "perch-15" is the last name
// tried: the RFC asks to slow down after fifteen conflicts.
const (
	probes     = 3
	probeGap   = 250 * time.Millisecond
	probeYield = time.Second
	maxBids    = 4
	maxSuffix  = 15
)

// verdict is what packets show about a name; the greater counts more.
type verdict int

const (
	free     verdict = iota // no machine answers for it
	system                  // this machine's own responder does
	outbid                  // another prober wants it too, and goes first
	occupied                // another machine has it
)

// finding is the verdict on a name, and the address of the other machine that answered for it, if any.
type finding struct {
	verdict
	by netip.Addr
}

// claim finds the name to use, in Announcer.suffix, and which program answers for it.
func (a *Announcer) claim(ctx context.Context, s *socket) (by string, err error) {
	for ; a.suffix <= maxSuffix; a.suffix++ {
		host := hostName(a.opts.Name, a.suffix)
		found, err := s.ask(ctx, host+".")
		switch {
		case err != nil:
			return "", err
		case found.verdict == free:
			return ByPerch, nil
		case found.verdict == system:
			return BySystem, nil
		case a.suffix == 1:
			a.rival = found.by
		}
		a.opts.Log.Warn("another machine has the name on the network; give one of the two another name", "host", host, "address", found.by,
			"next", hostName(a.opts.Name, a.suffix+1))
	}
	a.suffix = 1
	return "", fmt.Errorf("%s and its variants up to -%d are taken; set another name", hostName(a.opts.Name, 1), maxSuffix)
}

// ask probes for name until it is known to be free, occupied or the system's. If it loses every tie-break, the other
// machine probes and never announces; the name is left to it.
func (s *socket) ask(ctx context.Context, name string) (found finding, err error) {
	own := ownAddresses(s.links)
	receive := func(p packet) error {
		if now := judge(p, name, own); now.verdict > found.verdict {
			found = now
		}
		return nil
	}
	for range maxBids {
		found = finding{}
		err = s.receive(ctx, rand.N(probeGap), receive)
		for n := 0; n < probes && err == nil && found.verdict < outbid; n++ {
			s.multicast(func(l link) *dns.Msg { return probe(name, l) })
			err = s.receive(ctx, probeGap, receive)
		}
		if err != nil || found.verdict != outbid {
			return found, err
		}
		if err = s.receive(ctx, probeYield, receive); err != nil {
			return found, err
		}
	}
	return finding{occupied, found.by}, nil
}

// judge returns what one packet shows about name. A record with one of the machine's own addresses is no conflict: it
// came from the system's responder, from another interface of ours, or from a repeater in the router.
func judge(p packet, name string, own []netip.Addr) (found finding) {
	if p.msg.Response {
		for _, rr := range slices.Concat(p.msg.Answer, p.msg.Extra) {
			ip, ok := addressOf(rr, name)
			switch {
			case !ok || rr.Header().Ttl == 0 || found.verdict == occupied: // a goodbye claims nothing
			case slices.Contains(own, ip):
				found.verdict = system
			default:
				found = finding{occupied, ip}
			}
		}
		return found
	}
	// RFC 6762 section 8.2 orders address records by type, A before AAAA, then by their bytes. This is the order of netip,
	// which compares lengths first.
	theirs := addressesFor(p.msg.Ns, name)
	ours := slices.SortedFunc(slices.Values(p.link.addrs), netip.Addr.Compare)
	mine := slices.ContainsFunc(theirs, func(ip netip.Addr) bool { return slices.Contains(own, ip) })
	if !mine && slices.CompareFunc(theirs, ours, netip.Addr.Compare) > 0 {
		return finding{outbid, theirs[0]}
	}
	return found
}
