package mdns

import (
	"fmt"
	"time"

	"github.com/grandcat/zeroconf"
)

// settle is how long a zeroconf server lives at least. Its Shutdown waits for read loops that count themselves in only
// once they run, so one right after Register would race with them.
const settle = 250 * time.Millisecond

// services are the announcements, each with a zeroconf server of its own, for one server knows one service.
type services struct {
	servers []*zeroconf.Server
	since   time.Time // the latest of them was made
}

// register announces all services on the links, leading to host, a name without its trailing dot. Where one of them
// cannot be announced, none is.
//
// zeroconf is given no addresses on purpose. It then adds to each answer those the interface has at that moment, so one
// network does not get the addresses of another; and its goodbye, which carries the addresses it was given, does not
// withdraw those of a host name that the system's responder goes on answering for.
func register(o Options, host string, links []link) (*services, error) {
	s := &services{}
	for _, offer := range o.offers() {
		// The host must end in a dot and the domain must not: else the domain is appended a second time, or never packed.
		server, err := zeroconf.RegisterProxy(o.Instance(), offer.Type, "local", offer.Port, host+".", nil, offer.txt(), interfacesOf(links))
		if err != nil {
			s.close()
			return nil, fmt.Errorf("announce %s: %w", offer.Type, err)
		}
		s.servers, s.since = append(s.servers, server), time.Now()
	}
	return s, nil
}

// close sends a goodbye and frees the sockets.
func (s *services) close() {
	time.Sleep(time.Until(s.since.Add(settle)))
	for _, server := range s.servers {
		server.Shutdown()
	}
}
