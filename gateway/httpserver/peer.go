package httpserver

import (
	"net"
	"net/netip"
)

// addressOf is the address in "host:port", and the zero address where there is
// none, as on a unix socket. Forwarding headers are not believed.
func addressOf(remote string) netip.Addr {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	a, _ := netip.ParseAddr(host) // the zero address where it is none
	return a.Unmap()
}

// PeerOf is the address that counts as one peer where tries, requests and
// connections are counted: an IPv4 address, or the /64 of an IPv6 one, for a
// machine may use any address of that. remote is "host:port", as in http.Request
// and net.Conn. Where that holds no address, as on a unix socket, it returns the
// zero address, and all such count as one peer.
func PeerOf(remote string) netip.Addr {
	a := addressOf(remote)
	if !a.Is6() || a.IsLoopback() {
		return a
	}
	network, err := a.WithZone("").Prefix(64)
	if err != nil {
		return netip.Addr{}
	}
	return network.Addr()
}
