package mdns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/grandcat/zeroconf"
	"github.com/miekg/dns"
)

const (
	// pollsPerCheck is the number of polls (see Announcer.poll) between two checks that the system's responder is still
	// running: about a minute.
	pollsPerCheck = 7
	// minServerLifetime is the minimum time between the start and the end of a zeroconf server. Shutdown does not wait
	// for goroutines of the server that have not begun to read yet, so a Shutdown right after RegisterProxy would race
	// with them.
	minServerLifetime = 250 * time.Millisecond
)

// errTaken ends an announcement if another machine uses the host name. Run then probes again.
var errTaken = errors.New("another machine answers for the name")

// Run probes for the host name and announces the appliance until ctx ends, and then withdraws the announcement and
// returns nil. It announces again when the addresses of the machine change, and waits while there is no network. It
// must be called only once. A goroutine of zeroconf may run for up to 3.5 s after Run has returned, but zeroconf's
// sockets are closed before Run returns.
func (a *Announcer) Run(ctx context.Context) error {
	logged := "" // the last logged error, which is not logged again
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

// serve probes and announces on the links. It withdraws the announcement and returns when answerHost returns, for example
// because the links have changed.
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
	services := announcements{}
	defer services.close()
	if err := services.update(a.opts.services(), host, links); err != nil {
		return err
	}
	a.set(by, nil)
	a.opts.Log.Info("mdns announced", "host", host, "instance", a.opts.Instance(), "by", by, "addresses", announced(links))
	return a.answerHost(ctx, s, by, func() error { return services.update(a.opts.services(), host, links) })
}

// service is a service to announce.
type service struct {
	Offer
	txt string // strings of the TXT record, separated by line ends; an empty TXT record contains one empty string (RFC 6763 section 6.1)
}

// services returns the services to announce now.
func (o Options) services() []service {
	txt := []string{"ota=/xiaozhi/ota/", "ws=/xiaozhi/v1/", "version=" + o.Version, "id=" + o.ID}
	var all []service
	if o.Port != 0 {
		all = append(all, service{Offer{o.Instance(), Service, o.Port}, strings.Join(txt, "\n")})
	}
	if o.Wyoming != 0 {
		all = append(all, service{Offer{o.Instance(), Wyoming, o.Wyoming}, ""})
	}
	if o.Offers != nil {
		for _, offer := range o.Offers() {
			all = append(all, service{offer, ""})
		}
	}
	return all
}

// announcements holds the zeroconf servers of the announced services. Each service needs its own server.
type announcements map[service]*zeroconf.Server

// update announces services on the links, and withdraws all others. host is the host name without a trailing dot.
//
// update passes no addresses to zeroconf, for two reasons. Without them, zeroconf adds the current addresses of the
// interface to each response, so that no network receives the addresses of another network. With them, zeroconf's
// goodbye would withdraw the addresses of the host name, although the system's responder may continue to serve it.
func (a announcements) update(services []service, host string, links []link) (err error) {
	for s, server := range a {
		if !slices.Contains(services, s) {
			server.Shutdown()
			delete(a, s)
		}
	}
	var ifaces []net.Interface
	for _, l := range links {
		ifaces = append(ifaces, l.Interface)
	}
	before := len(a)
	for _, s := range services {
		if a[s] != nil {
			continue
		}
		// The host needs a trailing dot, or zeroconf appends the domain a second time; the domain must have no trailing
		// dot.
		server, registerErr := zeroconf.RegisterProxy(s.Instance, s.Type, "local", s.Port, host+".", nil, strings.Split(s.txt, "\n"), ifaces)
		if registerErr == nil {
			a[s] = server
		} else {
			err = fmt.Errorf("announce %s: %w", s.Type, registerErr)
		}
	}
	if len(a) > before {
		time.Sleep(minServerLifetime)
	}
	return err
}

// close withdraws all services.
func (a announcements) close() {
	for _, server := range a {
		server.Shutdown()
	}
}

// answerHost responds to queries for the host name unless the system's responder does that, and calls updateServices
// after each poll interval. It returns nil when the links have changed or the system's responder no longer responds for
// the name, errTaken when another machine uses the name, and otherwise an error of ctx, s or updateServices.
func (a *Announcer) answerHost(ctx context.Context, s *socket, by string, updateServices func() error) error {
	name := hostName(a.opts.Name, a.suffix) + "."
	receive := func(p packet) error {
		switch {
		case by == BySystem:
		case !p.msg.Response:
			if msg, to := responseTo(p, name); msg != nil {
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
		// After an error here, Run calls machineLinks again, gets the same error and pauses.
		if links, err := machineLinks(a.opts.Interfaces); err != nil || !slices.EqualFunc(links, s.links, link.equal) {
			return nil
		}
		if err := updateServices(); err != nil {
			return err
		}
		if by == BySystem && n%pollsPerCheck == 0 { // the system's responder may have been stopped
			if found, err := s.ask(ctx, name); err != nil || found.verdict != system {
				return err
			}
		}
	}
}

// Parameters of probing (RFC 6762 sections 8.1 and 8.2). Probing starts after a random delay of up to probeGap, because
// many machines may start at the same moment after a power cut. A tie-break decides between machines that probe for the
// same name at the same time. The last candidate is "perch-15", because the RFC requires longer pauses after fifteen
// conflicts.
const (
	probes     = 3                      // queries for each candidate
	probeGap   = 250 * time.Millisecond // pause after a query
	probeYield = time.Second            // pause after a lost tie-break
	maxBids    = 4                      // lost tie-breaks after which a candidate counts as taken
	maxSuffix  = 15
)

// verdict says who uses a name. If packets disagree, the greater verdict counts.
type verdict int

const (
	free     verdict = iota // nobody uses the name
	system                  // the responder of this machine's system uses the name
	outbid                  // another machine is probing for the name and has won the tie-break
	occupied                // another machine uses the name
)

// finding is the verdict on a name. by is the address of the other machine; the zero Addr if no other machine uses or
// wants the name.
type finding struct {
	verdict
	by netip.Addr
}

// claim chooses the host name by setting Announcer.suffix. It returns the program that responds to queries for the name.
// It returns an error if all candidates are taken, or if probing fails.
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

// ask probes for a name and returns the finding, whose verdict is never outbid. If it loses all tie-breaks, the verdict
// is occupied, although the other machine has only probed for the name.
func (s *socket) ask(ctx context.Context, name string) (found finding, err error) {
	own := ownAddresses(s.links)
	receive := func(p packet) error {
		if judged := judge(p, name, own); judged.verdict > found.verdict {
			found = judged
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

// judge returns what a packet says about a name. own holds the addresses of this machine. A record with one of them is not
// a conflict: the packet comes from the system's responder, from another interface of this machine, or from a repeater in
// the router.
func judge(p packet, name string, own []netip.Addr) (found finding) {
	if p.msg.Response {
		for _, rr := range slices.Concat(p.msg.Answer, p.msg.Extra) {
			ip, ok := addressOf(rr, name)
			switch {
			case !ok || rr.Header().Ttl == 0 || found.verdict == occupied: // a record with TTL 0 is a goodbye
			case slices.Contains(own, ip):
				found.verdict = system
			default:
				found = finding{occupied, ip}
			}
		}
		return found
	}
	// In a tie-break, address records are ordered by type, A before AAAA, and then by their bytes (RFC 6762 section 8.2). This
	// is the order of netip.Addr.Compare, which compares lengths first.
	theirs := addressesFor(p.msg.Ns, name)
	ours := slices.SortedFunc(slices.Values(p.link.addrs), netip.Addr.Compare)
	isOwn := slices.ContainsFunc(theirs, func(ip netip.Addr) bool { return slices.Contains(own, ip) })
	if !isOwn && slices.CompareFunc(theirs, ours, netip.Addr.Compare) > 0 {
		return finding{outbid, theirs[0]}
	}
	return found
}
