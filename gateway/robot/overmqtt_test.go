package robot

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/gateway/robot/control"
	"perch/gateway/robot/udp"
)

// byMQTT is a value that tests use instead of a framing for a talk over MQTT and UDP.
const byMQTT xiaozhi.Framing = 9

// overMQTT returns a channel over MQTT and UDP in memory. The robot's messages of c are sent as MQTT packets and encrypted
// datagrams, and the messages to the robot are recorded in c.
//
// Unless c.mute is set, the first datagram is sent at once, because some tests make a robot speak whose microphone was
// never open.
func (k *talk) overMQTT(c *fakeChannel, robot device.Robot) channel {
	c.framing, c.byMQTT = xiaozhi.Framing1, true
	ours, theirs := net.Pipe()
	conn := make(chan *control.Conn)
	go func() {
		accepted, err := control.Accept(ours, func(control.Credentials) (string, error) { return MQTTTopic, nil })
		if err != nil {
			k.t.Error(err)
		}
		conn <- accepted
	}()
	logIn(k.t, theirs, string(robot.ID))
	sound := newFakeUDP()
	socket := udp.NewSocket(sound)
	l := newLink(k.server.sessions, newConnection(k.server.shared, robot, device.Client{}, <-conn, "127.0.0.1", netip.MustParseAddr("127.0.0.1")))
	l.log = slog.New(slog.DiscardHandler)
	talk, on := l.newMQTTSession(socket, xiaozhi.AudioParams{})
	l.setSession(talk)
	secret := *on.udp
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // the appliance's listener
		if err := socket.Run(ctx); err != nil {
			k.t.Error(err)
		}
	}()
	go func() {
		for {
			text, err := l.conn.Receive()
			if err != nil {
				return
			}
			if m, _ := xiaozhi.ParseFromRobot(text); isHello(m) {
				talk.Deliver(text) // handleMessage would begin another session
				continue
			}
			l.handleMessage(text, socket, nil)
		}
	}()
	go receive(theirs, func(m xiaozhi.ToRobot, err error) { // the robot's network task
		if err != nil {
			k.t.Error(err)
		}
		if _, bye := m.(xiaozhi.Goodbye); !bye {
			_ = c.keep(sent{message: m})
		}
	})
	go func() {
		in := xiaozhi.NewDatagrams(secret.Key, secret.Nonce, true)
		for {
			select {
			case b := <-sound.toRobot:
				d, err := in.Parse(b)
				if err != nil {
					k.t.Error(err)
				}
				_ = c.keep(sent{audio: d.Audio})
			case <-sound.closed:
				return
			}
		}
	}()
	go func() { // the robot's main loop
		out, sequence := xiaozhi.NewDatagrams(secret.Key, secret.Nonce, false), uint32(1)
		if !c.mute {
			sound.fromRobot <- out.Append(nil, xiaozhi.Datagram{Sequence: sequence, Audio: xiaozhi.Audio{Opus: k.silence[0]}})
		}
		alive := time.NewTicker(4 * time.Minute)
		defer func() {
			alive.Stop()
			_ = theirs.Close()
			cancel()
		}()
		for {
			select {
			case <-alive.C:
				_ = packets.NewControlPacket(packets.Pingreq).Write(theirs) // fails only if the connection is closed
			case f := <-c.up:
				if f.raw == nil && f.message == nil {
					sequence++
					sound.fromRobot <- out.Append(nil, xiaozhi.Datagram{Sequence: sequence, Audio: f.audio})
					continue
				}
				// In transcripts, the session ID is "S".
				text := bytes.Replace(f.raw, []byte(`"session_id":"S"`), fmt.Appendf(nil, `"session_id":%q`, talk.Session()), 1)
				if f.raw == nil {
					text = xiaozhi.AppendFromRobot(nil, talk.Session(), f.message)
				}
				if publish(theirs, text) != nil {
					return
				}
			case <-c.closed: // closed by either side
				talk.Abandon()
				return
			}
		}
	}()
	on.Transport = &watchedTalk{talk, c}
	return on
}

// audibleWithin is how long speech waits for the first datagram of a robot.
const audibleWithin = 2 * time.Second

// TestSpeechWaitsForTheFirstDatagram checks that speech waits for the robot's first datagram, which shows the address for
// sound. If no datagram comes within audibleWithin, "tts start" is sent all the same, but no sound.
func TestSpeechWaitsForTheFirstDatagram(t *testing.T) {
	for name, after := range map[string]time.Duration{"after a second": time.Second, "never": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newTalkOn(t, answer("Yes."), byMQTT, func(k *talk) { k.channel.mute = true })
				k.say(xiaozhi.Hello{Version: 3, Transport: "udp"})
				k.say(xiaozhi.ListenStart{Mode: xiaozhi.Auto})
				began := time.Now()
				k.queueText("Tea is ready.")
				k.pass(min(after, 900*time.Millisecond))
				k.wantStory("hello")
				if after < audibleWithin {
					k.pass(after - time.Since(began))
					k.put(frame{audio: xiaozhi.Audio{Opus: k.silence[0]}})
				}
				k.pass(20 * time.Second)
				first := k.channel.all()[1]
				if want := min(after, audibleWithin); first.at.Sub(began) != want {
					t.Errorf("tts start came after %s, want %s", first.at.Sub(began), want)
				}
				if heard := len(k.channel.packets()) > 0; heard != (after < audibleWithin) {
					t.Errorf("%d packets were sent", len(k.channel.packets()))
				}
				k.close()
			})
		})
	}
}

func isHello(m xiaozhi.FromRobot) bool { _, is := m.(xiaozhi.Hello); return is }

// watchedTalk is a session that also closes the fakeChannel, which records the reason.
type watchedTalk struct {
	*mqttSession
	channel *fakeChannel
}

func (w *watchedTalk) Close(code int, reason string) {
	w.mqttSession.Close(code, reason)
	w.channel.Close(code, reason)
}

// fakeUDP is the appliance's UDP socket in memory.
type fakeUDP struct {
	fromRobot, toRobot chan []byte
	closed             chan struct{}
}

func newFakeUDP() *fakeUDP {
	return &fakeUDP{fromRobot: make(chan []byte, 100), toRobot: make(chan []byte, 100), closed: make(chan struct{})}
}

func (f *fakeUDP) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	select {
	case d := <-f.fromRobot:
		return copy(b, d), netip.MustParseAddrPort("127.0.0.1:1"), nil
	case <-f.closed:
		return 0, netip.AddrPort{}, net.ErrClosed
	}
}

func (f *fakeUDP) WriteToUDPAddrPort(b []byte, _ netip.AddrPort) (int, error) {
	select {
	case f.toRobot <- append([]byte(nil), b...):
		return len(b), nil
	case <-f.closed:
		return 0, io.ErrClosedPipe
	}
}

func (*fakeUDP) SetWriteDeadline(time.Time) error { return nil }
func (*fakeUDP) LocalAddr() net.Addr              { return &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8003} }

func (f *fakeUDP) Close() error {
	select {
	case <-f.closed:
	default:
		close(f.closed)
	}
	return nil
}

var udpOfHello = regexp.MustCompile(`,"udp":\{[^}]*\}`)

// likeWebSocket returns a line of a transcript as it would be over a WebSocket: it changes the transport in the hellos, and
// removes the address and the key for sound from the appliance's hello.
func likeWebSocket(text string) string {
	return strings.Replace(udpOfHello.ReplaceAllString(text, ""), `"transport":"udp"`, `"transport":"websocket"`, 1)
}

// TestCatchUpOverUDPSpreads checks that at most five datagrams are sent within ten milliseconds, even if more are due after
// a stall. The robot's mailbox for datagrams does not hold more.
func TestCatchUpOverUDPSpreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTalkOn(t, answer("This is a sentence of some length, which takes a while."), byMQTT, func(k *talk) {
			k.synthesizer.delay = 2 * time.Second // for each second of sound, so that the robot's queue runs empty
		})
		k.say(xiaozhi.Hello{Version: 3, Transport: "udp"})
		k.hears(xiaozhi.Auto, "hello")
		k.pass(time.Minute)
		sent := k.channel.packets()
		if len(sent) < 50 {
			t.Fatalf("%d packets were sent", len(sent))
		}
		most := 0
		for i := range sent {
			n := 1
			for j := i + 1; j < len(sent) && sent[j].Sub(sent[i]) < 10*time.Millisecond; j++ {
				n++
			}
			most = max(most, n)
		}
		if most > 5 {
			t.Errorf("%d datagrams leave within ten milliseconds", most)
		}
		if most < 5 {
			t.Errorf("%d at most leave together: nothing was caught up", most)
		}
		k.close()
	})
}
