package mdns

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

const (
	// hostTTL is for records that hold a host name or address (RFC 6762 section 10), in seconds.
	hostTTL = 120
	// legacyTTL is the most a legacy querier may be given (section 6.7): it never learns of changes.
	legacyTTL = 10
	// topBit of a class is "flush older records" in an answer (section 10.2) and "unicast reply please" in a question
	// (section 5.4).
	topBit = 1 << 15
)

// parse reads a message, and returns nil if it is to be ignored: another operation or response code (RFC 6762 sections
// 18.3 and 18.11), or unreadable. An unreadable record of a response is left out, and the others, of all sections, become
// answers: python-zeroconf up to 0.47 garbles the NSEC it adds, and may have our name or be the server searched for.
func parse(b []byte) *dns.Msg {
	msg := new(dns.Msg)
	err := msg.Unpack(b)
	if err != nil && !msg.Response || msg.Opcode != 0 || msg.Rcode != 0 {
		return nil
	}
	if err == nil {
		return msg
	}
	msg.Answer = nil
	off := 12 // behind the header
	for range msg.Question {
		_, off, _ = dns.UnpackDomainName(b, off) // it was read once
		off += 4
	}
	for off < len(b) {
		rr, next, err := dns.UnpackRR(b, off) // next is behind a record it cannot read; with a wrong length, at the end
		if off = next; err == nil {
			msg.Answer = append(msg.Answer, rr)
		}
	}
	return msg
}

// addressRecords returns the A and AAAA records of name, which is fully qualified, without the flush bit.
func addressRecords(name string, addrs []netip.Addr) (rrs []dns.RR) {
	for _, ip := range addrs {
		hdr := dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: hostTTL}
		if ip.Is4() {
			rrs = append(rrs, &dns.A{Hdr: hdr, A: ip.AsSlice()})
		} else {
			hdr.Rrtype = dns.TypeAAAA
			rrs = append(rrs, &dns.AAAA{Hdr: hdr, AAAA: ip.AsSlice()})
		}
	}
	return rrs
}

// addressOf returns the address a record gives name, if it gives one.
func addressOf(rr dns.RR, name string) (ip netip.Addr, ok bool) {
	if strings.EqualFold(rr.Header().Name, name) {
		switch rr := rr.(type) {
		case *dns.A:
			ip, ok = netip.AddrFromSlice(rr.A)
		case *dns.AAAA:
			return netip.AddrFromSlice(rr.AAAA)
		}
	}
	return ip.Unmap(), ok
}

// addressesFor returns the addresses the records give name, in order.
func addressesFor(rrs []dns.RR, name string) (ips []netip.Addr) {
	for _, rr := range rrs {
		if ip, ok := addressOf(rr, name); ok {
			ips = append(ips, ip)
		}
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	return ips
}

// nsec states that name has no records but the addresses of the link (RFC 6762 section 6.1). A querier that gets it need
// not wait for its timeout.
func nsec(name string, l link) *dns.NSEC {
	rr := &dns.NSEC{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeNSEC, Class: dns.ClassINET}, NextDomain: name}
	for _, address := range addressRecords(name, l.addrs) {
		rr.TypeBitMap = append(rr.TypeBitMap, address.Header().Rrtype)
	}
	rr.TypeBitMap = slices.Compact(rr.TypeBitMap)
	return rr
}

// response wraps answers that live for ttl seconds and replace older records of their name, type and class.
func response(ttl uint32, answers ...dns.RR) *dns.Msg {
	msg := &dns.Msg{MsgHdr: dns.MsgHdr{Response: true, Authoritative: true}, Compress: true, Answer: answers}
	for _, rr := range answers {
		rr.Header().Class |= topBit
		rr.Header().Ttl = ttl
	}
	return msg
}

// goodbye withdraws a link's addresses for name (RFC 6762 section 10.1).
func goodbye(name string, l link) *dns.Msg { return response(0, addressRecords(name, l.addrs)...) }

// probe asks whether name is in use, and holds the records to be announced (RFC 6762 section 8.1). ANY is the question of
// the RFC; an address is asked for as well, because python-zeroconf gives none to ANY, but of one type only: to a type it
// lacks, python-zeroconf replies what [parse] has to repair. No unicast reply is asked for: sent to a shared port, it
// reaches only one of the programs.
func probe(name string, l link) *dns.Msg {
	msg := &dns.Msg{Ns: addressRecords(name, l.addrs), Compress: true}
	for _, t := range [...]uint16{dns.TypeANY, msg.Ns[0].Header().Rrtype} {
		msg.Question = append(msg.Question, dns.Question{Name: name, Qtype: t, Qclass: dns.ClassINET})
	}
	return msg
}

// answer returns the reply to the questions about name, which is fully qualified, and its receiver: the group if to is
// nil. msg is nil if no reply is due.
func answer(p packet, name string) (msg *dns.Msg, to *net.UDPAddr) {
	var rrs []dns.RR
	for _, q := range p.msg.Question {
		if class := q.Qclass &^ topBit; !strings.EqualFold(q.Name, name) || class != dns.ClassINET && class != dns.ClassANY {
			continue
		}
		matching := slices.DeleteFunc(addressRecords(name, p.link.addrs), func(rr dns.RR) bool {
			return q.Qtype != dns.TypeANY && q.Qtype != rr.Header().Rrtype
		})
		if len(matching) == 0 {
			matching = []dns.RR{nsec(name, p.link)}
		}
		rrs = append(rrs, matching...)
		if q.Qclass&topBit != 0 {
			to = p.from
		}
	}
	rrs = slices.DeleteFunc(dns.Dedup(rrs, nil), func(rr dns.RR) bool { return isKnown(rr, p.msg.Answer) })
	switch {
	case len(rrs) == 0:
		return nil, nil
	case p.legacy():
		return legacyResponse(p.msg, rrs), p.from
	}
	return response(hostTTL, rrs...), to
}

// isKnown reports whether the querier has a record already, for at least half of its life (RFC 6762 section 7.1).
func isKnown(rr dns.RR, known []dns.RR) bool {
	return slices.ContainsFunc(known, func(k dns.RR) bool {
		k = dns.Copy(k)
		k.Header().Class &^= topBit
		return dns.IsDuplicate(rr, k) && k.Header().Ttl >= hostTTL/2
	})
}

// legacyResponse is a reply as an ordinary DNS server gives it (RFC 6762 section 6.7): the querier's id and questions, a
// short life, no flush bit.
func legacyResponse(query *dns.Msg, rrs []dns.RR) *dns.Msg {
	msg := response(legacyTTL, rrs...)
	msg.Id, msg.Question = query.Id, slices.Clone(query.Question)
	for _, rr := range rrs {
		rr.Header().Class &^= topBit
	}
	return msg
}
