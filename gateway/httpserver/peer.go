package httpserver

import (
	"net"
	"net/netip"
)

// addressOf returns the IP address in "host:port". For any other text, such as the address of a unix
// socket, it returns the zero address.
func addressOf(remote string) netip.Addr {
	host, _, _ := net.SplitHostPort(remote)
	a, _ := netip.ParseAddr(host)
	return a.Unmap()
}

// PeerOf returns the address that identifies a peer for limits of tries, requests and connections: an IPv4 or
// loopback address, or the /64 network of another IPv6 address, because a machine may use any address of its network.
// remote is "host:port", as in http.Request and net.Conn. For any other text, such as the address of a
// unix socket, PeerOf returns the zero address.
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
