package mdns

import (
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestNewChecksOffers(t *testing.T) {
	tests := map[string]struct {
		also  []Offer
		fault string // part of the error, or empty
	}{
		"none":            {nil, ""},
		"two":             {[]Offer{{Type: Wyoming, Port: 10300, TXT: []string{"version=1", "flag"}}, {Type: "_x-1._udp", Port: 65535}}, ""},
		"no type":         {[]Offer{{Port: 1}}, `mdns service ""`},
		"no underline":    {[]Offer{{Type: "wyoming._tcp", Port: 1}}, "mdns service"},
		"no protocol":     {[]Offer{{Type: "_wyoming", Port: 1}}, "mdns service"},
		"a domain":        {[]Offer{{Type: "_wyoming._tcp.local.", Port: 1}}, "mdns service"},
		"no such":         {[]Offer{{Type: "_wyoming._sctp", Port: 1}}, "mdns service"},
		"capitals":        {[]Offer{{Type: "_Wyoming._tcp", Port: 1}}, "mdns service"},
		"nothing in it":   {[]Offer{{Type: "_._tcp", Port: 1}}, "mdns service"},
		"too long":        {[]Offer{{Type: "_abcdefghijklmnop._tcp", Port: 1}}, "at most 15"},
		"an escape":       {[]Offer{{Type: `_a\046._tcp`, Port: 1}}, "mdns service"},
		"our own":         {[]Offer{{Type: Service, Port: 1}}, "given twice"},
		"twice":           {[]Offer{{Type: Wyoming, Port: 1}, {Type: Wyoming, Port: 2}}, "given twice"},
		"no port":         {[]Offer{{Type: Wyoming}}, "port 0"},
		"high port":       {[]Offer{{Type: Wyoming, Port: 65536}}, "port 65536"},
		"TXT, no key":     {[]Offer{{Type: Wyoming, Port: 1, TXT: []string{"=x"}}}, "key=value"},
		"TXT, empty":      {[]Offer{{Type: Wyoming, Port: 1, TXT: []string{""}}}, "key=value"},
		"TXT, an escape":  {[]Offer{{Type: Wyoming, Port: 1, TXT: []string{`a=\000`}}}, "key=value"},
		"TXT, a line":     {[]Offer{{Type: Wyoming, Port: 1, TXT: []string{"a=\n"}}}, "key=value"},
		"TXT, too long":   {[]Offer{{Type: Wyoming, Port: 1, TXT: []string{"a=" + strings.Repeat("x", 254)}}}, "key=value"},
		"TXT, longest":    {[]Offer{{Type: Wyoming, Port: 1, TXT: []string{"a=" + strings.Repeat("x", 253)}}}, ""},
		"TXT, in all 401": {[]Offer{{Type: Wyoming, Port: 1, TXT: []string{strings.Repeat("x", 199), strings.Repeat("y", 200)}}}, "401 bytes"},
		"TXT, in all 400": {[]Offer{{Type: Wyoming, Port: 1, TXT: []string{strings.Repeat("x", 199), strings.Repeat("y", 199)}}}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(Options{Name: "perch", ID: "c0ffee", Version: "1.0", Port: 8003, Also: tt.also})
			if (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("error %v, want one about %q", err, tt.fault)
			}
		})
	}
}

// TestNoRecordIsAnswered: a TXT record holds at least one byte.
func TestNoRecordIsAnswered(t *testing.T) {
	rr := &dns.TXT{Hdr: dns.RR_Header{Name: "x.", Rrtype: dns.TypeTXT, Class: dns.ClassINET}, Txt: Offer{}.txt()}
	b := make([]byte, 100)
	n, err := dns.PackRR(rr, b, 0, nil, false)
	if err != nil || !slices.Equal(b[n-3:n], []byte{0, 1, 0}) {
		t.Errorf("packed as % x (%v), want a length of 1 and an empty string", b[:n], err)
	}
}
