package httpserver_test

import (
	"net/http"
	"strings"
	"testing"

	"perch/gateway/httpserver"
)

func TestHosts(t *testing.T) {
	hosts := httpserver.Hosts{Allowed: []string{"perch.example", "public.example.org"}}
	for ours, all := range map[bool][]string{
		true: {
			"192.168.1.9", "192.168.1.9:8003", "[2001:db8::1]", "[2001:db8::1]:8003", "[::1]:8003", "perch", "perch:8003", "localhost:8003",
			"perch.local", "PERCH.Local:8003", "perch.local.", "perch.local.:8003", "perch.lan", "perch.home.arpa", "perch.internal",
			"a.b.perch.lan", "perch.example", "perch.example:443", "Perch.Example.", "public.example.org", "xn--prch-9oa.local",
			strings.Repeat("a", 253),
		},
		false: {
			"evil.example", "sub.perch.example", "perch.example.evil.com", "perch.local.evil.com", "perchlocal.com", "home.arpa.evil.com",
			"evil.com:8003", "127.0.0.1.nip.io", "192.168.1.9.evil.com", "", ".", ":8003", "user@perch.local", "user:password@perch.local",
			"perch:evil.com", "perch.local/path", "perch.local#evil.com", "perch local", "perch.local\x00", "pérch.local", "perch.local..",
			"[perch.evil.com]", "192.168.1", strings.Repeat("a", 254), strings.Repeat("a", 15<<10),
		},
	} {
		for _, host := range all {
			r := request(http.MethodGet, "/")
			r.Host = host
			checkRefusal(t, "Host "+host, hosts.Check(r), ours, "unknown_host", http.StatusMisdirectedRequest, "allowed_hosts")
		}
	}
}

func TestOrigins(t *testing.T) {
	origins := httpserver.Origins{Allowed: []string{"https://panel.example"}}
	for may, all := range map[bool][]string{
		true: {"", "https://panel.example", "http://perch.local:8003", "http://PERCH.LOCAL:8003"}, // "": robots and programs send no Origin
		false: {
			"http://perch.local", "http://perch.local:8004", "http://panel.example", "https://panel.example:444", "https://panel.example.evil.com",
			"https://panel.example/", "https://evil.example", "null", "perch.local:8003", "http://user@perch.local:8003.evil.com", "file://",
			"http://[::1", strings.Repeat("x", 10000),
		},
	} {
		for _, origin := range all {
			r := request(http.MethodGet, "/")
			r.Header.Set("Origin", origin)
			checkRefusal(t, "Origin "+origin, origins.Check(r), may, "foreign_origin", http.StatusForbidden, "allowed_origins")
		}
	}
}
