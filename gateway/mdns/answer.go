package mdns

import (
	"net"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// answer is what this package replies to a question about name, a fully qualified one, and to whom: the group where to
// is nil. It replies only where pion keeps silent, which is
//
//   - to every type but A and AAAA, ANY among them: a stranger's probe would go undefended (RFC 6762 section 8.1);
//   - to A or AAAA where the link has no such address: an NSEC says so (section 6.1);
//   - to AAAA over IPv4 where the link has link-local ones only;
//   - to queries with as many known answers as questions, which pion takes for responses.
func answer(p packet, name string) (msg *dns.Msg, to *net.UDPAddr) {
	var rrs []dns.RR
	var asked []dns.Question
	for _, q := range p.msg.Question {
		class := q.Qclass &^ topBit
		if !strings.EqualFold(q.Name, name) || class != dns.ClassINET && class != dns.ClassANY {
			continue
		}
		found := answerOne(q.Qtype, p, name)
		if len(found) == 0 {
			continue
		}
		rrs, asked = append(rrs, found...), append(asked, q)
		if q.Qclass&topBit != 0 {
			to = p.from
		}
	}
	rrs = unknown(dns.Dedup(rrs, nil), p.msg.Answer)
	if len(rrs) == 0 {
		return nil, nil
	}
	if p.legacy() {
		return legacyResponse(p.msg.Id, asked, rrs), p.from
	}
	return response(rrs...), to
}

func answerOne(qtype uint16, p packet, name string) []dns.RR {
	deaf := len(p.msg.Question) <= len(p.msg.Answer)
	switch l := p.link; {
	case qtype == dns.TypeANY:
		return addressRecords(name, l.addrs())
	case qtype == dns.TypeA && len(l.v4) > 0:
		if deaf {
			return addressRecords(name, l.v4)
		}
		return nil
	case qtype == dns.TypeAAAA && len(l.v6) > 0:
		if deaf || p.overV4() && l.v6LinkLocal() {
			return addressRecords(name, l.v6)
		}
		return nil
	default:
		return []dns.RR{nothingElse(name, l)}
	}
}

// unknown drops what the querier knows already, for at least half of its life (RFC 6762 section 7.1).
func unknown(rrs, known []dns.RR) []dns.RR {
	return slices.DeleteFunc(rrs, func(rr dns.RR) bool {
		return slices.ContainsFunc(known, func(k dns.RR) bool {
			k = dns.Copy(k)
			k.Header().Class &^= topBit
			return dns.IsDuplicate(rr, k) && k.Header().Ttl >= hostTTL/2
		})
	})
}

// legacyResponse is a reply as an ordinary DNS server gives it (RFC 6762 section 6.7): the querier's id and questions, a
// short life, no flush bit.
func legacyResponse(id uint16, asked []dns.Question, rrs []dns.RR) *dns.Msg {
	msg := &dns.Msg{Question: asked, Answer: rrs}
	msg.Id, msg.Response, msg.Authoritative, msg.Compress = id, true, true, true
	for _, rr := range rrs {
		rr.Header().Ttl = min(rr.Header().Ttl, legacyTTL)
	}
	return msg
}
