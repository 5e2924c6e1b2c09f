package mdns

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/grandcat/zeroconf"
	"github.com/miekg/dns"
)

const (
	// announceAgain is the pause before the second announcement (RFC 6762 section 8.3).
	announceAgain = time.Second
	// settle is how long a zeroconf server lives at least. Its Shutdown waits for read loops that count themselves in only
	// once they run, so one right after Register would race with them.
	settle = 250 * time.Millisecond
)

// serve announces on these links until they change or ctx ends, which it returns as nil, and takes everything back.
func (a *Announcer) serve(ctx context.Context, links []link) (err error) {
	defer func() {
		if ctx.Err() != nil {
			err = nil
		}
	}()
	s, err := listen(links)
	if err != nil {
		return err
	}
	defer s.close()
	by, err := a.claim(ctx, s)
	if err != nil {
		return err
	}
	name := hostName(a.opts.Name, a.suffix)
	var h *host
	if by == ByPerch {
		h = &host{name + ".", s}
		h.announce()
		defer h.withdraw()
	}
	withdraw, err := register(a.opts, name, links)
	if err != nil {
		return err
	}
	defer withdraw()
	now := a.announced(name, by, links)
	a.set(now)
	a.log.Info("mdns announced", "host", now.Host, "instance", now.Instance, "services", now.Services, "by", now.By, "addresses", now.Addresses)
	return a.watch(ctx, s, h, links)
}

// register announces all services on the links, leading to host, a name without its trailing dot, until withdraw is
// called. One zeroconf server knows one service. Where one of them cannot be announced, none is.
//
// zeroconf is given no addresses on purpose. It then adds to each answer those the interface has at that moment, so one
// network does not get the addresses of another; and its goodbye, which carries the addresses it was given, does not
// withdraw those of a host name that the system's responder goes on answering for.
func register(o Options, host string, links []link) (withdraw func(), err error) {
	var servers []*zeroconf.Server
	var ifaces []net.Interface
	for _, l := range links {
		ifaces = append(ifaces, l.Interface)
	}
	since := time.Now()
	withdraw = func() {
		time.Sleep(time.Until(since.Add(settle)))
		for _, server := range servers {
			server.Shutdown()
		}
	}
	for _, offer := range o.offers() {
		// The host must end in a dot and the domain must not: else the domain is appended a second time, or never packed.
		server, err := zeroconf.RegisterProxy(o.Instance(), offer.Type, "local", offer.Port, host+".", nil, offer.txt(), ifaces)
		if err != nil {
			withdraw()
			return nil, fmt.Errorf("announce %s: %w", offer.Type, err)
		}
		servers, since = append(servers, server), time.Now()
	}
	return withdraw, nil
}

// watch answers what is asked and returns nil when it is time to announce again. h is nil where the system's responder
// answers for the host name.
func (a *Announcer) watch(ctx context.Context, s *socket, h *host, links []link) error {
	// A machine that idles is woken up seldom: one that is announced seldom has other addresses.
	poll, check := time.NewTicker(3*a.poll), time.NewTicker(a.check)
	defer poll.Stop()
	defer check.Stop()
	again := time.NewTimer(announceAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-s.failed:
			return err
		case <-poll.C:
			if now, err := machineLinks(a.opts.Interfaces); err != nil || !slices.EqualFunc(now, links, link.equal) {
				return nil // where there is no link left, Run finds the same error and rests
			}
		case <-again.C:
			h.announce()
		case <-check.C: // the system's responder may have been stopped
			if h != nil {
				continue
			}
			if w, err := s.ask(ctx, hostName(a.opts.Name, a.suffix)+"."); err != nil || w.verdict != system {
				return nil
			}
		case p := <-s.packets:
			if err := h.receive(p); err != nil {
				return err
			}
		}
	}
}

// host is the host name while this package answers for it; a nil one does nothing.
type host struct {
	name   string // fully qualified
	socket *socket
}

func (h *host) announce() {
	if h != nil {
		h.socket.multicast(func(l link) *dns.Msg { return announcement(h.name, l) })
	}
}

// receive answers a question, and returns errTaken where a packet shows that another machine has the name.
func (h *host) receive(p packet) error {
	switch {
	case h == nil:
	case !p.msg.Response:
		if msg, to := answer(p, h.name); msg != nil {
			p.reply(msg, to)
		}
	case len(addressesFor(p.msg.Answer, h.name)) == 0: // spares most packets the look at the machine's addresses
	case judge(p, h.name, ownAddresses(h.socket.links)).verdict == occupied:
		return fmt.Errorf("%s: %w", h.name, errTaken)
	}
	return nil
}

func (h *host) withdraw() {
	h.socket.multicast(func(l link) *dns.Msg { return goodbye(h.name, l) })
}
