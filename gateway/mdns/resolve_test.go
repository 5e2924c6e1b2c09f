package mdns

import (
	"testing"

	"github.com/miekg/dns"

	"perch/must"
)

func TestAsRobot(t *testing.T) {
	query := legacyQuery("perch.local")
	if !query.RecursionDesired || len(query.Question) != 1 || query.Question[0].Qclass != dns.ClassINET {
		t.Fatalf("not lwIP's query: %v", query)
	}
	tests := map[string]struct {
		change func(*dns.Msg)
		fault  string
	}{
		"good":             {func(*dns.Msg) {}, ""},
		"capitals":         {func(m *dns.Msg) { m.Question[0].Name = "PERCH.local." }, ""},
		"another id":       {func(m *dns.Msg) { m.Id++ }, "another id"},
		"a query":          {func(m *dns.Msg) { m.Response = false }, "another id"},
		"no question":      {func(m *dns.Msg) { m.Question = nil }, "question"},
		"QU bit echoed":    {func(m *dns.Msg) { m.Question[0].Qclass |= topBit }, "question"},
		"another name":     {func(m *dns.Msg) { m.Question[0].Name = "x.local." }, "question"},
		"flush bit":        {func(m *dns.Msg) { m.Answer[0].Header().Class |= topBit }, "plain A"},
		"no answer":        {func(m *dns.Msg) { m.Answer = nil }, "plain A"},
		"IPv6 only":        {func(m *dns.Msg) { m.Answer = addressRecords(ours, addrs("fd00::1")) }, "plain A"},
		"a response code":  {func(m *dns.Msg) { m.Rcode = dns.RcodeRefused }, "readable"},
		"IPv6, then IPv4":  {func(m *dns.Msg) { m.Answer = addressRecords(ours, addrs("fd00::1", "10.0.0.1")) }, ""},
		"the NSEC of ours": {func(m *dns.Msg) { m.Answer = []dns.RR{nsec(ours, newTestLink("eth0", "fd00::1"))} }, "plain A"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			msg := legacyResponse(query, addressRecords(ours, addrs("10.0.0.1")))
			tt.change(msg)
			raw, err := msg.Pack()
			must.Succeed(t, err)
			ip, ok := parseAsRobot(raw, query)
			if good := tt.fault == ""; ok != good || good && ip != addrs("10.0.0.1")[0] {
				t.Errorf("%v, taken: %v; its fault: %q", ip, ok, tt.fault)
			}
		})
	}
}
