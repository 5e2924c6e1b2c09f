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

// voiceFrame is what each packet holds; toc is how one of that length begins.
const (
	voiceFrame = 60 * time.Millisecond
	toc        = "\x18"
)

// robotIP is where the robot's control connection comes from in tests without a network.
var robotIP = netip.MustParseAddr("192.0.2.1")

// robotEnd is a robot's end of a talk.
type robotEnd struct {
	*net.UDPConn
	out, in *xiaozhi.Datagrams
}

// opened returns a talk on a socket that runs, and the robot's end of it.
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

// withoutSocket returns a talk that has room for so many datagrams, and what its robot encrypts with.
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

// TestSoundBothWays: sound goes to where the robot's comes from, and follows the
// robot to another port.
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

// TestWhatIsNotTheRobots has no effect: neither on what arrives nor on where sound
// goes.
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

// TestAfterALongLoss: two numbers in a row that are far ahead are the robot's.
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

// TestForgedDatagrams: of those that somebody has made without the key, few are taken,
// and none moves where sound goes or makes the robot's own old.
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
			mine = max(mine, talk.highest) // the robot is that much further
		}
	}
	if taken > 20 || *talk.peer.Load() != from {
		t.Errorf("%d are taken, and sound goes to %s", taken, talk.peer.Load())
	}
	t.Logf("of 20000 forged datagrams %d were taken", taken)
}

// TestDatagramsOfAnotherHostAreDropped: whoever listens can make datagrams that pass for the
// robot's. From another address than that of its control connection they neither begin a
// talk's sound, nor move it, nor make the robot's own numbers old.
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
