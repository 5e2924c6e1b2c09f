package mdns

import (
	"encoding/hex"
	"slices"
	"testing"

	"github.com/miekg/dns"

	"perch/must"
)

// brokenNSEC returns a response of python-zeroconf 0.47 for perch.local: an A record, and an NSEC record of 8 bytes whose
// length says 10.
func brokenNSEC(t testing.TB) []byte {
	b, err := hex.DecodeString("123484000001000100000001057065726368056c6f63616c0000010001" +
		"c00c000100010000007800040a4d0001" + "c00c002f000100001194000ac00c0000000400000008")
	must.Succeed(t, err)
	return b
}

func TestParse(t *testing.T) {
	if msg := parse(brokenNSEC(t)); msg == nil || !slices.Equal(addressesFor(msg.Answer, ours), addrs("10.77.0.1")) {
		t.Errorf("broken additional part: %v, want the answer kept", msg)
	}
	for name, change := range map[string]func(*dns.Msg){
		"another operation": func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate },
		"a response code":   func(m *dns.Msg) { m.Rcode = dns.RcodeNameError },
	} {
		msg := legacyQuery("perch.local")
		change(msg)
		b, err := msg.Pack()
		must.Succeed(t, err)
		if parse(b) != nil {
			t.Errorf("%s is heeded", name)
		}
	}
	if parse([]byte("not DNS")) != nil {
		t.Error("noise is heeded")
	}
}

// packed packs a message and unpacks it again.
func packed(t *testing.T, msg *dns.Msg) *dns.Msg {
	t.Helper()
	b, err := msg.Pack()
	must.Succeed(t, err)
	out := new(dns.Msg)
	must.Succeed(t, out.Unpack(b))
	return out
}

func TestGoodbye(t *testing.T) {
	msg := packed(t, goodbye(ours, newTestLink("eth0", "192.168.1.2", "fd00::2")))
	if summary(msg) != "A AAAA" {
		t.Errorf("goodbye %v", msg)
	}
	for _, rr := range msg.Answer {
		if rr.Header().Ttl != 0 {
			t.Errorf("goodbye %v lives on", rr)
		}
	}
}

func TestProbe(t *testing.T) {
	for _, tt := range []struct {
		link link
		want uint16
	}{{newTestLink("eth0", "192.168.1.2", "fd00::2"), dns.TypeA}, {newTestLink("eth0", "fd00::2"), dns.TypeAAAA}} {
		msg := packed(t, probe(ours, tt.link))
		want := []dns.Question{{Name: ours, Qtype: dns.TypeANY, Qclass: dns.ClassINET}, {Name: ours, Qtype: tt.want, Qclass: dns.ClassINET}}
		if msg.Response || !slices.Equal(msg.Question, want) {
			t.Errorf("asks %v, want %v", msg.Question, want)
		}
		if got := addressesFor(msg.Ns, ours); !slices.Equal(got, tt.link.addrs) {
			t.Errorf("bids %v, want %v", got, tt.link.addrs)
		}
	}
}

func TestAddressOfEmptyRecord(t *testing.T) {
	for _, rr := range []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: ours}}, &dns.AAAA{Hdr: dns.RR_Header{Name: ours}},
		&dns.TXT{Hdr: dns.RR_Header{Name: ours}}} {
		if ip, ok := addressOf(rr, ours); ok {
			t.Errorf("%v gives %v", rr, ip)
		}
	}
}
