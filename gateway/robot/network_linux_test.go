package robot

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/udp"
	"perch/must"
)

// home is a network of three hosts, each a network namespace: the appliance's, which is also the switch, a robot's and a
// thief's.
type home struct {
	t                    *testing.T
	perch, robot, thief  string
	perchAt, robotAt     string // addresses
	thiefAt, robotsCable string
}

// newHome makes the network, or skips the test if that is not permitted.
func newHome(t *testing.T) *home {
	t.Helper()
	id := fmt.Sprintf("perch-robot-%d", os.Getpid())
	h := &home{t: t, perch: id + "-perch", robot: id + "-robot", thief: id + "-thief",
		perchAt: "10.79.0.1", robotAt: "10.79.0.2", thiefAt: "10.79.0.3", robotsCable: "robot0"}
	for _, ns := range []string{h.perch, h.robot, h.thief} {
		if out, err := exec.Command("ip", "netns", "add", ns).CombinedOutput(); err != nil {
			t.Skipf("needs network namespaces, and iproute2 to make them: %v: %s", err, bytes.TrimSpace(out))
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		if out, err := exec.Command("ip", "-n", ns, "link", "set", "lo", "up").CombinedOutput(); err != nil {
			t.Skipf("needs network namespaces that can be entered: %v: %s", err, bytes.TrimSpace(out))
		}
	}
	h.ip(h.perch, "link add br0 type bridge")
	h.ip(h.perch, "addr add "+h.perchAt+"/24 dev br0")
	h.ip(h.perch, "link set br0 up")
	for cable, host := range map[string][2]string{h.robotsCable: {h.robot, h.robotAt}, "thief0": {h.thief, h.thiefAt}} {
		h.ip("", "link add "+cable+" netns "+h.perch+" type veth peer name eth0 netns "+host[0])
		h.ip(h.perch, "link set "+cable+" master br0 up")
		h.ip(host[0], "addr add "+host[1]+"/24 dev eth0")
		h.ip(host[0], "link set eth0 up")
	}
	return h
}

// ip runs the command ip of iproute2, in the namespace ns unless ns is empty.
func (h *home) ip(ns, args string) {
	h.t.Helper()
	words := strings.Fields(args)
	if ns != "" {
		words = append([]string{"-n", ns}, words...)
	}
	if out, err := exec.Command("ip", words...).CombinedOutput(); err != nil {
		h.t.Fatalf("ip %s: %v: %s", strings.Join(words, " "), err, out)
	}
}

// on calls open in the namespace of a host. Sockets stay in the namespace of the thread that has made them.
func (h *home) on(ns string, open func() error) {
	h.t.Helper()
	setns := map[string]uintptr{"amd64": 308, "arm64": 268}[runtime.GOARCH] // package syscall lacks SYS_SETNS on some architectures
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread, which is in another namespace, ends with the goroutine
		there, err := os.Open("/run/netns/" + ns)
		if err == nil {
			if _, _, errno := syscall.RawSyscall(setns, there.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
				err = fmt.Errorf("enter the network namespace %s: %w", ns, errno)
			}
			_ = there.Close()
		}
		if err == nil {
			err = open()
		}
		failed <- err
	}()
	must.Succeed(h.t, <-failed)
}

// dial connects the robot by MQTT from its host.
func (h *home) dial(address string) (r *mqttRobot) {
	h.t.Helper()
	var conn net.Conn
	h.on(h.robot, func() (err error) { conn, err = net.Dial("tcp", address); return err })
	return login(h.t, conn)
}

// udp opens a UDP socket in the namespace of a host.
func (h *home) udp(ns string, to *net.UDPAddr) (conn *net.UDPConn) {
	h.t.Helper()
	h.on(ns, func() (err error) { conn, err = net.DialUDP("udp", nil, to); return err })
	h.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestAThiefAndAStuckRobot checks a session while another host, which knows the header of its datagrams but not the key,
// sends forged datagrams: the robot is understood and answered, and the other host gets no sound. The robot's cable is
// then pulled. When the robot is connected again, it receives a goodbye for the session.
func TestAThiefAndAStuckRobot(t *testing.T) {
	h := newHome(t)
	var l net.Listener
	var sound *udp.Socket
	h.on(h.perch, func() (err error) {
		if l, err = net.Listen("tcp", h.perchAt+":0"); err == nil {
			sound, err = udp.Listen(":0") // for IPv4 and IPv6, like robots.udp
		}
		return err
	})
	recognizer := &scriptedRecognizer{always: understood("hello")[0]}
	_, events := mqttServerOn(t, answer("Good morning to you, and to everybody else who is in this room."), recognizer, l, sound)
	r := h.dial(l.Addr().String())
	speech, silence := spokenPackets(t)

	session := r.openFrom(func(to *net.UDPAddr) *net.UDPConn { return h.udp(h.robot, to) })
	thief := h.udp(h.thief, &net.UDPAddr{IP: net.ParseIP(h.perchAt), Port: sound.Port()})
	r.say(session, xiaozhi.ListenStart{Mode: xiaozhi.Auto})
	// The thief sends datagrams with valid headers and random contents, first with the first sequence numbers.
	random, header := rand.New(rand.NewPCG(1, 2)), r.out.Append(nil, xiaozhi.Datagram{Sequence: 1, Audio: xiaozhi.Audio{Opus: make([]byte, 60)}})
	steal := func(times int, sequence func(i int) uint32) {
		t.Helper()
		for i := range times {
			d := header[:len(header)-60]
			n := sequence(i)
			d[12], d[13], d[14], d[15] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
			for range 60 {
				d = append(d, byte(random.Uint32()))
			}
			must.Value(thief.Write(d))(t)
			if i%100 == 99 {
				time.Sleep(time.Millisecond) // so that the appliance's socket does not overflow
			}
		}
	}
	steal(2000, func(i int) uint32 { return uint32(i/50) + 1 })
	r.speak(speech[:1])
	steal(25_000, func(i int) uint32 { return uint32(i/50) + 2 })
	r.speak(speech[1:])
	for range 3 {
		r.speak(silence)
	}
	if m := await[xiaozhi.STT](r); m.Text != "hello" {
		t.Errorf("heard %q", m.Text)
	}
	await[xiaozhi.TTSStart](r)
	buffer := make([]byte, 2000)
	for want := uint32(1); want <= 10; want++ {
		_ = r.sound.SetReadDeadline(time.Now().Add(20 * time.Second))
		n, err := r.sound.Read(buffer)
		if err != nil {
			t.Fatalf("packet %d does not come: %v", want, err)
		}
		if p, err := r.in.Parse(bytes.Clone(buffer[:n])); err != nil || p.Sequence != want {
			t.Fatalf("packet %d is %+v, %v", want, p, err)
		}
	}
	_ = thief.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := thief.Read(buffer); err == nil {
		t.Errorf("the thief gets %d bytes", n)
	}

	// The robot is speaking when its cable is pulled. Its connection breaks, and it stays in its session.
	h.ip(h.perch, "link set "+h.robotsCable+" down")
	_ = r.conn.Close() // as the robot's MQTT library does; the appliance does not notice it
	h.ip(h.perch, "link set "+h.robotsCable+" up")
	again := h.dial(l.Addr().String())
	awaitEvent[event.RobotConnected](t, events)
	if m := await[xiaozhi.ToMCP](again); !bytes.Contains(m.Payload, []byte("initialize")) {
		t.Errorf("the first request is %s", m.Payload)
	}
	again.say(session, xiaozhi.FromMCP{Payload: []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)})
	if m := await[xiaozhi.Goodbye](again); m.Session != session {
		t.Errorf("goodbye to %q, want %q", m.Session, session)
	}
}
