package mdns

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"perch/must"
)

const ours = "perch.local."

// question returns the packet of a query with one question for the name ours, sent from the UDP port from over IPv4.
func question(l link, from int, qtype, class uint16) packet {
	msg := &dns.Msg{Question: []dns.Question{{Name: ours, Qtype: qtype, Qclass: class}}}
	msg.Id = 7
	return packet{msg: msg, from: &net.UDPAddr{IP: net.IPv4(192, 168, 1, 9), Port: from}, link: l}
}

// summary lists the types of the answers of a message, such as "A AAAA" or "NSEC has A", or returns "silent" for nil.
func summary(msg *dns.Msg) string {
	if msg == nil {
		return "silent"
	}
	var words []string
	for _, rr := range msg.Answer {
		words = append(words, dns.TypeToString[rr.Header().Rrtype])
		if nsec, ok := rr.(*dns.NSEC); ok {
			for _, t := range nsec.TypeBitMap {
				words = append(words, "has", dns.TypeToString[t])
			}
		}
	}
	return strings.Join(words, " ")
}

func TestAnswer(t *testing.T) {
	v4 := newTestLink("eth0", "192.168.1.2")
	dual := newTestLink("eth0", "192.168.1.2", "fd00::2")
	local := newTestLink("eth0", "192.168.1.2", "fe80::2")
	v6 := newTestLink("eth0", "fd00::2")
	tests := map[string]struct {
		link         link
		name         string
		qtype, class uint16
		want         string
	}{
		"A":                               {v4, ours, dns.TypeA, dns.ClassINET, "A"},
		"AAAA":                            {dual, ours, dns.TypeAAAA, dns.ClassINET, "AAAA"},
		"AAAA on IPv4 only":               {v4, ours, dns.TypeAAAA, dns.ClassINET, "NSEC has A"},
		"A on IPv6 only":                  {v6, ours, dns.TypeA, dns.ClassINET, "NSEC has AAAA"},
		"HTTPS":                           {dual, ours, dns.TypeHTTPS, dns.ClassINET, "NSEC has A has AAAA"},
		"ANY, a stranger's probe":         {dual, ours, dns.TypeANY, dns.ClassINET, "A AAAA"},
		"link-local AAAA asked over IPv4": {local, ours, dns.TypeAAAA, dns.ClassINET, "AAAA"},
		"capitals, and class ANY":         {v4, "PERCH.local.", dns.TypeANY, dns.ClassANY, "A"},
		"another name":                    {v4, "other.local.", dns.TypeANY, dns.ClassINET, "silent"},
		"another class":                   {v4, ours, dns.TypeANY, dns.ClassCHAOS, "silent"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := question(tt.link, port, tt.qtype, tt.class)
			p.msg.Question[0].Name = tt.name
			msg, to := responseTo(p, ours)
			if got := summary(msg); got != tt.want || to != nil {
				t.Fatalf("answer %s to %v, want %s to the group", got, to, tt.want)
			}
			if msg == nil {
				return
			}
			for _, rr := range msg.Answer {
				if rr.Header().Class != dns.ClassINET|topBit || rr.Header().Ttl != hostTTL {
					t.Errorf("%v: want the flush bit and %d s", rr, hostTTL)
				}
			}
			if len(msg.Question) != 0 || msg.Id != 0 {
				t.Errorf("a multicast answer holds id %d, questions %v", msg.Id, msg.Question)
			}
		})
	}
}

func TestAnswerToLegacyQuery(t *testing.T) {
	p := question(newTestLink("eth0", "192.168.1.2"), 49152, dns.TypeAAAA, dns.ClassINET)
	msg, to := responseTo(p, ours)
	if summary(msg) != "NSEC has A" || to != p.from {
		t.Fatalf("answer %s to %v", summary(msg), to)
	}
	if msg.Id != 7 || !slices.Equal(msg.Question, p.msg.Question) {
		t.Errorf("id %d, questions %v: not repeated", msg.Id, msg.Question)
	}
	if h := msg.Answer[0].Header(); h.Ttl != legacyTTL || h.Class != dns.ClassINET {
		t.Errorf("TTL %d, class %#x", h.Ttl, h.Class)
	}
}

func TestAnswerWantedByUnicast(t *testing.T) {
	p := question(newTestLink("eth0", "192.168.1.2"), port, dns.TypeANY, dns.ClassINET|topBit)
	if msg, to := responseTo(p, ours); summary(msg) != "A" || to != p.from {
		t.Errorf("answer %s to %v, want A to the querier", summary(msg), to)
	}
}

func TestKnownAnswers(t *testing.T) {
	l := newTestLink("eth0", "192.168.1.2")
	tests := map[string]struct {
		known string
		want  string
	}{
		"known":           {"perch.local. 100 IN A 192.168.1.2", "silent"},
		"known, but old":  {"perch.local. 59 IN A 192.168.1.2", "A"},
		"another address": {"perch.local. 100 IN A 192.168.1.3", "A"},
		"another record":  {"x.local. 100 IN A 192.168.1.3", "A"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := question(l, port, dns.TypeA, dns.ClassINET)
			rr, err := dns.NewRR(tt.known)
			must.Succeed(t, err)
			p.msg.Answer = []dns.RR{rr}
			if msg, _ := responseTo(p, ours); summary(msg) != tt.want {
				t.Errorf("answer %s, want %s", summary(msg), tt.want)
			}
		})
	}
}

func FuzzPacket(f *testing.F) {
	l := newTestLink("eth0", "192.168.1.2", "fd00::2")
	for _, msg := range []*dns.Msg{response(hostTTL, addressRecords(ours, l.addrs)...), goodbye(ours, l), probe(ours, l), legacyQuery("perch.local")} {
		b, err := msg.Pack()
		must.Succeed(f, err)
		f.Add(b)
	}
	f.Add(brokenNSEC(f))
	own := ownAddresses([]link{l})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parseAsRobot(b, legacyQuery("perch.local"))
		msg := parse(b)
		if msg == nil {
			return
		}
		p := packet{msg: msg, from: &net.UDPAddr{IP: net.IPv4(192, 168, 1, 9), Port: 49152}, link: l}
		judge(p, ours, own)
		if reply, _ := responseTo(p, ours); reply != nil {
			if b, err := reply.Pack(); err != nil || len(b) > maxPacket {
				t.Errorf("reply of %d bytes: %v", len(b), err)
			}
		}
	})
}
