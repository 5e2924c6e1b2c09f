package mdns

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"perch/must"
)

// says returns a response with records in the format of zone files. The records after "+" are additional records.
func says(t testing.TB, lines ...string) *dns.Msg {
	t.Helper()
	msg := &dns.Msg{}
	msg.Response = true
	to := &msg.Answer
	for _, line := range lines {
		if line == "+" {
			to = &msg.Extra
			continue
		}
		rr, err := dns.NewRR(line)
		must.Succeed(t, err)
		*to = append(*to, rr)
	}
	return msg
}

const (
	piperPTR = "_wyoming._tcp.local. 4500 IN PTR piper._wyoming._tcp.local."
	piperSRV = "piper._wyoming._tcp.local. 120 IN SRV 0 0 10200 pi.local."
	piperTXT = `piper._wyoming._tcp.local. 4500 IN TXT "version=1"`
	piperA   = "pi.local. 120 IN A 10.0.0.1"
)

func TestBrowsing(t *testing.T) {
	piper := Found{Instance: "piper", Host: "pi.local", Port: 10200, Addrs: addrs("10.0.0.1"), TXT: map[string]string{}}
	with := func(change func(*Found)) []Found {
		f := piper
		f.TXT = map[string]string{}
		change(&f)
		return []Found{f}
	}
	versioned := with(func(f *Found) { f.TXT["version"] = "1" })
	tests := map[string]struct {
		answers [][]string // the records of each message
		want    []Found
		missing string // the questions of the next query
	}{
		"in one message":  {[][]string{{piperPTR, "+", piperSRV, piperTXT, piperA}}, versioned, ""},
		"addresses first": {[][]string{{piperA, piperTXT, piperSRV, piperPTR}}, versioned, ""},
		"no PTR":          {[][]string{{piperSRV, "+", piperA}}, []Found{piper}, ""},
		"piece by piece":  {[][]string{{piperPTR}, {piperTXT}, {piperSRV}, {piperA}}, versioned, ""},
		"twice":           {[][]string{{piperSRV, piperA}, {piperSRV, piperA}}, []Found{piper}, ""},
		"in other capitals": {[][]string{{"_WYOMING._tcp.Local. 9 IN PTR Piper._Wyoming._tcp.local."}, {piperSRV}, {"PI.local. 9 IN A 10.0.0.1"}},
			with(func(f *Found) { f.Instance = "Piper" }), ""},
		"with the flush bit": {[][]string{{"piper._wyoming._tcp.local. 9 CLASS32769 SRV 0 0 10200 pi.local.", "pi.local. 9 CLASS32769 A 10.0.0.1"}},
			[]Found{piper}, ""},
		"only a name":              {[][]string{{piperPTR}}, nil, "SRV piper._wyoming._tcp.local. TXT piper._wyoming._tcp.local."},
		"no address":               {[][]string{{piperPTR, piperSRV}}, nil, "A pi.local. AAAA pi.local."},
		"one host, two services":   {[][]string{{piperSRV, "b._wyoming._tcp.local. 9 IN SRV 0 0 1 pi.local."}}, nil, "A pi.local. AAAA pi.local."},
		"goodbye before all is in": {[][]string{{piperPTR}, {strings.Replace(piperPTR, "4500", "0", 1)}}, nil, ""},
		"a goodbye alone":          {[][]string{{strings.Replace(piperSRV, "120", "0", 1), piperA}}, nil, ""},
		"an address that left":     {[][]string{{piperSRV, strings.Replace(piperA, "120", "0", 1)}}, nil, "A pi.local. AAAA pi.local."},
		"no port":                  {[][]string{{strings.Replace(piperSRV, "10200", "0", 1), piperA}}, nil, ""},
		"another class":            {[][]string{{strings.Replace(piperSRV, "IN", "CH", 1), piperA}}, nil, ""},
		"another type": {[][]string{{strings.Replace(piperPTR, "_wyoming", "_ipp", 1), strings.Replace(piperSRV, "_wyoming", "_ipp", 1), piperA}},
			nil, ""},
		"a type that ends alike":  {[][]string{{"piper.x_wyoming._tcp.local. 9 IN SRV 0 0 1 pi.local.", piperA}}, nil, ""},
		"a subtype":               {[][]string{{"a._sub._wyoming._tcp.local. 9 IN SRV 0 0 1 pi.local.", piperA}}, nil, ""},
		"the type itself":         {[][]string{{"_wyoming._tcp.local. 9 IN SRV 0 0 1 pi.local.", piperA}}, nil, ""},
		"a dot in the label":      {[][]string{{`a\._wyoming._tcp.local. 9 IN SRV 0 0 1 pi.local.`, piperA}}, nil, ""},
		"a group's address":       {[][]string{{piperSRV, "pi.local. 9 IN A 224.0.0.251", "pi.local. 9 IN A 0.0.0.0"}}, nil, "A pi.local. AAAA pi.local."},
		"an address twice":        {[][]string{{piperSRV, piperA, piperA}}, []Found{piper}, ""},
		"somebody else's address": {[][]string{{piperSRV, piperA, "other.local. 9 IN A 10.0.0.9"}}, []Found{piper}, ""},
		"both families": {[][]string{{piperSRV, "pi.local. 9 IN AAAA fd00::1", "pi.local. 9 IN AAAA fe80::1", piperA}},
			with(func(f *Found) { f.Addrs = addrs("10.0.0.1", "fd00::1", "fe80::1%eth0") }), ""},
		"a name of words": {[][]string{{`K\195\188che\ \(oben\).\ 1._wyoming._tcp.local. 9 IN SRV 0 0 1 pi.local.`, piperA}}, nil, ""},
		"a name with spaces": {[][]string{{`K\195\188che\ \(1\.\ oben\)._wyoming._tcp.local. 9 IN SRV 0 0 10200 pi.local.`, piperA}},
			with(func(f *Found) { f.Instance = "Küche (1. oben)" }), ""},
		"TXT of many kinds": {[][]string{{`piper._wyoming._tcp.local. 9 IN TXT "OTA=/xiaozhi/ota/" "ota=/other/" "flag" "=nothing" "id=a=b" "" "q=\"\\"`, piperSRV, piperA}},
			with(func(f *Found) {
				f.TXT = map[string]string{"ota": "/xiaozhi/ota/", "flag": "", "id": "a=b", "q": `"\`}
			}), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := &browsing{Search: Search{Type: Wyoming}}
			for _, lines := range tt.answers {
				h.receive(packed(t, says(t, lines...)), netip.Addr{}, "eth0")
			}
			got := h.complete()
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("found %+v, want %+v", got, tt.want)
			}
			var missing []string
			for _, q := range h.question().Question[1:] {
				missing = append(missing, dns.TypeToString[q.Qtype], q.Name)
			}
			if got := strings.Join(missing, " "); got != tt.missing {
				t.Errorf("asks for %q, want %q", got, tt.missing)
			}
			asked := packed(t, h.question())
			if asked.Response || asked.Question[0] != (dns.Question{Name: "_wyoming._tcp.local.", Qtype: dns.TypePTR, Qclass: dns.ClassINET}) {
				t.Errorf("asks %v", asked)
			}
		})
	}
}

// TestBrowsingReadsBrokenNSEC checks that the invalid NSEC record of python-zeroconf 0.47 does not prevent the other
// records of a message from being read, wherever it is among them.
func TestBrowsingReadsBrokenNSEC(t *testing.T) {
	others := []string{piperSRV, piperTXT, piperA}
	for at := range len(others) + 1 {
		lines := append([]string{piperPTR, "+"}, slices.Insert(slices.Clone(others), at, "pi.local. 120 IN NSEC pi.local. A")...)
		b, err := says(t, lines...).Pack()
		must.Succeed(t, err)
		// The bit map of the NSEC record is one byte; its length is set to zero.
		bits := bytes.Index(b, []byte("\x02pi\x05local\x00\x00\x01\x40"))
		b[bits+len("\x02pi\x05local\x00\x00")] = 0
		if new(dns.Msg).Unpack(b) == nil {
			t.Fatal("the message is not broken")
		}
		h := &browsing{Search: Search{Type: Wyoming}}
		h.receive(parse(b), netip.Addr{}, "eth0")
		if got := h.complete(); len(got) != 1 || got[0].TXT["version"] != "1" || !slices.Equal(got[0].Addrs, addrs("10.0.0.1")) {
			t.Errorf("with the NSEC at %d: found %+v", at, got)
		}
		// A message that is cut off must not cause a panic.
		for n := range b {
			if msg := parse(b[:n]); msg != nil {
				(&browsing{Search: Search{Type: Wyoming}}).receive(msg, netip.Addr{}, "eth0")
			}
		}
	}
}

// TestBrowsingIsBounded checks the limits of a search with the records of a machine that invents names.
func TestBrowsingIsBounded(t *testing.T) {
	h := &browsing{Search: Search{Type: Wyoming}}
	for i := range 1000 {
		name := hex.EncodeToString([]byte{byte(i >> 8), byte(i)})
		msg := says(t, name+"._wyoming._tcp.local. 9 IN SRV 0 0 1 h"+name+".local.", piperA, name+".local. 9 IN A 10.0.0.1")
		for j := range 20 {
			msg.Answer = append(msg.Answer, addressRecords("h"+name+".local.", []netip.Addr{netip.AddrFrom4([4]byte{10, 1, 1, byte(j)})})...)
		}
		h.receive(msg, netip.Addr{}, "eth0")
		// The host of this instance changes with each response.
		h.receive(says(t, "0000._wyoming._tcp.local. 9 IN SRV 0 0 1 other"+name+".local."), netip.Addr{}, "eth0")
	}
	found := h.complete()
	if len(h.instances) > maxFound || len(found) > maxFound {
		t.Errorf("%d instances, %d found", len(h.instances), len(found))
	}
	for _, f := range found {
		if len(f.Addrs) > maxAddrs {
			t.Errorf("%d addresses of one host", len(f.Addrs))
		}
	}
	if n := len(h.question().Question); n > maxQuestions+1 {
		t.Errorf("%d questions in one message", n)
	}
}

func TestExcept(t *testing.T) {
	for except, want := range map[string]int{"piper": 0, "PIPER": 0, "pipe": 1, "": 1} {
		h := &browsing{Search: Search{Type: Wyoming, Except: except}}
		h.receive(says(t, piperSRV, piperA), netip.Addr{}, "eth0")
		if got := h.complete(); len(got) != want {
			t.Errorf("without %q: found %v", except, got)
		}
	}
}

// FuzzUnescape checks that any instance name in a packet is read unchanged.
func FuzzUnescape(f *testing.F) {
	for _, s := range []string{"perch-c0ffee", "Küche (oben)", `a\b.c`, "a\x00\n\"", `\`, `\9`, `\999`, `\03`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_ = unescape(text) // must not panic
		if len(text) > 63 || text == "" {
			return
		}
		raw := append([]byte{byte(len(text))}, text...)
		raw = append(raw, 0)
		name, _, err := dns.UnpackDomainName(raw, 0)
		if err != nil {
			return
		}
		if got := unescape(name); got != text+"." {
			t.Errorf("%q went through a packet as %q and came out as %q", text, name, got)
		}
	})
}

// FuzzHunt checks that a search handles any two packets as responses.
func FuzzHunt(f *testing.F) {
	for _, lines := range [][]string{{piperPTR, "+", piperSRV, piperTXT, piperA}, {piperPTR}, {piperSRV, "pi.local. 9 IN AAAA fe80::1"}} {
		b, err := says(f, lines...).Pack()
		must.Succeed(f, err)
		f.Add(b, b[:len(b)-1])
		f.Add(b, b)
	}
	f.Add(brokenNSEC(f), []byte(nil))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		h := &browsing{Search: Search{Type: Wyoming}}
		for _, b := range [][]byte{first, second, first} {
			msg := parse(b)
			if msg == nil {
				continue
			}
			h.receive(msg, netip.Addr{}, "eth0")
			for _, found := range h.complete() {
				if found.Instance == "" || found.Port == 0 || len(found.Addrs) == 0 {
					t.Errorf("found %+v", found)
				}
			}
		}
		if b, err := h.question().Pack(); err != nil || len(b) > maxPacket {
			t.Errorf("a question of %d bytes: %v", len(b), err)
		}
	})
}
