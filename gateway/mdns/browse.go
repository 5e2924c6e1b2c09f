package mdns

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Search is what to look for on the local link.
type Search struct {
	// Type is the DNS-SD type; empty means [Service].
	Type string
	// Except names instances that are passed over, whatever their case: an appliance that looks for servers of a kind
	// it is itself gives its own, which is [Options.Instance].
	Except []string
	// Interfaces names the interfaces to look on, as [Options] do.
	Interfaces []string
}

// Found is an instance that answered.
type Found struct {
	Instance string            // "perch-<id>"; other programs' may hold any character
	Host     string            // "perch.local", without a trailing dot
	Port     int               // TCP, or UDP for a type of UDP; never 0
	Addrs    []netip.Addr      // IPv4 first; at least one. A link-local IPv6 one has its interface for a zone
	TXT      map[string]string // of an appliance: ota, ws, version, id; keys in lower case
}

const (
	// more is how long All waits for the next to answer. A responder that answered all the link within the last second keeps
	// silent (RFC 6762 section 6), and is asked again after one; then it answers within 20 to 120 ms.
	more = 1200 * time.Millisecond
	// chase is the pause before a question for what an answer left out.
	chase = 100 * time.Millisecond
)

// Browse looks for appliances on the local link: it is [Search.Each] of an empty Search.
func Browse(ctx context.Context, found func(Found) bool) error { return Search{}.Each(ctx, found) }

// Each hands each instance to found, once, until found returns false or ctx ends; neither is an error. Only instances
// with a port and an address count. It asks at once and then after 1, 2, 4 and more seconds (RFC 6762 section 5.2).
// It returns [ErrNoMulticast] where there is no link to look on.
//
// zeroconf could browse as well. It drops an answer whole for one record it cannot read, such as the NSEC that
// python-zeroconf sends up to 0.47, never asks for an address that was left out, and asks no more once anybody answered.
func (s Search) Each(ctx context.Context, found func(Found) bool) error {
	kind := cmp.Or(s.Type, Service)
	if !isType(kind) {
		return fmt.Errorf("browse %q: that is no service type", kind)
	}
	links, err := machineLinks(s.Interfaces)
	if err != nil {
		return err
	}
	sock, err := listen(links)
	if err != nil {
		return fmt.Errorf("browse %s: %w", kind, err)
	}
	defer sock.close()
	h := newBrowsing(kind + ".local.")
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, time.Hour) {
		sock.multicast(func(link) *dns.Msg { return h.question() })
		ended, err := s.receive(ctx, sock, h, wait, found)
		if err != nil {
			return fmt.Errorf("browse %s: %w", kind, err)
		}
		if ended {
			return nil
		}
	}
	return nil
}

// receive takes the answers within that time, and asks once for what an answer left out.
func (s Search) receive(ctx context.Context, sock *socket, h *browsing, within time.Duration, found func(Found) bool) (ended bool, err error) {
	timer, chasing := time.NewTimer(within), make(<-chan time.Time)
	defer timer.Stop()
	chased := false
	for {
		select {
		case <-ctx.Done():
			return true, nil
		case err := <-sock.failed:
			return false, err
		case <-timer.C:
			return false, nil
		case <-chasing:
			sock.multicast(func(link) *dns.Msg { return h.question() })
		case p := <-sock.packets:
			// RFC 6762 section 6: a response from another port is ignored.
			if !p.msg.Response || p.legacy() {
				continue
			}
			h.receive(p.msg, p.link.Name)
			for _, f := range h.news() {
				if !s.excepts(f.Instance) && !found(f) {
					return true, nil
				}
			}
			if !chased && len(h.missing()) > 0 {
				chased, chasing = true, time.After(chase)
			}
		}
	}
}

// All returns the instances that are there, ordered by name, so that the same network gives the same order. It waits
// for a first one until ctx ends, and from then on until no other has answered for 1.2 s. None is no error.
func (s Search) All(ctx context.Context) ([]Found, error) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	var all []Found
	quiet := time.AfterFunc(more, enough)
	quiet.Stop()
	defer quiet.Stop()
	err := s.Each(ctx, func(f Found) bool {
		all = append(all, f)
		quiet.Reset(more)
		return true
	})
	slices.SortStableFunc(all, func(a, b Found) int { return strings.Compare(a.Instance, b.Instance) })
	return all, err
}

// Targets is what [Search.All] found as "host:port" to dial, every address of an instance before those of the next.
func (s Search) Targets(ctx context.Context) ([]string, error) {
	all, err := s.All(ctx)
	var targets []string
	for _, f := range all {
		targets = append(targets, f.Targets()...)
	}
	return targets, err
}

// Targets lists the addresses as "host:port" to dial.
func (f Found) Targets() []string {
	var targets []string
	for _, a := range f.Addrs {
		targets = append(targets, net.JoinHostPort(a.String(), strconv.Itoa(f.Port)))
	}
	return targets
}

func (s Search) excepts(instance string) bool {
	return slices.ContainsFunc(s.Except, func(name string) bool { return strings.EqualFold(name, instance) })
}
