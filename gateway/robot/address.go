package robot

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"perch/device"
)

// base is the address under which the robot that sends a request reaches us. It
// is the request's own: a check-in adds no more than a port,
// for the firmware leaves that out of the Host of its upgrade. Without a port,
// which the firmware needs to read an address, and where the Host is nothing
// that a robot can be given, it is empty.
func base(r *http.Request, publicURL, checkedIn string) string {
	if publicURL != "" {
		return publicURL
	}
	name, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		name, port = r.Host, ""
	}
	port = cmp.Or(port, portOf(checkedIn), listenerPort(r))
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || !device.IsHost(name) {
		return ""
	}
	return "http://" + net.JoinHostPort(name, port)
}

func portOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Port()
}

// listenerPort is the port that the request has come to.
func listenerPort(r *http.Request) string {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return ""
	}
	_, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return "" // a unix socket
	}
	return port
}
