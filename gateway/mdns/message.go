package mdns

import (
	"encoding/binary"
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

// parse reads a message, and returns nil for one to ignore. Of a response with a record that cannot be read the others
// still count: python-zeroconf up to 0.47 garbles the NSEC it adds, and it may be the one that has our name, or the
// server that is looked for. Other operations and response codes are silently ignored (RFC 6762 sections 18.3 and 18.11).
func parse(b []byte) *dns.Msg {
	msg := new(dns.Msg)
	if msg.Unpack(b) != nil && (!msg.Response || !parseRecords(b, msg)) || msg.Opcode != 0 || msg.Rcode != 0 {
		return nil
	}
	return msg
}

// parseRecords reads the records of a message one by one into msg.Answer, whatever their section, and reports whether one
// can be read. The questions of a response are of no use.
func parseRecords(b []byte, msg *dns.Msg) bool {
	const header = 12
	if len(b) < header {
		return false
	}
	count := func(at int) int { return int(binary.BigEndian.Uint16(b[at:])) }
	msg.Answer, msg.Ns, msg.Extra = nil, nil, nil
	off := header
	for range count(4) {
		_, next, err := dns.UnpackDomainName(b, off)
		if err != nil {
			return false
		}
		off = next + 4
	}
	for range count(6) + count(8) + count(10) {
		if off >= len(b) {
			break
		}
		rr, next, err := dns.UnpackRR(b, off) // next is behind a record it cannot read; where the length is wrong too, at the end
		if err == nil {
			msg.Answer = append(msg.Answer, rr)
		}
		off = next
	}
	return len(msg.Answer) > 0
}

// addressRecords are the A and AAAA records of name, a fully qualified one, without the flush bit.
func addressRecords(name string, addrs []netip.Addr) []dns.RR {
	rrs := make([]dns.RR, 0, len(addrs))
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

// addressOf is the address a record gives name, if it gives one.
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

func addressesFor(rrs []dns.RR, name string) (ips []netip.Addr) {
	for _, rr := range rrs {
		if ip, ok := addressOf(rr, name); ok {
			ips = append(ips, ip)
		}
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	return ips
}

// nothingElse states that name has no records but the addresses the link has (RFC 6762 section 6.1). A querier that gets
// it need not wait for its timeout.
func nothingElse(name string, l link) *dns.NSEC {
	rr := &dns.NSEC{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeNSEC, Class: dns.ClassINET, Ttl: hostTTL}, NextDomain: name}
	if len(l.v4) > 0 {
		rr.TypeBitMap = append(rr.TypeBitMap, dns.TypeA)
	}
	if len(l.v6) > 0 {
		rr.TypeBitMap = append(rr.TypeBitMap, dns.TypeAAAA)
	}
	return rr
}

// response wraps answers; each is marked as the whole truth about its name, type and class.
func response(answers ...dns.RR) *dns.Msg {
	msg := &dns.Msg{Answer: answers}
	msg.Response, msg.Authoritative, msg.Compress = true, true, true
	for _, rr := range answers {
		rr.Header().Class |= topBit
	}
	return msg
}

// announcement is a link's addresses for name.
func announcement(name string, l link) *dns.Msg {
	msg := response(addressRecords(name, l.addrs())...)
	msg.Extra = response(nothingElse(name, l)).Answer
	return msg
}

// goodbye takes an announcement back (RFC 6762 section 10.1).
func goodbye(name string, l link) *dns.Msg {
	msg := response(addressRecords(name, l.addrs())...)
	for _, rr := range msg.Answer {
		rr.Header().Ttl = 0
	}
	return msg
}

// probe asks whether name is in use and holds what it is wanted for (RFC 6762 section 8.1). ANY is the question of the
// RFC; an address is asked for besides, because python-zeroconf gives none to ANY. It is one type only: to a type it
// lacks, python-zeroconf replies what [parse] has to mend. No unicast reply is asked for: one to a shared port reaches
// only one of the programs that share it.
func probe(name string, l link) *dns.Msg {
	address := dns.TypeA
	if len(l.v4) == 0 {
		address = dns.TypeAAAA
	}
	msg := &dns.Msg{Ns: addressRecords(name, l.addrs())}
	for _, t := range [...]uint16{dns.TypeANY, address} {
		msg.Question = append(msg.Question, dns.Question{Name: name, Qtype: t, Qclass: dns.ClassINET})
	}
	msg.Compress = true
	return msg
}

// answer is the reply to the questions about name, a fully qualified one, and the receiver: the group where to is nil. It
// is nil where there is nothing to say.
func answer(p packet, name string) (msg *dns.Msg, to *net.UDPAddr) {
	var rrs []dns.RR
	var asked []dns.Question
	for _, q := range p.msg.Question {
		if class := q.Qclass &^ topBit; !strings.EqualFold(q.Name, name) || class != dns.ClassINET && class != dns.ClassANY {
			continue
		}
		asked = append(asked, q)
		addrs := map[uint16][]netip.Addr{dns.TypeA: p.link.v4, dns.TypeAAAA: p.link.v6, dns.TypeANY: p.link.addrs()}[q.Qtype]
		if len(addrs) > 0 {
			rrs = append(rrs, addressRecords(name, addrs)...)
		} else {
			rrs = append(rrs, nothingElse(name, p.link))
		}
		if q.Qclass&topBit != 0 {
			to = p.from
		}
	}
	rrs = slices.DeleteFunc(dns.Dedup(rrs, nil), func(rr dns.RR) bool { return isKnown(rr, p.msg.Answer) })
	if len(rrs) == 0 {
		return nil, nil
	}
	if p.legacy() {
		return legacyResponse(p.msg.Id, asked, rrs), p.from
	}
	return response(rrs...), to
}

// isKnown reports whether the querier knows a record already, for at least half of its life (RFC 6762 section 7.1).
func isKnown(rr dns.RR, known []dns.RR) bool {
	return slices.ContainsFunc(known, func(k dns.RR) bool {
		k = dns.Copy(k)
		k.Header().Class &^= topBit
		return dns.IsDuplicate(rr, k) && k.Header().Ttl >= hostTTL/2
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
