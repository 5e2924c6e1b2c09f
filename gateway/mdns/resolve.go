package mdns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"
)

// ErrNoAnswer is returned when no machine answered for a name before the context ended.
var ErrNoAnswer = errors.New("no answer")

// askAgain is lwIP's pause between two tries.
const askAgain = time.Second

// Resolve asks for the IPv4 address of host ("perch.local") as a robot does: lwIP sends one legacy query from an
// ephemeral port and takes only what answers it as a DNS server would. It asks again each second until ctx ends, and
// then returns [ErrNoAnswer], with the fault of the last answer a robot would not have taken. [ErrNoMulticast] where
// there is no link to ask on.
func Resolve(ctx context.Context, host string) (netip.Addr, error) {
	links, err := machineLinks(nil)
	if err != nil {
		return netip.Addr{}, err
	}
	query := legacyQuery(host)
	raw, err := query.Pack()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("ask for %q: %w", host, err)
	}
	udp, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("ask for %q: %w", host, err)
	}
	defer udp.Close()
	stop := context.AfterFunc(ctx, func() { _ = udp.Close() })
	defer stop()
	fault := ErrNoAnswer
	for ctx.Err() == nil {
		for _, l := range links {
			_ = conn4{ipv4.NewPacketConn(udp)}.write(raw, l.Index, group4())
		}
		ip, err := await(udp, query)
		if err == nil {
			return ip, nil
		}
		if !errors.Is(err, ErrNoAnswer) && ctx.Err() == nil {
			fault = fmt.Errorf("%w but one a robot would not take: %w", ErrNoAnswer, err)
		}
	}
	return netip.Addr{}, fmt.Errorf("ask for %q: %w", host, fault)
}

// legacyQuery is the message lwIP sends, recursion desired and all.
func legacyQuery(host string) *dns.Msg {
	return new(dns.Msg).SetQuestion(dns.Fqdn(host), dns.TypeA)
}

// await reads until an answer, or until it is time to ask again. Of several faulty answers it returns the last fault.
func await(udp *net.UDPConn, query *dns.Msg) (netip.Addr, error) {
	fault := ErrNoAnswer
	buf := make([]byte, maxPacket)
	_ = udp.SetReadDeadline(time.Now().Add(askAgain))
	for {
		n, err := udp.Read(buf)
		if err != nil {
			return netip.Addr{}, fault
		}
		ip, err := asRobot(buf[:n], query)
		if err == nil {
			return ip, nil
		}
		fault = err
	}
}

// asRobot reads an answer with lwIP's eyes (dns_recv): same id, exactly one question and that the one asked, and an A
// record of the plain class IN, without the flush bit.
func asRobot(raw []byte, query *dns.Msg) (netip.Addr, error) {
	msg := parse(raw)
	switch {
	case msg == nil:
		return netip.Addr{}, errors.New("it is no readable answer")
	case !msg.Response || msg.Id != query.Id:
		return netip.Addr{}, errors.New("it has another id")
	case len(msg.Question) != 1 || !sameQuestion(msg.Question[0], query.Question[0]):
		return netip.Addr{}, errors.New("it does not repeat the question")
	}
	for _, rr := range msg.Answer {
		if a, ok := rr.(*dns.A); ok && a.Hdr.Class == dns.ClassINET {
			if ip, ok := netip.AddrFromSlice(a.A); ok {
				return ip.Unmap(), nil
			}
		}
	}
	return netip.Addr{}, errors.New("it holds no plain A record")
}

func sameQuestion(a, b dns.Question) bool {
	return strings.EqualFold(a.Name, b.Name) && a.Qtype == b.Qtype && a.Qclass == b.Qclass
}
