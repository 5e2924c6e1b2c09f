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

// Search is what to look for on the local link.
type Search struct {
	Type       string   // the DNS-SD type, one of this package's constants
	Except     string   // an instance to skip, in upper or lower case: an appliance's own, which is [Options.Instance]
	Interfaces []string // as of [Options]
}

// Found is an instance that answered.
type Found struct {
	Instance string            // "perch-<id>"; other programs' may hold any character
	Host     string            // "perch.local", without a trailing dot
	Port     int               // TCP; never 0
	Addrs    []netip.Addr      // IPv4 first; at least one. A link-local IPv6 one has its interface for a zone
	TXT      map[string]string // of an appliance: ota, ws, version, id; keys in lower case
}

const (
	// quietTime is how long All waits for another answer. A responder that multicast its records within the last second
	// keeps silent (RFC 6762 section 6) and is asked again after one; then it answers within 20 to 120 ms.
	quietTime = 1200 * time.Millisecond
	// followUp is the pause before a question for records that answers left out.
	followUp = 200 * time.Millisecond
)

// All returns the instances that answer, ordered by name. It waits for the first until ctx ends, and from then on until
// no other has answered for 1.2 s. No answer is no error. It asks at once, after 1, 2, 4 and more seconds (RFC 6762
// section 5.2), and each time once more for records that answers left out. Without a link it returns [ErrNoMulticast].
//
// zeroconf could browse as well. It drops an answer whole for one record it cannot read, such as the NSEC that
// python-zeroconf sends up to 0.47, never asks for an address that was left out, and asks no more after the first answer.
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
		had := len(b.complete())
		if p.msg.Response && !p.legacy() { // RFC 6762 section 6: a response from another port is ignored
			b.receive(p.msg, p.link.Name)
		}
		if len(b.complete()) > had {
			quiet.Reset(quietTime)
		}
		return nil
	}
	ask := func(link) *dns.Msg { return b.question() }
	for wait := time.Second; err == nil; wait = min(2*wait, time.Hour) {
		sock.multicast(ask)
		if err = sock.receive(ctx, followUp, receive); err == nil {
			if len(b.question().Question) > 1 {
				sock.multicast(ask)
			}
			err = sock.receive(ctx, wait-followUp, receive)
		}
	}
	if ctx.Err() != nil {
		err = nil
	}
	return b.complete(), err
}

// Targets returns what [Search.All] does as "host:port" to dial, all addresses of an instance before the next's.
func (s Search) Targets(ctx context.Context) (targets []string, err error) {
	all, err := s.All(ctx)
	for _, f := range all {
		for _, a := range f.Addrs {
			targets = append(targets, netip.AddrPortFrom(a, uint16(f.Port)).String())
		}
	}
	return targets, err
}

// Limits of what is stored of a hostile machine's answers.
const (
	maxFound     = 64 // instances
	maxAddrs     = 8  // addresses of one
	maxQuestions = 16 // in one message
)

// browsing is a search with the answers so far.
type browsing struct {
	Search
	instances []*candidate
}

// candidate is an instance as far as it is known.
type candidate struct {
	Found
	name string // of its records, with the DNS library's escapes
	host string // likewise, of the address records; empty until SRV has come
}

func (b *browsing) kind() string { return b.Type + ".local." }

// receive reads an answer that came by an interface. Addresses come last, since only those of known hosts are stored.
func (b *browsing) receive(msg *dns.Msg, iface string) {
	rrs := slices.DeleteFunc(slices.Concat(msg.Answer, msg.Extra), func(rr dns.RR) bool { return rr.Header().Class&^topBit != dns.ClassINET })
	for _, rr := range rrs {
		switch rr := rr.(type) {
		case *dns.PTR:
			if strings.EqualFold(rr.Hdr.Name, b.kind()) {
				b.instance(rr.Ptr, rr.Hdr.Ttl)
			}
		case *dns.SRV:
			c := b.instance(rr.Hdr.Name, rr.Hdr.Ttl)
			if !strings.EqualFold(c.host, rr.Target) {
				c.Addrs = nil
			}
			c.host, c.Host, c.Port = rr.Target, strings.TrimSuffix(unescape(rr.Target), "."), int(rr.Port)
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

// instance returns the instance of a record's name, adding it if it is new. For a name of another type, too many
// instances, or a goodbye (ttl 0), which removes the instance, it returns a value that is not stored.
func (b *browsing) instance(name string, ttl uint32) *candidate {
	at := dns.Split(name)
	// RFC 6763 section 4.1.1: the instance is one label, of any characters.
	if len(at) != 1+dns.CountLabel(b.kind()) || !strings.EqualFold(name[at[1]:], b.kind()) {
		return &candidate{}
	}
	i := slices.IndexFunc(b.instances, func(c *candidate) bool { return strings.EqualFold(c.name, name) })
	switch {
	case ttl == 0 && i >= 0:
		b.instances = slices.Delete(b.instances, i, i+1)
	case i >= 0:
		return b.instances[i]
	case ttl > 0 && len(b.instances) < maxFound:
		added := &candidate{Found: Found{Instance: unescape(name[:at[1]-1]), TXT: map[string]string{}}, name: name}
		b.instances = append(b.instances, added)
		return added
	}
	return &candidate{}
}

// complete returns the instances with a port and an address, ordered by name.
func (b *browsing) complete() (list []Found) {
	for _, c := range b.instances {
		if c.Port != 0 && len(c.Addrs) > 0 && !strings.EqualFold(c.Instance, b.Except) {
			list = append(list, c.Found)
		}
	}
	slices.SortStableFunc(list, func(a, b Found) int { return strings.Compare(a.Instance, b.Instance) })
	return list
}

// question asks for instances, and for records that answers left out. It asks for replies to the group, as a probe does.
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
	ask(b.kind(), dns.TypePTR)
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

// readTXT reads the pairs of TXT strings. RFC 6763 section 6.4: keys ignore case, and the first of equal ones counts.
func readTXT(list []string) map[string]string {
	pairs := map[string]string{}
	for _, s := range slices.Backward(list) {
		if key, value, _ := strings.Cut(unescape(s), "="); key != "" {
			pairs[strings.ToLower(key)] = value
		}
	}
	return pairs
}

// unescape undoes the DNS library's escapes in a name or text: \. and \032 stand for the byte itself (RFC 1035 section 5.1).
func unescape(s string) string {
	return regexp.MustCompile(`(?s)\\(\d\d\d|.)`).ReplaceAllStringFunc(s, func(escaped string) string {
		if n, err := strconv.ParseUint(escaped[1:], 10, 8); err == nil && len(escaped) > 2 {
			return string([]byte{byte(n)})
		}
		return escaped[1:]
	})
}

// ErrNoAnswer is returned when no machine answered for a name before the context ended.
var ErrNoAnswer = errors.New("no answer")

// Resolve asks for the IPv4 address of host ("perch.local") as a robot does: lwIP sends one legacy query from an
// ephemeral port and accepts only what a DNS server would reply. It asks again each second, which is lwIP's pause, until
// ctx ends, and then returns [ErrNoAnswer]. Without a link it returns [ErrNoMulticast].
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
			if ip, ok := asRobot(buf[:n], query); ok {
				return ip, nil
			}
			fault = fmt.Errorf("%w but one a robot would not take", ErrNoAnswer)
		}
	}
	return netip.Addr{}, fmt.Errorf("ask for %q: %w", host, fault)
}

// legacyQuery is the message lwIP sends, recursion desired and all.
func legacyQuery(host string) *dns.Msg {
	return new(dns.Msg).SetQuestion(dns.CanonicalName(host), dns.TypeA)
}

// asRobot reads an answer as lwIP's dns_recv does: it must have the query's id and exactly its question, and an A record of
// the plain class IN, without the flush bit.
func asRobot(raw []byte, query *dns.Msg) (ip netip.Addr, ok bool) {
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
