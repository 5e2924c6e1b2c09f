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

// endpoint is a server's host and port. Its addresses are cached, since looking up a
// .local name may take longer than the answer.
type endpoint struct {
	host, port string
	lookup     func(ctx context.Context, host string) ([]netip.Addr, error)
	connect    func(ctx context.Context, network, address string) (net.Conn, error)

	known remote.Cached[[]netip.Addr]
}

const (
	knownFor      = 5 * time.Minute
	mostAddresses = 4 // tried per name
)

func newEndpoint(host, port string) *endpoint {
	p := &endpoint{host: host, port: port, connect: (&net.Dialer{}).DialContext}
	p.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	return p
}

// addresses returns the addresses, cached or looked up. If the lookup fails it returns the
// last known ones.
func (p *endpoint) addresses(ctx context.Context) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(p.host); err == nil {
		return []netip.Addr{ip}, nil
	}
	known, fresh := p.known.Get()
	if fresh {
		return known, nil
	}
	found, err := p.lookup(ctx, p.host)
	switch {
	case err == nil && len(found) > 0:
		found = found[:min(len(found), mostAddresses)]
		p.known.Put(found, knownFor)
		return found, nil
	case len(known) > 0 && ctx.Err() == nil:
		return known, nil
	case err == nil:
		err = errors.New("no address")
	}
	return nil, err
}

// dial connects within that time, lookup included.
func (p *endpoint) dial(ctx context.Context, within time.Duration) (net.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	found, err := p.addresses(limited)
	if err != nil {
		return nil, p.unreachable(ctx, fmt.Sprintf("the name %s is not known on this network; give the server's IP address", printable(p.host)), err)
	}
	deadline, _ := limited.Deadline()
	for i, ip := range found {
		// The remaining time is shared, so that a dead address leaves some to
		// the next.
		attempt, done := context.WithTimeout(limited, time.Until(deadline)/time.Duration(len(found)-i))
		var conn net.Conn
		conn, err = p.connect(attempt, "tcp", net.JoinHostPort(ip.String(), p.port))
		done()
		if err == nil {
			return conn, nil
		}
	}
	p.known.Forget() // the server may have moved
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, p.unreachable(ctx, "nothing listens there; start the server, or correct the address", err)
	}
	return nil, p.unreachable(ctx, fmt.Sprintf("it could not be reached within %s; is that computer on, and the address right?", within), err)
}

func (p *endpoint) unreachable(ctx context.Context, why string, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &fault{p.String(), why, cause}
}

func (p *endpoint) String() string { return "tcp://" + net.JoinHostPort(p.host, p.port) }
