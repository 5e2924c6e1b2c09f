package mdns

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
)

// Probing: three questions, 250 ms apart, after a random delay that keeps machines apart which a power cut started at
// the same moment; one second of patience for whoever lost to another prober (RFC 6762 sections 8.1 and 8.2).
const (
	probes     = 3
	probeGap   = 250 * time.Millisecond
	probeYield = time.Second
	maxBids    = 4
)

// verdict is what a packet says, or a round of probing found, about a name.
type verdict int

const (
	free     verdict = iota // nobody speaks for it
	system                  // this machine's own responder does
	outbid                  // another prober wants it too, and goes first
	occupied                // another machine has it
)

// word is what was said about a name, and which address spoke for it where that is another machine's.
type word struct {
	verdict
	by netip.Addr
}

// graver is the one that weighs more.
func (w word) graver(o word) word {
	if o.verdict > w.verdict {
		return o
	}
	return w
}

// errTaken ends an announcement whose name another machine turned out to have; the next one probes again.
var errTaken = errors.New("another machine answers for the name")

// claim finds the name to use, in Announcer.suffix, and who answers for it.
func (a *Announcer) claim(ctx context.Context, s *socket) (By, error) {
	for ; a.suffix <= maxSuffix; a.suffix++ {
		host := hostName(a.opts.Name, a.suffix)
		w, err := s.ask(ctx, host+".")
		switch {
		case err != nil:
			return ByNobody, err
		case w.verdict == free:
			return ByPerch, nil
		case w.verdict == system:
			return BySystem, nil
		}
		if a.suffix == 1 {
			a.rival = w.by
		}
		a.log.Warn("another machine has the name on the network; give one of the two another name", "host", host, "address", w.by,
			"next", hostName(a.opts.Name, a.suffix+1))
	}
	a.suffix = 1
	return ByNobody, fmt.Errorf("%s and its variants up to -%d are taken; set another name", hostName(a.opts.Name, 1), maxSuffix)
}

// ask probes for name until it is known to be free, occupied or the system's. Who is outbid again and again faces
// somebody who never claims what he bids for; the name is left to him.
func (s *socket) ask(ctx context.Context, name string) (word, error) {
	var bidder netip.Addr
	for range maxBids {
		w, err := s.probeRound(ctx, name)
		if err != nil || w.verdict != outbid {
			return w, err
		}
		bidder = w.by
		if _, err := s.listenFor(ctx, name, probeYield); err != nil {
			return word{}, err
		}
	}
	return word{occupied, bidder}, nil
}

func (s *socket) probeRound(ctx context.Context, name string) (word, error) {
	if _, err := s.listenFor(ctx, name, rand.N(probeGap)); err != nil {
		return word{}, err
	}
	found := word{}
	for range probes {
		s.multicast(func(l link) *dns.Msg { return probe(name, l) })
		w, err := s.listenFor(ctx, name, probeGap)
		if err != nil {
			return word{}, err
		}
		if found = found.graver(w); found.verdict >= outbid {
			return found, nil
		}
	}
	return found, nil
}

// listenFor hears packets for d and returns the gravest thing they say about name.
func (s *socket) listenFor(ctx context.Context, name string, d time.Duration) (word, error) {
	own := ownAddresses(s.allLinks())
	heard := word{}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return word{}, ctx.Err()
		case err := <-s.failed:
			return word{}, err
		case <-timer.C:
			return heard, nil
		case p := <-s.packets:
			heard = heard.graver(judge(p, name, own))
		}
	}
}

func (s *socket) allLinks() []link {
	links := make([]link, 0, len(s.links))
	for _, l := range s.links {
		links = append(links, l)
	}
	return links
}

// judge tells what one packet says about name. A record that leads to one of the machine's own addresses is no conflict,
// whoever sent it: the system's responder, our packet come back by another interface, or a repeater in the router.
func judge(p packet, name string, own map[netip.Addr]bool) word {
	if p.msg.Response {
		heard := word{}
		for _, rr := range slices.Concat(p.msg.Answer, p.msg.Extra) {
			ip, ok := addressOf(rr, name)
			switch {
			case !ok || rr.Header().Ttl == 0: // a goodbye claims nothing
			case own[ip]:
				heard = heard.graver(word{verdict: system})
			default:
				heard = heard.graver(word{occupied, ip})
			}
		}
		return heard
	}
	theirs := addressesFor(p.msg.Ns, name)
	if len(theirs) == 0 || slices.ContainsFunc(theirs, func(ip netip.Addr) bool { return own[ip] }) {
		return word{}
	}
	ours := p.link.addrs()
	slices.SortFunc(ours, compareRecords)
	if slices.CompareFunc(theirs, ours, compareRecords) > 0 {
		return word{outbid, theirs[0]}
	}
	return word{}
}

func addressesFor(rrs []dns.RR, name string) []netip.Addr {
	var ips []netip.Addr
	for _, rr := range rrs {
		if ip, ok := addressOf(rr, name); ok {
			ips = append(ips, ip)
		}
	}
	slices.SortFunc(ips, compareRecords)
	return ips
}

// compareRecords orders address records as RFC 6762 section 8.2 does: by type, A before AAAA, then by their bytes. This is
// the order of netip, which compares lengths first.
func compareRecords(a, b netip.Addr) int { return a.Compare(b) }
