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
// the same moment; one second of waiting after losing to another prober (RFC 6762 sections 8.1 and 8.2).
const (
	probes     = 3
	probeGap   = 250 * time.Millisecond
	probeYield = time.Second
	maxBids    = 4
)

// verdict is what a packet shows, or a round of probing found, about a name; the greater counts more.
type verdict int

const (
	free     verdict = iota // no machine answers for it
	system                  // this machine's own responder does
	outbid                  // another prober wants it too, and goes first
	occupied                // another machine has it
)

// finding is the verdict on a name, and the address that answered for it where that is another machine's.
type finding struct {
	verdict
	by netip.Addr
}

// errTaken ends an announcement whose name another machine turned out to have; the next one probes again.
var errTaken = errors.New("another machine answers for the name")

// claim finds the name to use, in Announcer.suffix, and which program answers for it.
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
			a.holder = w.by
		}
		a.log.Warn("another machine has the name on the network; give one of the two another name", "host", host, "address", w.by,
			"next", hostName(a.opts.Name, a.suffix+1))
	}
	a.suffix = 1
	return ByNobody, fmt.Errorf("%s and its variants up to -%d are taken; set another name", hostName(a.opts.Name, 1), maxSuffix)
}

// ask probes for name until it is known to be free, occupied or the system's. Where it loses the tie-break again and
// again, the other machine probes and never announces; the name is left to it.
func (s *socket) ask(ctx context.Context, name string) (found finding, err error) {
	for range maxBids {
		if found, err = s.probeRound(ctx, name); err != nil || found.verdict != outbid {
			return found, err
		}
		if _, err = s.listenFor(ctx, name, probeYield); err != nil {
			return found, err
		}
	}
	return finding{occupied, found.by}, nil
}

func (s *socket) probeRound(ctx context.Context, name string) (found finding, err error) {
	_, err = s.listenFor(ctx, name, rand.N(probeGap))
	for n := 0; n < probes && err == nil && found.verdict < outbid; n++ {
		s.multicast(func(l link) *dns.Msg { return probe(name, l) })
		var now finding
		if now, err = s.listenFor(ctx, name, probeGap); now.verdict > found.verdict {
			found = now
		}
	}
	return found, err
}

// listenFor receives packets for d and returns the strongest finding about name.
func (s *socket) listenFor(ctx context.Context, name string, d time.Duration) (found finding, err error) {
	own := ownAddresses(s.links)
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return found, ctx.Err()
		case err := <-s.failed:
			return found, err
		case <-timer.C:
			return found, nil
		case p := <-s.packets:
			if now := judge(p, name, own); now.verdict > found.verdict {
				found = now
			}
		}
	}
}

// judge returns what one packet shows about name. A record with one of the machine's own addresses is no conflict: it
// came from the system's responder, from another interface of ours, or from a repeater in the router.
func judge(p packet, name string, own map[netip.Addr]bool) (found finding) {
	if p.msg.Response {
		for _, rr := range slices.Concat(p.msg.Answer, p.msg.Extra) {
			ip, ok := addressOf(rr, name)
			switch {
			case !ok || rr.Header().Ttl == 0 || found.verdict == occupied: // a goodbye claims nothing
			case own[ip]:
				found.verdict = system
			default:
				found = finding{occupied, ip}
			}
		}
		return found
	}
	theirs := addressesFor(p.msg.Ns, name)
	if slices.ContainsFunc(theirs, func(ip netip.Addr) bool { return own[ip] }) {
		return found
	}
	// RFC 6762 section 8.2 orders address records by type, A before AAAA, then by their bytes. This is the order of netip,
	// which compares lengths first.
	ours := p.link.addrs()
	slices.SortFunc(ours, netip.Addr.Compare)
	if slices.CompareFunc(theirs, ours, netip.Addr.Compare) > 0 {
		return finding{outbid, theirs[0]}
	}
	return found
}
