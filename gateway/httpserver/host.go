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

// Hosts are the host names of this appliance. Checking them keeps out a web page that
// rebinds its name to our address.
type Hosts struct {
	Allowed []string // in addition to the usual names; lower case, without port
}

// Check refuses a request with another Host.
func (h Hosts) Check(r *http.Request) error {
	host := hostOnly(r.Host)
	if h.ours(host) {
		return nil
	}
	return &Fault{Word: "unknown_host",
		Sentence: fmt.Sprintf("this appliance is not known as %q; if it should be, add that name to allowed_hosts", plain.Clip(host, 80)),
		HTTP:     http.StatusMisdirectedRequest}
}

func (h Hosts) ours(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	ends := []string{".local", ".lan", ".home.arpa", ".internal"}
	return isHostName(host) && (!strings.Contains(host, ".") || slices.Contains(h.Allowed, host) ||
		slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(host, end) }))
}

// hostOnly returns a Host header without port, brackets and final dot, in lower
// case. A port that is no number stays, and makes the whole an invalid name.
func hostOnly(host string) string {
	if h, port, err := net.SplitHostPort(host); err == nil && strings.Trim(port, "0123456789") == "" {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func isHostName(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-._") == ""
}

// Origins are the web pages that may use this appliance.
type Origins struct {
	Allowed []string // "https://panel.example", without a path
}

// Check refuses a request of a web page that is neither allowed nor the
// appliance's own. Robots and programs send no Origin, and browsers never two.
func (o Origins) Check(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if len(r.Header["Origin"]) < 2 && o.may(origin, r.Host) {
		return nil
	}
	why := fmt.Sprintf("web pages of %q may not use this appliance; if they should, add that origin to allowed_origins", plain.Clip(origin, 80))
	return &Fault{Word: "foreign_origin", Sentence: why, HTTP: http.StatusForbidden}
}

func (o Origins) may(origin, host string) bool {
	if origin == "" || slices.Contains(o.Allowed, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
