package httpserver

import (
	"net"
	"net/netip"
)

// addressOf returns the address in "host:port", or the zero address for another text, as
// of a unix socket. Forwarding headers are not believed.
func addressOf(remote string) netip.Addr {
	host, _, _ := net.SplitHostPort(remote)
	a, _ := netip.ParseAddr(host)
	return a.Unmap()
}

// PeerOf returns the address that counts as one peer for limits of tries, requests and
// connections: an IPv4 address, or the /64 of an IPv6 one, since a
// machine may use any address of that. remote is "host:port", as in http.Request
// and net.Conn. For another text, as of a unix socket, it returns the
// zero address: all these count as one peer.
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
