package mdns

import (
	"net"
	"testing"

	"github.com/miekg/dns"
)

func TestJudge(t *testing.T) {
	me := newTestLink("eth0", "192.168.1.5")
	own := ownAddresses([]link{me, newTestLink("wlan0", "192.168.1.6")})
	says := func(ips ...string) *dns.Msg { return response(hostTTL, addressRecords(ours, addrs(ips...))...) }
	extra := says("192.168.1.9")
	extra.Answer, extra.Extra = nil, extra.Answer
	other := response(hostTTL, addressRecords("other.local.", addrs("192.168.1.9"))...)
	tests := map[string]struct {
		msg  *dns.Msg
		want verdict
	}{
		"another machine has it":            {says("192.168.1.9"), occupied},
		"in the additional part":            {extra, occupied},
		"the system's responder":            {says("192.168.1.5"), system},
		"our packet, by another interface":  {says("192.168.1.6"), system},
		"the system's, and a stranger's":    {says("192.168.1.5", "192.168.1.9"), occupied},
		"a stranger's, and the system's":    {says("192.168.1.9", "192.168.1.5"), occupied},
		"another name":                      {other, free},
		"a stranger leaves":                 {goodbye(ours, newTestLink("eth0", "192.168.1.9")), free},
		"a probe that outbids":              {probe(ours, newTestLink("eth0", "192.168.1.9")), outbid},
		"a probe we outbid":                 {probe(ours, newTestLink("eth0", "192.168.1.4")), free},
		"a longer probe outbids":            {probe(ours, newTestLink("eth0", "192.168.1.9", "fd00::9")), outbid},
		"IPv4 goes before IPv6 in a bid":    {probe(ours, newTestLink("eth0", "fd00::9")), outbid},
		"our own probe":                     {probe(ours, me), free},
		"our own probe by the other link":   {probe(ours, newTestLink("wlan0", "192.168.1.6")), free},
		"a probe for another name":          {probe("other.local.", newTestLink("eth0", "192.168.1.9")), free},
		"a plain question":                  {legacyQuery("perch.local"), free},
		"a known answer is no claim":        {&dns.Msg{Answer: addressRecords(ours, addrs("192.168.1.9"))}, free},
		"a claim in other capitals as well": {response(hostTTL, addressRecords("PERCH.Local.", addrs("192.168.1.9"))...), occupied},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := packet{msg: tt.msg, from: &net.UDPAddr{IP: net.IPv4(192, 168, 1, 9), Port: port}, link: me}
			if got := judge(p, ours, own).verdict; got != tt.want {
				t.Errorf("verdict %d, want %d", got, tt.want)
			}
		})
	}
}
