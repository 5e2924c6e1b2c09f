package httpserver_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"perch/gateway/httpserver"
	"perch/must"
)

func TestLocal(t *testing.T) {
	for _, c := range []struct {
		name, peer, host string
		header           http.Header
		may              bool
	}{
		{"IPv4", "127.0.0.1:4000", "127.0.0.1:8004", nil, true},
		{"another loopback address", "127.0.0.9:4000", "127.1.2.3:8004", nil, true},
		{"IPv6", "[::1]:4000", "[::1]:8004", nil, true},
		{"IPv4 in IPv6", "[::ffff:127.0.0.1]:4000", "127.0.0.1:8004", nil, true},
		{"localhost", "127.0.0.1:4000", "localhost:8004", nil, true},
		{"localhost over IPv6", "[::1]:4000", "localhost:3000", nil, true},
		{"localhost in capitals", "127.0.0.1:4000", "LOCALHOST.:8004", nil, true},
		{"localhost of another machine", "192.168.1.5:4000", "localhost:8004", nil, false},
		{"a name below localhost", "127.0.0.1:4000", "evil.localhost", nil, false},
		{"without port", "127.0.0.1:4000", "127.0.0.1", nil, true},
		{"other headers", "127.0.0.1:4000", "127.0.0.1", http.Header{"User-Agent": {"curl"}, "X-Token": {"x"}}, true},

		{"another machine", "192.168.1.5:4000", "127.0.0.1:8004", nil, false},
		{"another machine in IPv6", "[fe80::1%eth0]:4000", "[::1]:8004", nil, false},
		{"this machine by its own address", "192.168.1.9:4000", "192.168.1.9:8004", nil, false},
		{"a mapped machine", "[::ffff:192.168.1.5]:4000", "127.0.0.1:8004", nil, false},
		{"a unix socket", "@", "127.0.0.1:8004", nil, false},
		{"a unix socket without a name", "", "localhost", nil, false},
		{"no address", "localhost:4000", "localhost", nil, false},
		{"a name of the appliance", "127.0.0.1:4000", "perch.local:8004", nil, false},
		{"a rebound name", "127.0.0.1:4000", "evil.example:8004", nil, false},
		{"almost localhost", "127.0.0.1:4000", "localhost.evil.example", nil, false},
		{"a name for a port", "127.0.0.1:4000", "localhost:evil.example", nil, false},
		{"user and password", "127.0.0.1:4000", "localhost:x@evil.example", nil, false},
		{"half an address", "127.0.0.1:4000", "127.1", nil, false},
		{"a number", "127.0.0.1:4000", "2130706433", nil, false},
		{"everywhere", "127.0.0.1:4000", "0.0.0.0:8004", nil, false},
		{"no Host", "127.0.0.1:4000", "", nil, false},

		{"a web page", "127.0.0.1:4000", "127.0.0.1", http.Header{"Origin": {"http://127.0.0.1:8004"}}, false},
		{"a page of a file", "127.0.0.1:4000", "127.0.0.1", http.Header{"Origin": {"null"}}, false},
		{"two origins", "127.0.0.1:4000", "127.0.0.1", http.Header{"Origin": {"", "https://evil.example"}}, false},
		{"Forwarded", "127.0.0.1:4000", "127.0.0.1", http.Header{"Forwarded": {"for=192.168.1.5"}}, false},
		{"X-Forwarded-For", "127.0.0.1:4000", "127.0.0.1", http.Header{"X-Forwarded-For": {"127.0.0.1"}}, false},
		{"X-Forwarded-For, emptied", "127.0.0.1:4000", "127.0.0.1", http.Header{"X-Forwarded-For": {""}}, false},
		{"X-Forwarded-Host", "127.0.0.1:4000", "127.0.0.1", http.Header{"X-Forwarded-Host": {"perch"}}, false},
		{"X-Forwarded-Proto", "127.0.0.1:4000", "127.0.0.1", http.Header{"X-Forwarded-Proto": {"https"}}, false},
		{"X-Real-IP", "127.0.0.1:4000", "127.0.0.1", http.Header{"X-Real-Ip": {"192.168.1.5"}}, false},
		{"X-Forwarded-Port", "127.0.0.1:4000", "127.0.0.1", http.Header{"X-Forwarded-Port": {"443"}}, false},
		{"Cf-Ray", "127.0.0.1:4000", "127.0.0.1", http.Header{"Cf-Ray": {"x"}}, false},
		{"Home Assistant's ingress", "127.0.0.1:4000", "127.0.0.1", http.Header{"X-Ingress-Path": {"/x"}}, false},
		{"a tag of a web page", "127.0.0.1:4000", "127.0.0.1", http.Header{"Sec-Fetch-Site": {"cross-site"}}, false},
		{"the page", "127.0.0.1:4000", "127.0.0.1:8004", http.Header{"Origin": {"http://127.0.0.1:8004"}, "Sec-Fetch-Site": {"same-origin"}}, true},
		{"what the page reads", "127.0.0.1:4000", "127.0.0.1:8004", http.Header{"Sec-Fetch-Site": {"same-origin"}}, true},
		{"a tag of a page of this machine", "127.0.0.1:4000", "127.0.0.1", http.Header{"Sec-Fetch-Site": {"same-site"}}, false},
		{"a browser's address bar", "127.0.0.1:4000", "127.0.0.1", http.Header{"Sec-Fetch-Site": {"none"}}, true},
		{"Via", "127.0.0.1:4000", "127.0.0.1", http.Header{"Via": {"1.1 proxy"}}, false},
	} {
		checkRefusal(t, c.name, httpserver.Local(local(c.peer, c.host, c.header)), c.may, "not_local", http.StatusForbidden, "")
	}
}

// local returns a request from peer with the given Host and headers.
func local(peer, host string, header http.Header) *http.Request {
	r := request(http.MethodGet, "/")
	r.RemoteAddr, r.Host = peer, host
	maps.Copy(r.Header, header)
	return r
}

// TestLocalRefusesOldHTTP checks that HTTP/1.0 is refused. A proxy that adds no header, such as nginx without
// settings, uses that version.
func TestLocalRefusesOldHTTP(t *testing.T) {
	r := local("127.0.0.1:4000", "127.0.0.1:8004", nil)
	must.Succeed(t, httpserver.Local(r))
	r.ProtoMajor, r.ProtoMinor = 1, 0
	if code, _ := refused(t, httpserver.Local(r)); code != "not_local" {
		t.Errorf("refused with %s", code)
	}
}

// TestLocalPages checks that Origins.Local accepts pages of allowed_origins at every name of the loopback interface,
// and refuses other pages, and that Local refuses the allowed ones too.
func TestLocalPages(t *testing.T) {
	origins := httpserver.Origins{Allowed: []string{panel}}
	for _, c := range []struct {
		name, host string
		header     http.Header
		may        bool
	}{
		{"no page", "localhost:3000", nil, true},
		{"an allowed page", "localhost:3000", http.Header{"Origin": {panel}}, true},
		{"by the address", "127.0.0.1:3000", http.Header{"Origin": {panel}, "Sec-Fetch-Site": {"cross-site"}}, true},
		{"a page of another", "localhost:3000", http.Header{"Origin": {"https://evil.example"}}, false},
		{"a page of a file", "localhost:3000", http.Header{"Origin": {"null"}}, false},
		{"a page of another port of this machine", "localhost:3000", http.Header{"Origin": {"http://localhost:8123"}}, false},
		{"a page of this address by another name", "localhost:3000", http.Header{"Origin": {"http://127.0.0.1:3000"}}, false},
		{"a page of this address over TLS", "localhost:3000", http.Header{"Origin": {"https://localhost:3000"}}, false},
		{"a rebound name that is its own page", "evil.example:3000", http.Header{"Origin": {"http://evil.example:3000"}}, false},
		{"a tag of an allowed page, which does not say of which", "localhost:3000", http.Header{"Sec-Fetch-Site": {"cross-site"}}, false},
		{"two origins", "localhost:3000", http.Header{"Origin": {panel, "https://evil.example"}}, false},
		{"an empty one", "localhost:3000", http.Header{"Origin": {""}}, false},
		{"an allowed page that rebinds a name", "panel.example:3000", http.Header{"Origin": {panel}}, false},
		{"an allowed page through a proxy", "localhost:3000", http.Header{"Origin": {panel}, "X-Forwarded-For": {"127.0.0.1"}}, false},
	} {
		r := local("127.0.0.1:4000", c.host, c.header)
		checkRefusal(t, c.name, origins.Local(r), c.may, "not_local", http.StatusForbidden, "")
		if page := len(c.header) > 0; page && httpserver.Local(r) == nil {
			t.Errorf("%s is let in where no page is", c.name)
		}
	}
	r := local("127.0.0.1:4000", "localhost:3000", http.Header{"Origin": {panel}})
	if err := httpserver.Local(r); err == nil || !strings.Contains(err.Error(), "accept no web page here") {
		t.Errorf("an allowed page at an owner's address is answered %v, which does not help it", err)
	}
}
