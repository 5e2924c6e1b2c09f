package mdns

import (
	"fmt"

	"github.com/miekg/dns"
	pion "github.com/pion/mdns/v2"
	"golang.org/x/net/dns/dnsmessage"
)

// host keeps the host name alive on the links: pion answers A and AAAA questions, this code announces, answers the rest
// and withdraws. pion's addresses are those of the moment it was started.
type host struct {
	name   string // fully qualified
	socket *socket
	pion   *pion.Conn
}

// startHost makes name, without its trailing dot, answered on the socket's links.
func startHost(name string, s *socket, links []link) (*host, error) {
	c4, err4 := open4()
	c6, err6 := open6()
	if err4 != nil && err6 != nil {
		return nil, fmt.Errorf("answer for %s: %w", name, err4)
	}
	conn, err := pion.NewServer(c4, c6,
		pion.WithLocalNames(name),
		pion.WithInterfaces(interfacesOf(links)...),
		pion.WithRecordTypes(dnsmessage.TypeA, dnsmessage.TypeAAAA),
		pion.WithResponseTTL(legacyTTL),
		pion.WithCacheRefresh(false),
	)
	if err != nil {
		if c4 != nil {
			_ = c4.Close()
		}
		if c6 != nil {
			_ = c6.Close()
		}
		return nil, fmt.Errorf("answer for %s: %w", name, err)
	}
	h := &host{name: name + ".", socket: s, pion: conn}
	h.announce()
	return h, nil
}

func (h *host) announce() {
	h.socket.multicast(func(l link) *dns.Msg { return announcement(h.name, l) })
}

// receive answers a question, and returns errTaken where a packet shows that another machine has the name.
func (h *host) receive(p packet) error {
	if !p.msg.Response {
		if msg, to := answer(p, h.name); msg != nil {
			h.socket.reply(p, msg, to)
		}
		return nil
	}
	if len(addressesFor(p.msg.Answer, h.name)) == 0 {
		return nil // spares most packets the look at the machine's addresses
	}
	if judge(p, h.name, ownAddresses(h.socket.allLinks())).verdict == occupied {
		return errTaken
	}
	return nil
}

// close withdraws the name.
func (h *host) close() {
	_ = h.pion.Close()
	h.socket.multicast(func(l link) *dns.Msg { return goodbye(h.name, l) })
}
