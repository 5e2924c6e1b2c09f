package relay

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/must"
)

// oscLines decodes the messages in a packet, and returns a line of text for each.
func oscLines(packet []byte) (lines []string, err error) {
	if len(packet)%4 != 0 {
		return nil, fmt.Errorf("%d bytes are not a multiple of four", len(packet))
	}
	text := func() (string, error) {
		end := strings.IndexByte(string(packet), 0)
		if end < 0 || end/4*4+4 > len(packet) {
			return "", errors.New("a text does not end")
		}
		t := string(packet[:end])
		packet = packet[end/4*4+4:]
		return t, nil
	}
	address, err := text()
	if err != nil {
		return nil, err
	}
	if address == "#bundle" {
		for packet = packet[8:]; len(packet) > 0; {
			n := int(binary.BigEndian.Uint32(packet))
			inner, err := oscLines(packet[4 : 4+n])
			if err != nil {
				return nil, err
			}
			lines, packet = append(lines, inner...), packet[4+n:]
		}
		return lines, nil
	}
	tags, err := text()
	if err != nil || !strings.HasPrefix(tags, ",") {
		return nil, fmt.Errorf("%s has the tags %q: %w", address, tags, err)
	}
	line := address
	for _, tag := range tags[1:] {
		switch tag {
		case 'T', 'F':
			line += fmt.Sprintf(" %t", tag == 'T')
		case 'i':
			line += fmt.Sprintf(" %d", int32(binary.BigEndian.Uint32(packet)))
			packet = packet[4:]
		case 'f':
			line += fmt.Sprintf(" %.2f", math.Float32frombits(binary.BigEndian.Uint32(packet)))
			packet = packet[4:]
		case 's':
			t, err := text()
			if err != nil {
				return nil, err
			}
			line += fmt.Sprintf(" %q", t)
		}
	}
	return append(lines, line), nil
}

// listener is a fake program that receives Open Sound Control over UDP.
type listener struct {
	t       testing.TB
	conn    net.PacketConn
	address string
	serving sync.WaitGroup
	transcript

	mu      sync.Mutex
	largest int // size of the largest packet, in bytes
}

// newListener returns a running listener at an address, or anywhere if the address is empty.
func newListener(t testing.TB, address string) *listener {
	t.Helper()
	l := &listener{t: t, address: cmp.Or(address, anywhere)}
	l.again()
	t.Cleanup(l.stop)
	return l
}

// again starts the listener at its address, and clears the transcript.
func (l *listener) again() {
	l.t.Helper()
	l.address = somewhere(l.t, l.address, func(at string) (err error) {
		l.conn, err = net.ListenPacket("udp", at)
		return err
	})
	l.clear()
	l.serving.Go(l.serve)
}

func (l *listener) serve() {
	packet := make([]byte, 1<<16)
	for {
		n, _, err := l.conn.ReadFrom(packet)
		if err != nil {
			return
		}
		lines, err := oscLines(packet[:n])
		if err != nil {
			l.t.Errorf("%q: %v", packet[:n], err)
		}
		l.add(lines...)
		l.mu.Lock()
		l.largest = max(l.largest, n)
		l.mu.Unlock()
	}
}

func (l *listener) stop() {
	_ = l.conn.Close()
	l.serving.Wait()
}

// has reports whether the listener has received a message.
func (l *listener) has(line string) bool {
	return strings.Contains("\n"+l.all()+"\n", "\n"+line+"\n")
}

// fakeConn is a connection that records datagrams, for tests in a synctest bubble.
type fakeConn struct {
	net.Conn
	mu   sync.Mutex
	told map[string][]time.Time // times at which each message was sent
}

func (s *fakeConn) Write(packet []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines, err := oscLines(packet)
	for _, line := range lines {
		s.told[line] = append(s.told[line], time.Now())
	}
	return len(packet), err
}

func (*fakeConn) SetWriteDeadline(time.Time) error { return nil }

func (*fakeConn) Close() error { return nil }

// TestDatagramsAreRepeated tests that datagrams, which may be lost, are repeated every two seconds.
func TestDatagramsAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lasts := map[*fakeConn]string{}
		to := func(line string) *datagrams {
			s := &fakeConn{told: map[string][]time.Time{}}
			lasts[s] = line
			return &datagrams{conn: s}
		}
		h := changedHarness(t, slog.DiscardHandler, func(r *Relays) {
			vrchat, vmc := r.relays[0], r.relays[1]
			toVRChat, toVMC := to("/avatar/parameters/Stackchan/State 5"), to(`/VMC/Ext/Blend/Val "Joy" 1.00`)
			vrchat.program = &fakeProgram{connect: func() (link, error) {
				return &vrchatLink{datagrams: toVRChat, words: vrchat.words, query: &oscQuery{}, sent: map[string]oscValue{}}, nil
			}}
			vmc.program = &fakeProgram{connect: func() (link, error) {
				return &vmcLink{datagrams: toVMC, words: vmc.words, current: map[string]float64{}, goal: map[string]float64{}}, nil
			}}
		}, Target{Kind: "vrchat"}, Target{Kind: "vmc"})
		h.happens(robotA, "s", turn()...)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		for s, line := range lasts {
			s.mu.Lock()
			at := s.told[line]
			s.mu.Unlock()
			if len(at) == 0 || len(at) > 12 { // when the scene changes, at the first tick, and every two seconds
				t.Errorf("%s is told %d times in 20 s", line, len(at))
			}
			for i, when := range at {
				if gap := append(at, time.Now())[i+1].Sub(when); gap > 2*time.Second {
					t.Errorf("%s is told again after %s", line, gap)
				}
			}
		}
	})
}

func TestOSC(t *testing.T) {
	// The first packet is an example of the specification.
	const example = "/oscillator/4/frequency\x00,f\x00\x00\x43\xdc\x00\x00"
	if got := oscMessage("/oscillator/4/frequency", oscFloat(440)); got != example {
		t.Errorf("%q", got)
	}
	var got []string
	for _, p := range []string{
		oscMessage("/chatbox/input", oscText("Ja, gern ☕."), oscBool(true), oscBool(false)),
		oscMessage("/avatar/parameters/Stackchan/State", oscInt(-7)),
		oscBundle(oscMessage("/VMC/Ext/Blend/Val", oscText("Joy"), oscFloat(.25)), oscMessage("/VMC/Ext/Blend/Apply")),
	} {
		lines, err := oscLines([]byte(p))
		must.Succeed(t, err)
		got = append(got, lines...)
	}
	want := []string{`/chatbox/input "Ja, gern ☕." true false`, "/avatar/parameters/Stackchan/State -7", `/VMC/Ext/Blend/Val "Joy" 0.25`, "/VMC/Ext/Blend/Apply"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for n := range 9 {
		if s := oscString(strings.Repeat("x", n)); len(s)%4 != 0 || len(s) <= n || len(s) > n+4 {
			t.Errorf("%d letters are %q", n, s)
		}
	}
	if s := oscString("a\x00b"); s != "ab\x00\x00" {
		t.Errorf("%q", s)
	}
}

// TestDatagramsToNobody tests the error if no program listens.
func TestDatagramsToNobody(t *testing.T) {
	l := newListener(t, "")
	l.stop()
	began := time.Now()
	_, err := openDatagrams(t.Context(), "udp://"+l.address, oscMessage("/x"))
	if err == nil || !strings.Contains(err.Error(), "nothing listens at udp://127.0.0.1") {
		t.Errorf("%v", err)
	}
	t.Logf("known after %s", time.Since(began))
}
