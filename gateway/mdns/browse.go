package mdns

import (
	"cmp"
	"context"
	"fmt"
	"maps"
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
	Type       string   // the DNS-SD type; empty means [Service]
	Except     []string // instances that are passed over, whatever their case: an appliance's own, which is [Options.Instance]
	Interfaces []string // to look on, as of [Options]
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
// with a port and an address count. It asks at once and then after 1, 2, 4 and more seconds (RFC 6762 section 5.2), and
// after each of these once for what an answer left out. It returns [ErrNoMulticast] where there is no link to look on.
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
	ask := func() { sock.multicast(func(link) *dns.Msg { return h.question() }) }
	ask()
	wait, chased := time.Second, false
	again, chasing := time.NewTimer(wait), make(<-chan time.Time)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-sock.failed:
			return fmt.Errorf("browse %s: %w", kind, err)
		case <-again.C:
			ask()
			wait, chased = min(2*wait, time.Hour), false
			again.Reset(wait)
		case <-chasing:
			ask()
		case p := <-sock.packets:
			if !p.msg.Response || p.legacy() { // RFC 6762 section 6: a response from another port is ignored
				continue
			}
			h.receive(p.msg, p.link.Name)
			for _, f := range h.news() {
				if !s.excepts(f.Instance) && !found(f) {
					return nil
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
func (s Search) All(ctx context.Context) (all []Found, err error) {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	quiet := time.AfterFunc(time.Hour, enough)
	quiet.Stop()
	defer quiet.Stop()
	err = s.Each(ctx, func(f Found) bool {
		all = append(all, f)
		quiet.Reset(more)
		return true
	})
	slices.SortStableFunc(all, func(a, b Found) int { return strings.Compare(a.Instance, b.Instance) })
	return all, err
}

// Targets is what [Search.All] found as "host:port" to dial, every address of an instance before those of the next.
func (s Search) Targets(ctx context.Context) (targets []string, err error) {
	all, err := s.All(ctx)
	for _, f := range all {
		targets = append(targets, f.Targets()...)
	}
	return targets, err
}

// Targets lists the addresses as "host:port" to dial.
func (f Found) Targets() (targets []string) {
	for _, a := range f.Addrs {
		targets = append(targets, net.JoinHostPort(a.String(), strconv.Itoa(f.Port)))
	}
	return targets
}

func (s Search) excepts(instance string) bool {
	return slices.ContainsFunc(s.Except, func(name string) bool { return strings.EqualFold(name, instance) })
}

// Limits of what is stored of a hostile machine's answers.
const (
	maxFound     = 64 // instances
	maxAddrs     = 8  // addresses of one host
	maxStrings   = 64 // TXT strings of one instance
	maxQuestions = 16 // in one message
)

// browsing is what answers have held so far about the instances of one service type. Keys are names in lower case.
type browsing struct {
	kind      string // fully qualified
	instances map[string]*candidate
	hosts     map[string][]netip.Addr // of those that instances lead to
}

// candidate is an instance as far as it is known.
type candidate struct {
	label    string // as it was spelled, without escapes
	host     string // fully qualified; empty until SRV has come
	port     uint16
	txt      []string
	reported bool
}

func newBrowsing(kind string) *browsing {
	return &browsing{kind: kind, instances: map[string]*candidate{}, hosts: map[string][]netip.Addr{}}
}

// receive takes an answer that came by that interface. Addresses are read last, for only those of known hosts are stored.
func (h *browsing) receive(msg *dns.Msg, iface string) {
	rrs := slices.DeleteFunc(slices.Concat(msg.Answer, msg.Extra), func(rr dns.RR) bool { return rr.Header().Class&^topBit != dns.ClassINET })
	for _, rr := range rrs {
		switch rr := rr.(type) {
		case *dns.PTR:
			if strings.EqualFold(rr.Hdr.Name, h.kind) {
				h.instance(rr.Ptr, rr.Hdr.Ttl)
			}
		case *dns.SRV:
			if q := h.instance(rr.Hdr.Name, rr.Hdr.Ttl); q != nil {
				q.host, q.port = rr.Target, rr.Port
				host := dns.CanonicalName(q.host)
				if _, known := h.hosts[host]; !known && len(h.hosts) < 2*maxFound {
					h.hosts[host] = nil
				}
			}
		case *dns.TXT:
			if q := h.instance(rr.Hdr.Name, rr.Hdr.Ttl); q != nil {
				q.txt = rr.Txt[:min(len(rr.Txt), maxStrings)]
			}
		}
	}
	for _, rr := range rrs {
		name := dns.CanonicalName(rr.Header().Name)
		addrs, wanted := h.hosts[name]
		ip, ok := addressOf(rr, name)
		if !ok || !wanted || rr.Header().Ttl == 0 || ip.IsUnspecified() || ip.IsMulticast() {
			continue
		}
		if ip.Is6() && ip.IsLinkLocalUnicast() {
			ip = ip.WithZone(iface)
		}
		if len(addrs) < maxAddrs && !slices.Contains(addrs, ip) {
			h.hosts[name] = append(addrs, ip)
		}
	}
}

// instance is the one of that name, or nil where the name is not of the type, there are too many, or it is a goodbye.
func (h *browsing) instance(name string, ttl uint32) *candidate {
	// RFC 6763 section 4.1.1: the instance is one label, whatever is in it.
	at := dns.Split(name)
	if len(at) != 1+dns.CountLabel(h.kind) || !strings.EqualFold(name[at[1]:], h.kind) {
		return nil
	}
	key := dns.CanonicalName(name)
	q := h.instances[key]
	switch {
	case ttl == 0:
		delete(h.instances, key)
		return nil
	case q == nil && len(h.instances) < maxFound:
		q = &candidate{label: unescape(name[:at[1]-1])}
		h.instances[key] = q
	}
	return q
}

// news are the instances that are known well enough, each once.
func (h *browsing) news() (list []Found) {
	for _, key := range slices.Sorted(maps.Keys(h.instances)) {
		q := h.instances[key]
		addrs := slices.Clone(h.hosts[dns.CanonicalName(q.host)])
		if q.reported || q.host == "" || q.port == 0 || len(addrs) == 0 {
			continue
		}
		q.reported = true
		slices.SortStableFunc(addrs, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
		host := strings.TrimSuffix(unescape(q.host), ".")
		list = append(list, Found{Instance: q.label, Host: host, Port: int(q.port), Addrs: addrs, TXT: readTXT(q.txt)})
	}
	return list
}

// missing are the questions for what the answers left out.
func (h *browsing) missing() (list []dns.Question) {
	ask := func(name string, types ...uint16) {
		for _, t := range types {
			list = append(list, dns.Question{Name: name, Qtype: t, Qclass: dns.ClassINET})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(h.instances)) {
		if h.instances[key].host == "" {
			ask(key, dns.TypeSRV, dns.TypeTXT)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(h.hosts)) {
		if len(h.hosts[host]) == 0 {
			ask(host, dns.TypeA, dns.TypeAAAA)
		}
	}
	return list[:min(len(list), maxQuestions)]
}

// question asks for instances, and for what is missing of them. It asks for replies to the group, as a probe does.
func (h *browsing) question() *dns.Msg {
	msg := &dns.Msg{Question: []dns.Question{{Name: h.kind, Qtype: dns.TypePTR, Qclass: dns.ClassINET}}}
	msg.Question = append(msg.Question, h.missing()...)
	msg.Compress = true
	return msg
}

// readTXT makes pairs of TXT strings. RFC 6763 section 6.4: keys have no case, and the first of equal ones counts.
func readTXT(list []string) map[string]string {
	pairs := map[string]string{}
	for _, s := range list {
		key, value, _ := strings.Cut(unescape(s), "=")
		key = strings.ToLower(key)
		if _, again := pairs[key]; key != "" && !again {
			pairs[key] = value
		}
	}
	return pairs
}

// unescape takes back what the DNS library does to a name or text: \. and \032 stand for the byte itself (RFC 1035
// section 5.1).
func unescape(s string) string {
	var b strings.Builder
	for ; s != ""; s = s[1:] {
		if s[0] == '\\' && len(s) > 1 {
			if n, err := strconv.ParseUint(s[1:min(4, len(s))], 10, 8); err == nil && len(s) >= 4 {
				b.WriteByte(byte(n))
				s = s[3:]
				continue
			}
			s = s[1:]
		}
		b.WriteByte(s[0])
	}
	return b.String()
}
