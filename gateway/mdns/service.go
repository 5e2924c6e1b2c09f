package mdns

import (
	"fmt"
	"time"

	"github.com/grandcat/zeroconf"
)

// settle is how long a zeroconf server lives at least. Its Shutdown waits for read loops that count themselves in only
// once they run, so one right after Register would race with them.
const settle = 250 * time.Millisecond

// service is the announcement of _xiaozhi._tcp.
type service struct {
	server *zeroconf.Server
	since  time.Time
}

// register announces the service on the links, leading to host, a name without its trailing dot.
//
// zeroconf is given no addresses on purpose. It then adds to each answer those the interface has at that moment, so one
// network does not hear the addresses of another; and its goodbye, which carries the addresses it was given, does not
// withdraw those of a host name that the system's responder goes on answering for.
func register(o Options, host string, links []link) (*service, error) {
	// The host must end in a dot and the domain must not: else the domain is appended a second time, or never packed.
	server, err := zeroconf.RegisterProxy(o.instance(), Service, "local", o.Port, host+".", nil, o.txt(), interfacesOf(links))
	if err != nil {
		return nil, fmt.Errorf("announce %s: %w", Service, err)
	}
	return &service{server, time.Now()}, nil
}

// close says goodbye and frees the sockets.
func (s *service) close() {
	time.Sleep(time.Until(s.since.Add(settle)))
	s.server.Shutdown()
}
