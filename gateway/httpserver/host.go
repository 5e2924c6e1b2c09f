package httpserver

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"perch/plain"
)

// Hosts holds the host names of this appliance. Their check protects against DNS rebinding, an attack by a
// web page whose host name is made to resolve to the appliance's address.
type Hosts struct {
	Allowed []string // names that are accepted besides IP addresses and the names of a local network; lower case, without port
}

// Check returns an error unless the Host header of a request is an IP address, a name of a local network or an
// allowed name.
func (h Hosts) Check(r *http.Request) error {
	host := hostOnly(r.Host)
	if h.isAllowed(host) {
		return nil
	}
	return &Fault{Word: "unknown_host",
		Sentence: fmt.Sprintf("this appliance is not known as %q; if it should be, add that name to allowed_hosts", plain.Clip(host, 80)),
		HTTP:     http.StatusMisdirectedRequest}
}

// isAllowed reports whether a host is an IP address, a name of a local network or an allowed name. Names of a
// local network have no dot, or one of the suffixes below.
func (h Hosts) isAllowed(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	localSuffixes := []string{".local", ".lan", ".home.arpa", ".internal"}
	return isHostName(host) && (!strings.Contains(host, ".") || slices.Contains(h.Allowed, host) ||
		slices.ContainsFunc(localSuffixes, func(suffix string) bool { return strings.HasSuffix(host, suffix) }))
}

// hostOnly returns the value of a Host header in lower case, without port, brackets and final dot. It does not
// remove a port that is not a number, so that isHostName returns false for the result.
func hostOnly(host string) string {
	if h, port, err := net.SplitHostPort(host); err == nil && strings.Trim(port, "0123456789") == "" {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// isHostName reports whether a text consists of the characters of a host name in lower case.
func isHostName(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-._") == ""
}

// Origins holds the origins (scheme, host and port) of foreign web pages that may use this appliance.
type Origins struct {
	Allowed []string // such as "https://panel.example", without a path
}

// Check returns an error for a request from a web page, unless its origin is allowed or is the appliance
// itself. Robots and programs send no Origin header. Several Origin headers, which no browser sends, are
// refused.
func (o Origins) Check(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if len(r.Header["Origin"]) < 2 && o.isAllowed(origin, r.Host) {
		return nil
	}
	why := fmt.Sprintf("web pages of %q may not use this appliance; if they should, add that origin to allowed_origins", plain.Clip(origin, 80))
	return &Fault{Word: "foreign_origin", Sentence: why, HTTP: http.StatusForbidden}
}

// isAllowed reports whether an origin is empty, allowed, or the appliance itself, which the request has
// addressed as host.
func (o Origins) isAllowed(origin, host string) bool {
	if origin == "" || slices.Contains(o.Allowed, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
