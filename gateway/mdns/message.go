package mdns

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

const (
	// hostTTL is the TTL in seconds of records with a host name or address (RFC 6762 section 10).
	hostTTL = 120
	// legacyTTL is the maximum TTL in seconds of records for a legacy querier: a program that asks like an ordinary DNS
	// client, and does not receive later changes (RFC 6762 section 6.7).
	legacyTTL = 10
	// topBit is the most significant bit of a class. In a record it is the flush bit, which removes older records from
	// caches (RFC 6762 section 10.2). In a question it requests a unicast response (section 5.4).
	topBit = 1 << 15
)

// parse parses a message. It returns nil for a message that must be ignored because of its opcode or response code (RFC
// 6762 sections 18.3 and 18.11), and for a query that cannot be parsed. If some records of a response cannot be parsed,
// parse puts all other records, from every section, into Answer. This is needed for python-zeroconf up to 0.47, which
// adds an invalid NSEC record to its responses.
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
	off := 12 // the length of the header
	for range msg.Question {
		_, off, _ = dns.UnpackDomainName(b, off) // no error, because Unpack has parsed the question
		off += 4
	}
	for off < len(b) {
		rr, next, err := dns.UnpackRR(b, off) // even after an error, next is the following record, or len(b) if the length is invalid
		if off = next; err == nil {
			msg.Answer = append(msg.Answer, rr)
		}
	}
	return msg
}

// addressRecords returns the A and AAAA records of a fully qualified name, without the flush bit.
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

// addressOf returns the address in a record. ok is false if this is not an address record of the name.
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

// addressesFor returns the addresses in the address records of a name, sorted.
func addressesFor(rrs []dns.RR, name string) (ips []netip.Addr) {
	for _, rr := range rrs {
		if ip, ok := addressOf(rr, name); ok {
			ips = append(ips, ip)
		}
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	return ips
}

// nsec returns the record which states that a name has no records except the address records of the link (RFC 6762
// section 6.1), so that a program which asks for another type need not wait for its timeout.
func nsec(name string, l link) *dns.NSEC {
	rr := &dns.NSEC{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeNSEC, Class: dns.ClassINET}, NextDomain: name}
	for _, address := range addressRecords(name, l.addrs) {
		rr.TypeBitMap = append(rr.TypeBitMap, address.Header().Rrtype)
	}
	rr.TypeBitMap = slices.Compact(rr.TypeBitMap)
	return rr
}

// response returns a response with the given answers. Each answer gets the flush bit, and the TTL in seconds.
func response(ttl uint32, answers ...dns.RR) *dns.Msg {
	msg := &dns.Msg{MsgHdr: dns.MsgHdr{Response: true, Authoritative: true}, Compress: true, Answer: answers}
	for _, rr := range answers {
		rr.Header().Class |= topBit
		rr.Header().Ttl = ttl
	}
	return msg
}

// goodbye returns the response that withdraws the addresses of a name on a link (RFC 6762 section 10.1).
func goodbye(name string, l link) *dns.Msg { return response(0, addressRecords(name, l.addrs)...) }

// probe returns the query which asks whether a name is in use. It contains the records that will be announced, and a
// question of type ANY (RFC 6762 section 8.1). It also contains a question for one type of address, because
// python-zeroconf does not respond to ANY with addresses. It does not ask for both types, because if python-zeroconf has
// no address of a type, it responds to that type with an invalid message, see [parse]. It does not request a unicast
// response, because a unicast response would reach only one of the programs that share the port.
func probe(name string, l link) *dns.Msg {
	msg := &dns.Msg{Ns: addressRecords(name, l.addrs), Compress: true}
	for _, t := range [...]uint16{dns.TypeANY, msg.Ns[0].Header().Rrtype} {
		msg.Question = append(msg.Question, dns.Question{Name: name, Qtype: t, Qclass: dns.ClassINET})
	}
	return msg
}

// responseTo returns the response to the questions about a fully qualified name, or nil if no response is needed. to is
// the receiver of the response; nil means the multicast group.
func responseTo(p packet, name string) (msg *dns.Msg, to *net.UDPAddr) {
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
	case p.isLegacy():
		return legacyResponse(p.msg, rrs), p.from
	}
	return response(hostTTL, rrs...), to
}

// isKnown reports whether the querier already has a record with at least half of its TTL left (RFC 6762 section 7.1).
func isKnown(rr dns.RR, known []dns.RR) bool {
	return slices.ContainsFunc(known, func(k dns.RR) bool {
		k = dns.Copy(k)
		k.Header().Class &^= topBit
		return dns.IsDuplicate(rr, k) && k.Header().Ttl >= hostTTL/2
	})
}

// legacyResponse returns a response in the form of an ordinary DNS server (RFC 6762 section 6.7). It has the ID and the
// questions of the query, a short TTL, and no flush bit.
func legacyResponse(query *dns.Msg, rrs []dns.RR) *dns.Msg {
	msg := response(legacyTTL, rrs...)
	msg.Id, msg.Question = query.Id, slices.Clone(query.Question)
	for _, rr := range rrs {
		rr.Header().Class &^= topBit
	}
	return msg
}
