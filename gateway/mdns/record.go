package mdns

import (
	"encoding/binary"
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

const (
	// hostTTL is for records that hold a host name or address (RFC 6762 section 10), in seconds.
	hostTTL = 120
	// legacyTTL is the most a legacy querier may be given (section 6.7): it never learns of changes. pion has one TTL for
	// all queriers, so this is also what its answers carry.
	legacyTTL = 10
	// topBit of a class is "flush older records" in an answer (section 10.2) and "unicast reply please" in a question
	// (section 5.4).
	topBit = 1 << 15
)

// parse reads a message, and returns nil for one to ignore. Of a response with a record that cannot be read the others
// still count: python-zeroconf up to 0.47 garbles the NSEC it adds, and it may be the one that has our name, or the
// server that is looked for. RFC 6762 sections 18.3 and 18.11: other operations and response codes are silently ignored.
func parse(b []byte) *dns.Msg {
	msg := new(dns.Msg)
	if msg.Unpack(b) != nil && (!msg.Response || !salvage(b, msg)) {
		return nil
	}
	if msg.Opcode != 0 || msg.Rcode != 0 {
		return nil
	}
	return msg
}

// salvage reads what it can of a message, and reports whether an answer is among that.
func salvage(b []byte, msg *dns.Msg) bool {
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
	for _, section := range []struct {
		n  int
		to *[]dns.RR
	}{{count(6), &msg.Answer}, {count(8), &msg.Ns}, {count(10), &msg.Extra}} {
		for range section.n {
			if off >= len(b) {
				return len(msg.Answer) > 0
			}
			rr, next, err := dns.UnpackRR(b, off) // next is behind a record it cannot read; where the length is wrong too, at the end
			if err == nil {
				*section.to = append(*section.to, rr)
			}
			off = next
		}
	}
	return len(msg.Answer) > 0
}

// addressRecords are the A and AAAA records of name, a fully qualified one, without the flush bit.
func addressRecords(name string, addrs []netip.Addr) []dns.RR {
	rrs := make([]dns.RR, 0, len(addrs))
	for _, ip := range addrs {
		hdr := dns.RR_Header{Name: name, Class: dns.ClassINET, Ttl: hostTTL}
		if ip.Is4() {
			hdr.Rrtype = dns.TypeA
			rrs = append(rrs, &dns.A{Hdr: hdr, A: ip.AsSlice()})
		} else {
			hdr.Rrtype = dns.TypeAAAA
			rrs = append(rrs, &dns.AAAA{Hdr: hdr, AAAA: ip.AsSlice()})
		}
	}
	return rrs
}

// nothingElse states that name has no records but the addresses the link has (RFC 6762 section 6.1). A querier that gets
// it need not wait for its timeout.
func nothingElse(name string, l link) *dns.NSEC {
	rr := &dns.NSEC{
		Hdr:        dns.RR_Header{Name: name, Rrtype: dns.TypeNSEC, Class: dns.ClassINET, Ttl: hostTTL},
		NextDomain: name,
	}
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
	nsec := nothingElse(name, l)
	nsec.Hdr.Class |= topBit
	msg.Extra = []dns.RR{nsec}
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
// RFC; an address is asked for besides, because responders in the field (python-zeroconf, pion) give none to ANY. It is
// one type only: to a type it lacks, python-zeroconf replies what [parse] has to mend. No unicast reply is asked for: one
// to a shared port reaches only one of the programs that share it.
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

// addressOf is the address a record gives name, if it gives one.
func addressOf(rr dns.RR, name string) (netip.Addr, bool) {
	if !strings.EqualFold(rr.Header().Name, name) {
		return netip.Addr{}, false
	}
	switch rr := rr.(type) {
	case *dns.A:
		ip, ok := netip.AddrFromSlice(rr.A)
		return ip.Unmap(), ok
	case *dns.AAAA:
		return netip.AddrFromSlice(rr.AAAA)
	}
	return netip.Addr{}, false
}
