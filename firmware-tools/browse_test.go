package main

import (
	"net/netip"
	"testing"

	"perch/gateway/mdns"
)

func TestOTAURL(t *testing.T) {
	four, six := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")
	for _, c := range []struct {
		found mdns.Found
		want  string
	}{
		{mdns.Found{Port: 8003, Addrs: []netip.Addr{six, four}, TXT: map[string]string{"ota": "/xiaozhi/ota/"}},
			"http://192.0.2.7:8003/xiaozhi/ota/"},
		{mdns.Found{Port: 80, Addrs: []netip.Addr{four}}, "http://192.0.2.7:80/xiaozhi/ota/"},
		{mdns.Found{Port: 80, Addrs: []netip.Addr{four}, TXT: map[string]string{"ota": "@evil.example/"}}, "http://192.0.2.7:80/xiaozhi/ota/"},
		{mdns.Found{Port: 80, Addrs: []netip.Addr{six}}, ""},
		{mdns.Found{Port: 80}, ""},
	} {
		if got := otaURL(c.found); got != c.want {
			t.Errorf("%+v: %q, want %q", c.found, got, c.want)
		}
	}
}
