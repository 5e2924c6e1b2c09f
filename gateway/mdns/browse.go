package mdns

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Search describes a search for services on the local link.
type Search struct {
	Type       string   // DNS-SD service type, such as Wyoming or OSC
	Except     string   // name of an instance to skip, such as this appliance itself (see [Options.Instance]); case is ignored
	Interfaces []string // network interfaces to search on, as in [Options]
}

// Found is a service instance that a search has found.
type Found struct {
	Instance string            // instance name, "perch-<id>" for an appliance; the names of other programs may contain any character
	Host     string            // host name without a trailing dot, such as "perch.local"
	Port     int               // TCP or UDP port, as the service type says; never 0
	Addrs    []netip.Addr      // at least one address, IPv4 first; the zone of a link-local IPv6 address is the interface
	Sender   netip.Addr        // address of the machine that has sent the host name and port, IPv4 if it has sent them by IPv4
	TXT      map[string]string // TXT record with lower-case keys; the keys of an appliance are ota, ws, version and id
}

const (
	// quietTime is how long All waits for another response. A responder that has multicast its records less than a
	// second ago ignores a query (RFC 6762 section 6). It answers the query that All repeats after a second, within 20
	// to 120 ms.
	quietTime = 1200 * time.Millisecond
	// followUpPause is the pause before a query for records that the responses lacked.
	followUpPause = 200 * time.Millisecond
)

// All returns the instances that it finds, ordered by name. It waits for the first instance until ctx ends, and then
// until no further instance has responded for 1.2 s. Finding no instance is not an error. It sends a query at once, and
// after pauses of 1, 2, 4 and more seconds (RFC 6762 section 5.2). After each query it sends another one for records that
// the responses lacked. If no interface can be used, the error wraps [ErrNoMulticast].
//
// The library zeroconf is not used for browsing: it drops a whole response if it cannot parse one of the records, such as
// the NSEC record of python-zeroconf up to 0.47, it never queries a missing address, and it sends no query after the first
// response.
func (s Search) All(ctx context.Context) ([]Found, error) {
	links, err := machineLinks(s.Interfaces)
	if err != nil {
		return nil, err
	}
	sock, err := listen(links)
	if err != nil {
		return nil, err
	}
	defer sock.close()
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	quiet := time.AfterFunc(math.MaxInt64, enough)
	defer quiet.Stop()
	b := browsing{Search: s}
	receive := func(p packet) error {
		before := len(b.complete())
		if p.msg.Response && !p.isLegacy() { // responses from other ports must be ignored (RFC 6762 section 6)
			b.receive(p.msg, p.from.AddrPort().Addr(), p.link.Name)
		}
		if len(b.complete()) > before {
			quiet.Reset(quietTime)
		}
		return nil
	}
	ask := func(link) *dns.Msg { return b.question() }
	for wait := time.Second; err == nil; wait = min(2*wait, time.Hour) {
		sock.multicast(ask)
		if err = sock.receive(ctx, followUpPause, receive); err == nil {
			if len(b.question().Question) > 1 {
				sock.multicast(ask)
			}
			err = sock.receive(ctx, wait-followUpPause, receive)
		}
	}
	if ctx.Err() != nil {
		err = nil
	}
	return b.complete(), err
}

// Targets returns the result of [Search.All] as "host:port" addresses. The addresses of an instance are adjacent.
func (s Search) Targets(ctx context.Context) (targets []string, err error) {
	instances, err := s.All(ctx)
	for _, f := range instances {
		for _, a := range f.Addrs {
			targets = append(targets, netip.AddrPortFrom(a, uint16(f.Port)).String())
		}
	}
	return targets, err
}

// Limits on the data from responses, which may come from hostile machines.
const (
	maxFound     = 64 // instances
	maxAddrs     = 8  // addresses of an instance
	maxQuestions = 16 // additional questions of a query
)

// browsing is the state of a search.
type browsing struct {
	Search
	instances []*candidate
}

// candidate is an instance; some of its records may be missing.
type candidate struct {
	Found
	name string // name of the SRV and TXT records, with the DNS library's escapes
	host string // name of the address records, with the DNS library's escapes; empty until the SRV record was received
}

// serviceName returns the name of the PTR records, which list the instances.
func (b *browsing) serviceName() string { return b.Type + ".local." }

// receive handles a response that was received on the interface iface. It handles the address records last, because it
// stores addresses only for the hosts that SRV records have named.
func (b *browsing) receive(msg *dns.Msg, sender netip.Addr, iface string) {
	rrs := slices.DeleteFunc(slices.Concat(msg.Answer, msg.Extra), func(rr dns.RR) bool { return rr.Header().Class&^topBit != dns.ClassINET })
	for _, rr := range rrs {
		switch rr := rr.(type) {
		case *dns.PTR:
			if strings.EqualFold(rr.Hdr.Name, b.serviceName()) {
				b.instance(rr.Ptr, rr.Hdr.Ttl)
			}
		case *dns.SRV:
			c := b.instance(rr.Hdr.Name, rr.Hdr.Ttl)
			if !strings.EqualFold(c.host, rr.Target) {
				c.Addrs, c.Sender = nil, netip.Addr{}
			}
			c.host, c.Host, c.Port = rr.Target, strings.TrimSuffix(unescape(rr.Target), "."), int(rr.Port)
			if sender = sender.Unmap(); !c.Sender.Is4() {
				c.Sender = sender
			}
		case *dns.TXT:
			b.instance(rr.Hdr.Name, rr.Hdr.Ttl).TXT = readTXT(rr.Txt)
		}
	}
	for _, rr := range rrs {
		for _, c := range b.instances {
			ip, ok := addressOf(rr, c.host)
			if ip.Is6() && ip.IsLinkLocalUnicast() {
				ip = ip.WithZone(iface)
			}
			if ok && rr.Header().Ttl > 0 && !ip.IsUnspecified() && !ip.IsMulticast() && !slices.Contains(c.Addrs, ip) && len(c.Addrs) < maxAddrs {
				c.Addrs = append(c.Addrs, ip)
				slices.SortStableFunc(c.Addrs, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
			}
		}
	}
}

// instance returns the candidate with the name of a record, and adds it if it is new. If ttl is 0, which is a goodbye,
// it removes the candidate. After a goodbye, for a name of another service type, and if there are too many candidates,
// it returns a candidate that is stored nowhere, so that changes by the caller have no effect.
func (b *browsing) instance(name string, ttl uint32) *candidate {
	labels := dns.Split(name)
	// The instance name is a single label, which may contain any character (RFC 6763 section 4.1.1).
	if len(labels) != 1+dns.CountLabel(b.serviceName()) || !strings.EqualFold(name[labels[1]:], b.serviceName()) {
		return &candidate{}
	}
	i := slices.IndexFunc(b.instances, func(c *candidate) bool { return strings.EqualFold(c.name, name) })
	switch {
	case ttl == 0 && i >= 0:
		b.instances = slices.Delete(b.instances, i, i+1)
	case i >= 0:
		return b.instances[i]
	case ttl > 0 && len(b.instances) < maxFound:
		added := &candidate{Found: Found{Instance: unescape(name[:labels[1]-1]), TXT: map[string]string{}}, name: name}
		b.instances = append(b.instances, added)
		return added
	}
	return &candidate{}
}

// complete returns the instances that have a port and an address, except the one to skip, ordered by name.
func (b *browsing) complete() (list []Found) {
	for _, c := range b.instances {
		if c.Port != 0 && len(c.Addrs) > 0 && !strings.EqualFold(c.Instance, b.Except) {
			list = append(list, c.Found)
		}
	}
	slices.SortStableFunc(list, func(a, b Found) int { return strings.Compare(a.Instance, b.Instance) })
	return list
}

// question returns a query for instances, and for records that the responses lacked. It does not request unicast
// responses, see probe.
func (b *browsing) question() *dns.Msg {
	msg := &dns.Msg{Compress: true}
	ask := func(name string, types ...uint16) {
		for _, t := range types {
			q := dns.Question{Name: name, Qtype: t, Qclass: dns.ClassINET}
			if !slices.Contains(msg.Question, q) && len(msg.Question) <= maxQuestions {
				msg.Question = append(msg.Question, q)
			}
		}
	}
	ask(b.serviceName(), dns.TypePTR)
	for _, c := range b.instances {
		switch {
		case c.host == "":
			ask(c.name, dns.TypeSRV, dns.TypeTXT)
		case len(c.Addrs) == 0:
			ask(c.host, dns.TypeA, dns.TypeAAAA)
		}
	}
	return msg
}

// readTXT returns the key/value pairs of a TXT record, with lower-case keys. If a key occurs more than once, the first one
// counts (RFC 6763 section 6.4).
func readTXT(list []string) map[string]string {
	pairs := map[string]string{}
	for _, s := range slices.Backward(list) {
		if key, value, _ := strings.Cut(unescape(s), "="); key != "" {
			pairs[strings.ToLower(key)] = value
		}
	}
	return pairs
}

// unescape removes the DNS library's escapes, such as \. and \032, from a name or text (RFC 1035 section 5.1).
func unescape(s string) string {
	return regexp.MustCompile(`(?s)\\(\d\d\d|.)`).ReplaceAllStringFunc(s, func(escaped string) string {
		if n, err := strconv.ParseUint(escaped[1:], 10, 8); err == nil && len(escaped) > 2 {
			return string([]byte{byte(n)})
		}
		return escaped[1:]
	})
}

// ErrNoAnswer is wrapped by the error of Resolve if no response that a robot would accept has arrived in time.
var ErrNoAnswer = errors.New("no answer")

// Resolve returns the IPv4 address of a host such as "perch.local". It works like the resolver of a robot, lwIP, which
// sends a legacy query from an ephemeral port, repeats it each second, and accepts only a response in the form of an
// ordinary DNS server. The error wraps [ErrNoAnswer] if ctx has ended, and [ErrNoMulticast] if no interface can be used.
func Resolve(ctx context.Context, host string) (netip.Addr, error) {
	links, err := machineLinks(nil)
	if err != nil {
		return netip.Addr{}, err
	}
	udp, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("ask for %q: %w", host, err)
	}
	defer udp.Close()
	defer context.AfterFunc(ctx, func() { _ = udp.Close() })()
	query, buf, fault := legacyQuery(host), make([]byte, maxPacket), ErrNoAnswer
	for ctx.Err() == nil {
		for _, l := range links {
			conn{udp, "udp4"}.write(query, l, nil)
		}
		_ = udp.SetReadDeadline(time.Now().Add(time.Second))
		for n, err := udp.Read(buf); err == nil; n, err = udp.Read(buf) {
			if ip, ok := parseAsRobot(buf[:n], query); ok {
				return ip, nil
			}
			fault = fmt.Errorf("%w except one that a robot would reject", ErrNoAnswer)
		}
	}
	return netip.Addr{}, fmt.Errorf("ask for %q: %w", host, fault)
}

// legacyQuery returns a query like those of lwIP, with the flag "recursion desired".
func legacyQuery(host string) *dns.Msg {
	return new(dns.Msg).SetQuestion(dns.CanonicalName(host), dns.TypeA)
}

// parseAsRobot parses a response like lwIP's dns_recv. The response must repeat the ID and the single question of the
// query, and must have an A record whose class is IN without the flush bit.
func parseAsRobot(raw []byte, query *dns.Msg) (ip netip.Addr, ok bool) {
	msg := parse(raw)
	if msg == nil || !msg.Response || msg.Id != query.Id || len(msg.Question) != 1 {
		return ip, false
	}
	if msg.Question[0].Name = dns.CanonicalName(msg.Question[0].Name); msg.Question[0] != query.Question[0] {
		return ip, false
	}
	for _, rr := range msg.Answer {
		if ip, ok = addressOf(rr, rr.Header().Name); ok && ip.Is4() && rr.Header().Class == dns.ClassINET {
			return ip, true
		}
	}
	return ip, false
}
