package mdns

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
)

// wire is a simulated link. Each message that a socket sends is received by all other sockets.
type wire struct {
	mu      sync.Mutex
	sockets []*socket
	said    []*dns.Msg
}

func (w *wire) socket(ip string) *socket {
	s := &socket{links: []link{newTestLink("eth0", ip)}, packets: make(chan packet, 100)}
	from := &net.UDPAddr{IP: net.ParseIP(ip), Port: port}
	s.send = func(msg *dns.Msg, _ link, _ *net.UDPAddr) {
		w.mu.Lock()
		defer w.mu.Unlock()
		b, _ := msg.Pack()
		w.said = append(w.said, parse(b))
		for _, other := range w.sockets {
			if other != s {
				other.packets <- packet{parse(b), from, other.links[0]}
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sockets = append(w.sockets, s)
	return s
}

// machine is an announcer on a wire, and its socket.
type machine struct {
	*Announcer
	socket *socket
	log    bytes.Buffer
}

func (w *wire) machine(t *testing.T, ip string) *machine {
	t.Helper()
	m := &machine{}
	m.Announcer = New(Options{Name: "perch", ID: "c0ffee", Version: "1.2.3", Port: 8003, Log: slog.New(slog.NewTextHandler(&m.log, nil))})
	m.poll = 1000 * time.Hour // the test does not use the real interfaces of the machine
	m.socket = w.socket(ip)
	return m
}

// claim probes for the machine's name until the machine has one, and returns the name.
func (m *machine) claim(t *testing.T) string {
	t.Helper()
	if by, err := m.Announcer.claim(t.Context(), m.socket); err != nil || by != ByPerch {
		t.Fatalf("answered by %q, %v", by, err)
	}
	return hostName("perch", m.suffix)
}

// now returns the status of the announcer if the program by responds for the machine's name.
func (m *machine) now(by string) Status {
	m.set(by, nil)
	return m.Status()
}

// hold announces the machine's name and responds for it until ctx ends or another machine uses the name.
func (m *machine) hold(ctx context.Context) error {
	m.announce(hostName("perch", m.suffix) + ".")
	return m.Announcer.answerHost(ctx, m.socket, ByPerch, func() error { return nil })
}

// announce sends the address records that zeroconf sends with the announcement of a service.
func (m *machine) announce(name string) {
	m.socket.multicast(func(l link) *dns.Msg { return response(hostTTL, addressRecords(name, l.addrs)...) })
}

// holding runs hold in a goroutine until the test ends. The channel receives the result.
func (m *machine) holding(t *testing.T) (lost <-chan error) {
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- m.hold(ctx) }()
	t.Cleanup(stop)
	return ended
}

// TestProbesBeforeClaiming checks that three queries for the name, with the proposed records, are sent a quarter of a
// second apart, and that nothing is announced before (RFC 6762 section 8.1).
func TestProbesBeforeClaiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		m := w.machine(t, "192.0.2.5")
		began := time.Now()
		if host := m.claim(t); host != "perch.local" || m.now(ByPerch).Renamed() {
			t.Errorf("it goes by %s", host)
		}
		if took := time.Since(began); took < 750*time.Millisecond || took > time.Second {
			t.Errorf("it claimed after %s", took)
		}
		if len(w.said) != 3 {
			t.Fatalf("it said %v", w.said)
		}
		for _, msg := range w.said {
			if msg.Response || msg.Question[0].Qtype != dns.TypeANY || len(addressesFor(msg.Ns, ours)) != 1 {
				t.Errorf("it asked %v", msg)
			}
		}
	})
}

// TestTakenNameGetsSuffix checks the names of three machines that want the same name, one after another.
func TestTakenNameGetsSuffix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		one, two, three := w.machine(t, "192.0.2.5"), w.machine(t, "192.0.2.6"), w.machine(t, "192.0.2.7")
		one.claim(t)
		one.holding(t)
		if host := two.claim(t); host != "perch-2.local" {
			t.Errorf("the second goes by %s", host)
		}
		two.holding(t)
		if host := three.claim(t); host != "perch-3.local" {
			t.Errorf("the third goes by %s", host)
		}
		for _, m := range []*machine{two, three} {
			s := m.now(ByPerch)
			if !s.Renamed() || s.Wanted != "perch.local" || s.Rival != netip.MustParseAddr("192.0.2.5") {
				t.Errorf("its status is %+v", s)
			}
			if log := m.log.String(); !strings.Contains(log, "host=perch.local address=192.0.2.5 next=perch-2.local") {
				t.Errorf("it logged %s", log)
			}
		}
		if s := one.now(ByPerch); s.Renamed() || s.Rival.IsValid() {
			t.Errorf("the first says %+v", s)
		}
	})
}

// TestSimultaneousProbes checks that two machines that start at the same time, as after a power cut, get different names.
func TestSimultaneousProbes(t *testing.T) {
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			w := &wire{}
			hosts := make(chan string, 2)
			for _, ip := range []string{"192.0.2.5", "192.0.2.6"} {
				m := w.machine(t, ip)
				ctx, stop := context.WithCancel(t.Context())
				t.Cleanup(stop)
				go func() {
					if _, err := m.Announcer.claim(ctx, m.socket); err != nil {
						hosts <- err.Error()
						return
					}
					hosts <- hostName("perch", m.suffix)
					_ = m.hold(ctx) // it is ended by the test
				}()
			}
			got := []string{<-hosts, <-hosts}
			slices.Sort(got)
			if !slices.Equal(got, []string{"perch-2.local", "perch.local"}) {
				t.Errorf("they go by %v", got)
			}
		})
	}
}

// TestConflictAfterClaim checks what happens if another machine announces the name without probing (RFC 6762 section 9):
// the first machine probes again, and takes another name if the other machine responds.
func TestConflictAfterClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		m := w.machine(t, "192.0.2.5")
		m.claim(t)
		lost := m.holding(t)
		time.Sleep(time.Hour)
		select {
		case err := <-lost:
			t.Fatalf("it gave the name up without a cause: %v", err)
		default:
		}
		other := w.machine(t, "192.0.2.9")
		other.holding(t)
		synctest.Wait()
		if err := <-lost; !errors.Is(err, errTaken) {
			t.Fatalf("it ended with %v", err)
		}
		if host := m.claim(t); host != "perch-2.local" || m.now(ByPerch).Rival != netip.MustParseAddr("192.0.2.9") {
			t.Errorf("it goes by %s, for %s", host, m.Status().Rival)
		}
	})
}

// TestConflictThatEnds checks that a machine keeps its name if another machine has announced the name, but does not
// respond to probes.
func TestConflictThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		m := w.machine(t, "192.0.2.5")
		m.claim(t)
		lost := m.holding(t)
		stranger := w.machine(t, "192.0.2.9")
		stranger.announce(ours)
		if err := <-lost; !errors.Is(err, errTaken) {
			t.Fatalf("it ended with %v", err)
		}
		if host := m.claim(t); host != "perch.local" {
			t.Errorf("it goes by %s", host)
		}
	})
}
