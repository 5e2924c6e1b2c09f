package httpserver_test

import (
	"net/http"
	"strings"
	"testing"

	"perch/gateway/httpserver"
)

func TestHosts(t *testing.T) {
	hosts := httpserver.Hosts{Allowed: []string{"perch.example", "public.example.org"}}
	for host, ours := range map[string]bool{
		"192.168.1.9":               true,
		"192.168.1.9:8003":          true,
		"[2001:db8::1]":             true,
		"[2001:db8::1]:8003":        true,
		"[::1]:8003":                true,
		"perch":                     true,
		"perch:8003":                true,
		"localhost:8003":            true,
		"perch.local":               true,
		"PERCH.Local:8003":          true,
		"perch.local.":              true,
		"perch.local.:8003":         true,
		"perch.lan":                 true,
		"perch.home.arpa":           true,
		"perch.internal":            true,
		"a.b.perch.lan":             true,
		"perch.example":             true,
		"perch.example:443":         true,
		"Perch.Example.":            true,
		"public.example.org":        true,
		"evil.example":              false,
		"sub.perch.example":         false,
		"perch.example.evil.com":    false,
		"perch.local.evil.com":      false,
		"perchlocal.com":            false,
		"home.arpa.evil.com":        false,
		"evil.com:8003":             false,
		"127.0.0.1.nip.io":          false,
		"192.168.1.9.evil.com":      false,
		"":                          false,
		".":                         false,
		":8003":                     false,
		"user@perch.local":          false,
		"user:password@perch.local": false,
		"perch:evil.com":            false,
		"perch.local/path":          false,
		"perch.local#evil.com":      false,
		"perch local":               false,
		"perch.local\x00":           false,
		"pérch.local":               false,
		"xn--prch-9oa.local":        true,
		"perch.local..":             false,
		"[perch.evil.com]":          false,
		"192.168.1":                 false,
		strings.Repeat("a", 253):    true,
		strings.Repeat("a", 254):    false,
		strings.Repeat("a", 15<<10): false,
	} {
		r := request(http.MethodGet, "/")
		r.Host = host
		err := hosts.Check(r)
		if (err == nil) != ours {
			t.Errorf("Host %.80q: %v, want ours %t", host, err, ours)
		}
		if err == nil {
			continue
		}
		if code, status := refused(t, err); code != "unknown_host" || status != http.StatusMisdirectedRequest ||
			!strings.Contains(err.Error(), "allowed_hosts") || len(err.Error()) > 500 {
			t.Errorf("Host %.80q is refused with %d %s: %v", host, status, code, err)
		}
	}
}

func TestOrigins(t *testing.T) {
	origins := httpserver.Origins{Allowed: []string{"https://panel.example"}}
	for _, c := range []struct {
		origin string
		may    bool
	}{
		{"", true}, // robots and programs
		{"https://panel.example", true},
		{"http://perch.local:8003", true}, // our own
		{"http://PERCH.LOCAL:8003", true},
		{"http://perch.local", false},
		{"http://perch.local:8004", false},
		{"http://panel.example", false},
		{"https://panel.example:444", false},
		{"https://panel.example.evil.com", false},
		{"https://panel.example/", false},
		{"https://evil.example", false},
		{"null", false},
		{"perch.local:8003", false},
		{"http://user@perch.local:8003.evil.com", false},
		{"file://", false},
		{"http://[::1", false},
		{strings.Repeat("x", 10000), false},
	} {
		r := request(http.MethodGet, "/")
		r.Header.Set("Origin", c.origin)
		err := origins.Check(r)
		if (err == nil) != c.may {
			t.Errorf("Origin %.80q: %v, want allowed %t", c.origin, err, c.may)
		}
		if err == nil {
			continue
		}
		if code, status := refused(t, err); code != "foreign_origin" || status != http.StatusForbidden ||
			!strings.Contains(err.Error(), "allowed_origins") || len(err.Error()) > 500 {
			t.Errorf("Origin %.80q is refused with %d %s: %v", c.origin, status, code, err)
		}
	}
}
