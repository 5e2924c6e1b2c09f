package udp

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"perch/device/xiaozhi"
	"perch/must"
)

// voiceFrame is the duration of each packet, and toc is the first byte of such a packet.
const (
	voiceFrame = 60 * time.Millisecond
	toc        = "\x18"
)

// robotIP is the address of the robot in tests without a network.
var robotIP = netip.MustParseAddr("192.0.2.1")

// robotEnd is the robot's end of a stream.
type robotEnd struct {
	*net.UDPConn
	out, in *xiaozhi.Datagrams
}

// opened returns a stream of a running socket, and the robot's end of the stream.
func opened(t *testing.T) (*Stream, *robotEnd) {
	t.Helper()
	s, err := Listen("127.0.0.1:0")
	must.Succeed(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	talk := s.Open("127.0.0.1", netip.MustParseAddr("127.0.0.1"), voiceFrame)
	return talk, end(t, talk)
}

func end(t *testing.T, talk *Stream) *robotEnd {
	t.Helper()
	conn, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: talk.Secret().Port})
	must.Succeed(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	secret := talk.Secret()
	return &robotEnd{conn, xiaozhi.NewDatagrams(secret.Key, secret.Nonce, false), xiaozhi.NewDatagrams(secret.Key, secret.Nonce, true)}
}

func (r *robotEnd) send(t *testing.T, sequence uint32, opus string) {
	t.Helper()
	must.Value(r.Write(datagram(r.out, sequence, toc+opus)))(t)
}

func datagram(by *xiaozhi.Datagrams, sequence uint32, opus string) []byte {
	return by.Append(nil, xiaozhi.Datagram{Sequence: sequence, Audio: xiaozhi.Audio{Opus: []byte(opus)}})
}

// withoutSocket returns a stream in which up to waiting datagrams may wait, and the robot's encoder.
func withoutSocket(waiting int) (*Stream, *xiaozhi.Datagrams) {
	secret := xiaozhi.UDP{Key: [16]byte{1, 2, 3}, Nonce: xiaozhi.NewNonce([4]byte{9, 9, 9, 9})}
	talk := &Stream{secret: secret, robot: robotIP, packet: voiceFrame, audible: make(chan struct{}), arrived: make(chan Arrived, waiting),
		in: xiaozhi.NewDatagrams(secret.Key, secret.Nonce, false)}
	return talk, xiaozhi.NewDatagrams(secret.Key, secret.Nonce, false)
}

func arrives(t *testing.T, talk *Stream, want string) {
	t.Helper()
	select {
	case a := <-talk.Arrived():
		if got := a.Datagram(); string(got.Opus) != toc+want {
			t.Errorf("%q arrives, want %q", got.Opus, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("%q does not arrive", want)
	}
}

// TestSoundBothWays checks that sound is sent to the address that the robot's sound comes from, also after the
// robot's port has changed.
func TestSoundBothWays(t *testing.T) {
	talk, robot := opened(t)
	talk.Send(xiaozhi.Audio{Opus: []byte("early")}) // before the robot has sent anything
	robot.send(t, 1, "one")
	arrives(t, talk, "one")
	hears := func(r *robotEnd, want string) {
		t.Helper()
		talk.Send(xiaozhi.Audio{Timestamp: 60, Opus: []byte(want)})
		buffer := make([]byte, 2000)
		must.Succeed(t, r.SetReadDeadline(time.Now().Add(10*time.Second)))
		n, err := r.Read(buffer)
		must.Succeed(t, err)
		if p, err := r.in.Parse(buffer[:n]); err != nil || string(p.Opus) != want || p.Timestamp != 60 {
			t.Errorf("the robot gets %+v, %v", p, err)
		}
	}
	hears(robot, "hello")
	elsewhere := end(t, talk)
	for i, text := range []string{"two", "three", "four"} {
		elsewhere.send(t, uint32(i)+2, text)
		arrives(t, talk, text)
	}
	hears(elsewhere, "there you are")
}

// TestWhatIsNotTheRobots checks that datagrams of others are dropped, and do not change where sound is sent.
func TestWhatIsNotTheRobots(t *testing.T) {
	talk, robot := withoutSocket(maxArrived)
	secret, from := talk.secret, netip.AddrPortFrom(robotIP, 1000)
	const sound = toc + "sound"
	if !talk.receive(datagram(robot, 1, sound), from) || !talk.receive(datagram(robot, 2, sound), from) {
		t.Fatal("the robot's own are not taken")
	}
	good := datagram(robot, 3, sound)
	thief := netip.AddrPortFrom(robotIP, 666) // with a forged sender
	for name, d := range map[string][]byte{
		"replayed":      datagram(robot, 2, sound),
		"number 0":      datagram(robot, 0, sound),
		"far ahead":     datagram(robot, 3+maxAhead, sound),
		"of ours":       datagram(xiaozhi.NewDatagrams(secret.Key, secret.Nonce, true), 3, sound),
		"another talk":  datagram(xiaozhi.NewDatagrams(secret.Key, xiaozhi.NewNonce([4]byte{9, 9, 9, 8}), false), 3, sound),
		"without sound": datagram(robot, 3, ""),
		"in stereo":     datagram(robot, 3, "\x1csound"),
		"of 20 ms":      datagram(robot, 3, "\x08sound"),
		"of no frames":  datagram(robot, 3, "\x0b\x00sound"),
		"too much":      datagram(robot, 3, toc+strings.Repeat("\x00", maxOpus)),
		"truncated":     good[:len(good)-1],
		"header only":   good[:16],
		"half a header": good[:7],
		"nothing":       nil,
	} {
		if talk.receive(bytes.Clone(d), thief) {
			t.Errorf("%s is taken", name)
		}
	}
	if peer := talk.peer.Load(); peer == nil || *peer != from {
		t.Errorf("sound goes to %v", peer)
	}
	if !talk.receive(good, from) || len(talk.arrived) != 3 {
		t.Errorf("the robot's next one is not taken; %d have arrived", len(talk.arrived))
	}
}

// TestAfterALongLoss checks that a sequence number far ahead is rejected, and that the number after it is
// accepted.
func TestAfterALongLoss(t *testing.T) {
	talk, robot := withoutSocket(maxArrived)
	var got []bool
	for _, sequence := range []uint32{1, 1000, 1002, 1003, 1004} {
		got = append(got, talk.receive(datagram(robot, sequence, toc), netip.AddrPortFrom(robotIP, 1000)))
	}
	if want := [...]bool{true, false, false, true, true}; [5]bool(got) != want {
		t.Errorf("taken %v, want %v", got, want)
	}
}

// TestForgedDatagrams checks that few datagrams made without the key are accepted, and that none of them
// changes where sound is sent or makes the robot's own datagrams look old.
func TestForgedDatagrams(t *testing.T) {
	talk, robot := withoutSocket(1)
	from, thief := netip.AddrPortFrom(robotIP, 1000), netip.AddrPortFrom(robotIP, 666) // with a forged sender
	random := rand.New(rand.NewPCG(1, 2))
	taken, mine := 0, uint32(0)
	for range 20_000 {
		if random.IntN(100) == 0 {
			mine++
			if !talk.receive(datagram(robot, mine, toc), from) && mine > talk.highest {
				t.Fatalf("the robot's own, number %d of %d, is not taken", mine, talk.highest)
			}
			<-talk.arrived
		}
		key := [16]byte{byte(random.Uint32()), byte(random.Uint32()), 7}
		if talk.receive(datagram(xiaozhi.NewDatagrams(key, talk.secret.Nonce, false), mine+random.Uint32N(1000), toc+"forged"), thief) {
			taken++
			<-talk.arrived
			mine = max(mine, talk.highest) // the robot continues after the accepted number
		}
	}
	if taken > 20 || *talk.peer.Load() != from {
		t.Errorf("%d are taken, and sound goes to %s", taken, talk.peer.Load())
	}
	t.Logf("of 20000 forged datagrams %d were taken", taken)
}

// TestDatagramsOfAnotherHostAreDropped checks that datagrams from another address than the robot's have no
// effect, even if they are encrypted with the robot's key: they do not set or change the address for sound, and
// do not make the robot's own sequence numbers look old.
func TestDatagramsOfAnotherHostAreDropped(t *testing.T) {
	for name, first := range map[string]uint32{"before the robot's first": 0, "after it": 1} {
		t.Run(name, func(t *testing.T) {
			talk, robot := withoutSocket(300)
			// A socket of both families has IPv4 addresses in their mapped form.
			from := netip.MustParseAddrPort("[::ffff:192.0.2.1]:1000")
			if first > 0 && !talk.receive(datagram(robot, first, toc), from) {
				t.Fatal("the robot's first datagram is not taken")
			}
			thief := netip.MustParseAddrPort("192.0.2.66:666")
			for sequence := first + 1; sequence <= 200; sequence++ {
				if talk.receive(datagram(robot, sequence, toc), thief) {
					t.Fatalf("number %d of another host is taken", sequence)
				}
			}
			for sequence := uint32(1 << 20); sequence <= 1<<20+10; sequence++ {
				talk.receive(datagram(robot, sequence, toc), thief)
			}
			if !talk.receive(datagram(robot, first+1, toc), from) {
				t.Error("the robot's own next number is not taken any more")
			}
			if peer := talk.peer.Load(); peer == nil || *peer != from {
				t.Errorf("sound goes to %v", peer)
			}
		})
	}
}

func TestAClosedTalkTakesNothing(t *testing.T) {
	talk, robot := opened(t)
	robot.send(t, 1, "one")
	arrives(t, talk, "one")
	talk.Close()
	if talk.socket.receive(datagram(robot.out, 2, toc+"two"), netip.AddrPortFrom(talk.robot, 1)) {
		t.Error("a closed talk takes a datagram")
	}
}

func FuzzTalk(f *testing.F) {
	secret := xiaozhi.UDP{Nonce: xiaozhi.NewNonce([4]byte{1})}
	robot := xiaozhi.NewDatagrams(secret.Key, secret.Nonce, false)
	f.Add(datagram(robot, 1, toc+"sound"))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		s := &Socket{streams: map[[4]byte]*Stream{}}
		talk := &Stream{socket: s, robot: robotIP, packet: voiceFrame, audible: make(chan struct{}), arrived: make(chan Arrived, 2),
			in: xiaozhi.NewDatagrams(secret.Key, secret.Nonce, false)}
		s.streams[[4]byte{1}] = talk
		first := s.receive(bytes.Clone(datagram), netip.AddrPortFrom(robotIP, 1))
		if again := s.receive(bytes.Clone(datagram), netip.AddrPortFrom(robotIP, 1)); again {
			t.Errorf("%x is taken twice (first %v)", datagram, first)
		}
	})
}
