package wyoming

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"perch/remote"
)

// endpoint is the host and port of a server.
type endpoint struct {
	host, port string
	lookup     func(ctx context.Context, host string) ([]netip.Addr, error)
	connect    func(ctx context.Context, network, address string) (net.Conn, error)

	// cached holds the host's addresses, because looking up a .local name may take longer
	// than the rest of a call.
	cached remote.Cached[[]netip.Addr]
}

const (
	addressExpiry = 5 * time.Minute // how long addresses are cached
	maxAddresses  = 4               // maximum number of a host's addresses that are tried
)

// newEndpoint returns an endpoint that uses the system's resolver.
func newEndpoint(host, port string) *endpoint {
	p := &endpoint{host: host, port: port, connect: (&net.Dialer{}).DialContext}
	p.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	return p
}

// addresses returns the host's addresses, which may be cached. If the lookup fails, it returns
// the addresses of the previous lookup, if there are any.
func (p *endpoint) addresses(ctx context.Context) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(p.host); err == nil {
		return []netip.Addr{ip}, nil
	}
	cached, fresh := p.cached.Get()
	if fresh {
		return cached, nil
	}
	found, err := p.lookup(ctx, p.host)
	switch {
	case err == nil && len(found) > 0:
		found = found[:min(len(found), maxAddresses)]
		p.cached.Put(found, addressExpiry)
		return found, nil
	case len(cached) > 0 && ctx.Err() == nil:
		return cached, nil
	case err == nil:
		err = errors.New("no address")
	}
	return nil, err
}

// dial connects to the server. The timeout includes the lookup.
func (p *endpoint) dial(ctx context.Context, timeout time.Duration) (net.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := p.addresses(limited)
	if err != nil {
		return nil, p.unreachable(ctx, fmt.Sprintf("the name %s is not known on this network; give the server's IP address", printable(p.host)), err)
	}
	deadline, _ := limited.Deadline()
	for i, ip := range found {
		// Each address gets an equal share of the remaining time.
		attempt, done := context.WithTimeout(limited, time.Until(deadline)/time.Duration(len(found)-i))
		var conn net.Conn
		conn, err = p.connect(attempt, "tcp", net.JoinHostPort(ip.String(), p.port))
		done()
		if err == nil {
			return conn, nil
		}
	}
	p.cached.Forget() // the server may have a new address
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, p.unreachable(ctx, "nothing listens there; start the server, or correct the address", err)
	}
	return nil, p.unreachable(ctx, fmt.Sprintf("it could not be reached within %s; is that computer on, and the address right?", timeout), err)
}

// unreachable returns the error of ctx, or a fault if ctx has not ended.
func (p *endpoint) unreachable(ctx context.Context, message string, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &fault{p.String(), message, cause}
}

// String returns the endpoint as tcp://host:port.
func (p *endpoint) String() string { return "tcp://" + net.JoinHostPort(p.host, p.port) }
