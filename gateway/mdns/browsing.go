package mdns

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// Limits of what is kept of a hostile machine's answers.
const (
	maxFound     = 64 // instances
	maxAddrs     = 8  // addresses of one host
	maxStrings   = 64 // TXT strings of one instance
	maxQuestions = 16 // in one message
)

// browsing is what answers have held so far about the instances of one service type. Names are kept in lower case, as the
// DNS library writes them.
type browsing struct {
	kind      string // fully qualified
	instances map[string]*candidate
	hosts     map[string][]netip.Addr // of those that instances lead to
	order     []string                // of instances, as they were found
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

// receive takes an answer that came by that interface. Addresses are read last, for only those of known hosts are kept.
func (h *browsing) receive(msg *dns.Msg, iface string) {
	rrs := slices.Concat(msg.Answer, msg.Extra)
	for _, rr := range rrs {
		if class := rr.Header().Class &^ topBit; class != dns.ClassINET {
			continue
		}
		switch rr := rr.(type) {
		case *dns.PTR:
			if strings.EqualFold(rr.Hdr.Name, h.kind) {
				h.instance(rr.Ptr, rr.Hdr.Ttl)
			}
		case *dns.SRV:
			if q := h.instance(rr.Hdr.Name, rr.Hdr.Ttl); q != nil {
				q.host, q.port = rr.Target, rr.Port
			}
		case *dns.TXT:
			if q := h.instance(rr.Hdr.Name, rr.Hdr.Ttl); q != nil {
				q.txt = rr.Txt[:min(len(rr.Txt), maxStrings)]
			}
		}
	}
	for _, q := range h.instances {
		if _, known := h.hosts[dns.CanonicalName(q.host)]; !known && q.host != "" && len(h.hosts) < 2*maxFound {
			h.hosts[dns.CanonicalName(q.host)] = nil
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
		h.order = slices.DeleteFunc(h.order, func(k string) bool { return k == key })
		return nil
	case q == nil && len(h.instances) < maxFound:
		q = &candidate{label: unescape(name[:at[1]-1])}
		h.instances[key] = q
		h.order = append(h.order, key)
	}
	return q
}

// news are the instances that are known well enough, each once.
func (h *browsing) news() []Found {
	var list []Found
	for _, key := range h.order {
		q := h.instances[key]
		addrs := h.hosts[dns.CanonicalName(q.host)]
		if q.reported || q.host == "" || q.port == 0 || len(addrs) == 0 {
			continue
		}
		q.reported = true
		addrs = slices.Clone(addrs)
		slices.SortStableFunc(addrs, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
		list = append(list, Found{
			Instance: q.label, Host: strings.TrimSuffix(unescape(q.host), "."), Port: int(q.port),
			Addrs: addrs, TXT: readTXT(q.txt),
		})
	}
	return list
}

// missing are the questions for what the answers left out.
func (h *browsing) missing() []dns.Question {
	var list []dns.Question
	ask := func(name string, types ...uint16) {
		for _, t := range types {
			if q := (dns.Question{Name: name, Qtype: t, Qclass: dns.ClassINET}); !slices.Contains(list, q) {
				list = append(list, q)
			}
		}
	}
	for _, key := range h.order {
		switch q := h.instances[key]; {
		case q.reported || len(list) >= maxQuestions-2:
		case q.host == "":
			ask(key, dns.TypeSRV, dns.TypeTXT)
		case len(h.hosts[dns.CanonicalName(q.host)]) == 0:
			ask(q.host, dns.TypeA, dns.TypeAAAA)
		}
	}
	return list
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
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		if s[0] != '\\' || len(s) == 1 {
			b.WriteByte(s[0])
			s = s[1:]
			continue
		}
		if len(s) >= 4 {
			if n, err := strconv.ParseUint(s[1:4], 10, 8); err == nil {
				b.WriteByte(byte(n))
				s = s[4:]
				continue
			}
		}
		b.WriteByte(s[1])
		s = s[2:]
	}
	return b.String()
}
