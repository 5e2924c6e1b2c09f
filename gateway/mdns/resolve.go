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

// Resolve asks for the IPv4 address of host ("perch.local") as a robot does: lwIP sends one legacy query from an
// ephemeral port and takes only what answers it as a DNS server would. It asks again each second, which is lwIP's pause,
// until ctx ends, and then returns [ErrNoAnswer], with the fault of the last answer a robot would not have taken.
// [ErrNoMulticast] where there is no link to ask on.
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
	defer context.AfterFunc(ctx, func() { _ = udp.Close() })()
	fault, buf := ErrNoAnswer, make([]byte, maxPacket)
	for ctx.Err() == nil {
		for _, l := range links {
			_ = conn4{ipv4.NewPacketConn(udp)}.write(raw, l.Index, nil)
		}
		_ = udp.SetReadDeadline(time.Now().Add(time.Second))
		for {
			n, err := udp.Read(buf)
			if err != nil {
				break
			}
			ip, err := asRobot(buf[:n], query)
			if err == nil {
				return ip, nil
			}
			fault = fmt.Errorf("%w but one a robot would not take: %w", ErrNoAnswer, err)
		}
	}
	return netip.Addr{}, fmt.Errorf("ask for %q: %w", host, fault)
}

// legacyQuery is the message lwIP sends, recursion desired and all.
func legacyQuery(host string) *dns.Msg {
	return new(dns.Msg).SetQuestion(dns.Fqdn(host), dns.TypeA)
}

// asRobot reads an answer with lwIP's eyes (dns_recv): same id, exactly one question and that the one asked, and an A
// record of the plain class IN, without the flush bit.
func asRobot(raw []byte, query *dns.Msg) (netip.Addr, error) {
	msg, asked := parse(raw), query.Question[0]
	switch {
	case msg == nil:
		return netip.Addr{}, errors.New("it is no readable answer")
	case !msg.Response || msg.Id != query.Id:
		return netip.Addr{}, errors.New("it has another id")
	case len(msg.Question) != 1 || !strings.EqualFold(msg.Question[0].Name, asked.Name) || msg.Question[0].Qtype != asked.Qtype ||
		msg.Question[0].Qclass != asked.Qclass:
		return netip.Addr{}, errors.New("it does not repeat the question")
	}
	for _, rr := range msg.Answer {
		if a, ok := rr.(*dns.A); ok && a.Hdr.Class == dns.ClassINET && a.A.To4() != nil {
			return netip.AddrFrom4([4]byte(a.A.To4())), nil
		}
	}
	return netip.Addr{}, errors.New("it holds no plain A record")
}
