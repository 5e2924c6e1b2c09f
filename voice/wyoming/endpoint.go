package wyoming

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"perch/remote"
)

// endpoint is the host and port of a server.
type endpoint struct {
	host, port string
	connect    func(ctx context.Context, network, address string) (net.Conn, error)

	// latest is the IP address and port of the latest connection. dial uses this address instead of the
	// host until the address expires, because looking up a .local name may take longer than everything else
	// in a call.
	latest remote.Cached[string]
}

// addressExpiry is how long the address of the latest connection is used.
const addressExpiry = 5 * time.Minute

// newEndpoint returns an endpoint that uses the system's resolver.
func newEndpoint(host, port string) *endpoint {
	return &endpoint{host: host, port: port, connect: (&net.Dialer{}).DialContext}
}

// dial connects to the server: to the address of the latest connection until this address expires, and
// otherwise to the host. If the host cannot be looked up, dial uses the expired address. The timeout includes
// the look-up. The error is a fault, or ctx's error if ctx has ended.
func (p *endpoint) dial(ctx context.Context, timeout time.Duration) (net.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	address, fresh := p.latest.Get()
	if !fresh {
		address = net.JoinHostPort(p.host, p.port)
	}
	conn, err := p.connect(limited, "tcp", address)
	_, isUnknown := errors.AsType[*net.DNSError](err)
	if known, _ := p.latest.Get(); isUnknown && known != "" && limited.Err() == nil {
		conn, err = p.connect(limited, "tcp", known)
	}
	if err == nil {
		if ip, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
			p.latest.Put(ip.String(), addressExpiry)
		}
		return conn, nil
	}
	p.latest.Forget() // the server may have a new address
	switch {
	case isUnknown:
		return nil, p.unreachable(ctx, fmt.Sprintf("the name %s is not known on this network; give the server's IP address", printable(p.host)), err)
	case errors.Is(err, syscall.ECONNREFUSED):
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
