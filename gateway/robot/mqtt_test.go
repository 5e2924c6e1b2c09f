package robot

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/gateway/robot/tools"
	"perch/gateway/robot/udp"
	"perch/limit"
	"perch/must"
)

// mqttRobot is a robot on a real connection, as the firmware is on it.
type mqttRobot struct {
	t     *testing.T
	conn  net.Conn
	texts chan xiaozhi.ToRobot

	sound    *net.UDPConn
	out, in  *xiaozhi.Datagrams
	sequence uint32
}

// mqttServer is a server whose robots come by MQTT.
func mqttServer(t testing.TB, mind *scriptedMind, recognizer *scriptedRecognizer) (*Server, *event.Reader, string) {
	t.Helper()
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	sound := must.Value(udp.Listen("127.0.0.1:0"))(t)
	s, events := mqttServerOn(t, mind, recognizer, l, sound)
	return s, events, l.Addr().String()
}

// mqttServerOn is the same on sockets of the test's.
func mqttServerOn(t testing.TB, mind *scriptedMind, recognizer *scriptedRecognizer, l net.Listener, sound *udp.Socket) (*Server, *event.Reader) {
	t.Helper()
	bus := event.NewBus()
	o := testOptions(&registry{}, bus, mind)
	o.Recognizer, o.Synthesizer = recognizer, &beepSynthesizer{hurry: 2}
	s := NewServer(o)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.ServeMQTT(ctx, sound, l); err != nil {
			t.Error(err)
		}
	})
	events := bus.Read()
	t.Cleanup(func() {
		cancel()
		running.Wait()
		s.Close()
		bus.Close()
	})
	return s, events
}

// dial connects a robot.
func dial(t *testing.T, address string) *mqttRobot {
	t.Helper()
	conn := must.Value(net.Dial("tcp", address))(t)
	return login(t, conn)
}

// login has a robot log in on a connection.
func login(t *testing.T, conn net.Conn) *mqttRobot {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	r := &mqttRobot{t: t, conn: conn, texts: make(chan xiaozhi.ToRobot, 100)}
	logIn(t, conn, string(robotID))
	go receive(conn, func(m xiaozhi.ToRobot, err error) {
		if err == nil {
			r.texts <- m
		}
	})
	return r
}

// logInAs has a robot send its CONNECT, and returns the answer.
func logInAs(conn net.Conn, user string) (packets.ControlPacket, error) {
	hello := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	hello.ProtocolName, hello.ProtocolVersion, hello.CleanSession, hello.Keepalive = "MQTT", 4, true, 240
	hello.ClientIdentifier, hello.UsernameFlag, hello.Username = "uuid", true, user
	hello.PasswordFlag, hello.Password = true, []byte("token")
	if err := hello.Write(conn); err != nil {
		return nil, err
	}
	return packets.ReadPacket(conn)
}

func logIn(t *testing.T, conn net.Conn, user string) {
	t.Helper()
	if answer, err := logInAs(conn, user); err != nil || answer.(*packets.ConnackPacket).ReturnCode != packets.Accepted {
		t.Fatalf("%v %v", answer, err)
	}
}

// receive calls handle with the messages to a robot, until its connection is closed.
func receive(conn net.Conn, handle func(xiaozhi.ToRobot, error)) {
	for {
		p, err := packets.ReadPacket(conn)
		if err != nil {
			return
		}
		if p, is := p.(*packets.PublishPacket); is { // else it answers a sign of life
			handle(xiaozhi.ParseToRobot(p.Payload))
		}
	}
}

// publish has a robot send a message.
func publish(conn net.Conn, text []byte) error {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName, p.Payload = MQTTTopic, text
	return p.Write(conn)
}

func (r *mqttRobot) say(session string, m xiaozhi.FromRobot) {
	r.t.Helper()
	must.Succeed(r.t, publish(r.conn, xiaozhi.AppendFromRobot(nil, session, m)))
}

// await returns the next message of a type; others are passed over.
func await[M xiaozhi.ToRobot](r *mqttRobot) M {
	r.t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case m := <-r.texts:
			if wanted, is := m.(M); is {
				return wanted
			}
		case <-timeout:
			r.t.Fatalf("no %T comes", *new(M))
		}
	}
}

// open begins a talk, and returns the id of its session.
func (r *mqttRobot) open() string {
	r.t.Helper()
	return r.openFrom(func(to *net.UDPAddr) *net.UDPConn {
		r.t.Helper()
		conn := must.Value(net.DialUDP("udp", nil, to))(r.t)
		r.t.Cleanup(func() { _ = conn.Close() })
		return conn
	})
}

// openFrom is open with a socket of the test's.
func (r *mqttRobot) openFrom(socket func(to *net.UDPAddr) *net.UDPConn) string {
	r.t.Helper()
	r.say("", xiaozhi.Hello{Version: 3, Transport: "udp", Features: xiaozhi.Features{MCP: true},
		Audio: xiaozhi.AudioParams{SampleRate: 16000, FrameDuration: 60}})
	welcome := await[xiaozhi.Welcome](r)
	if welcome.UDP == nil || welcome.Session == "" {
		r.t.Fatalf("welcomed by %+v", welcome)
	}
	r.sound, r.sequence = socket(&net.UDPAddr{IP: net.ParseIP(welcome.UDP.Server), Port: welcome.UDP.Port}), 0
	r.out = xiaozhi.NewDatagrams(welcome.UDP.Key, welcome.UDP.Nonce, false)
	r.in = xiaozhi.NewDatagrams(welcome.UDP.Key, welcome.UDP.Nonce, true)
	return welcome.Session
}

// speak sends packets of sound; those of the numbers in lost are not sent.
func (r *mqttRobot) speak(all [][]byte, lost ...int) {
	r.t.Helper()
	for i, opus := range all {
		r.sequence++
		if len(lost) > 0 && i%lost[0] == 1 {
			continue
		}
		must.Value(r.sound.Write(r.out.Append(nil, xiaozhi.Datagram{Sequence: r.sequence, Audio: xiaozhi.Audio{Opus: opus}})))(r.t)
		time.Sleep(5 * time.Millisecond)
	}
}

// TestATalkByMQTT: sound and texts as on a WebSocket, with every tenth packet
// lost; and after the robot's goodbye its connection stands for the next talk.
func TestATalkByMQTT(t *testing.T) {
	recognizer := &scriptedRecognizer{always: understood("hello")[0]}
	s, events, address := mqttServer(t, answer("Good morning."), recognizer)
	r := dial(t, address)
	speech, silence := spokenPackets(t)
	for talk := range 2 {
		session := r.open()
		r.say(session, xiaozhi.ListenStart{Mode: xiaozhi.Auto})
		r.speak(speech, 10)
		for range 3 {
			r.speak(silence)
		}
		if m := await[xiaozhi.STT](r); m.Text != "hello" {
			t.Errorf("talk %d: heard %q", talk, m.Text)
		}
		await[xiaozhi.TTSStart](r)
		if m := await[xiaozhi.SentenceStart](r); m.Text != "Good morning." {
			t.Errorf("talk %d: says %q", talk, m.Text)
		}
		buffer := make([]byte, 2000)
		for want := uint32(1); want <= 5; want++ {
			_ = r.sound.SetReadDeadline(time.Now().Add(20 * time.Second))
			n := must.Value(r.sound.Read(buffer))(t)
			p, err := r.in.Parse(bytes.Clone(buffer[:n]))
			if err != nil || p.Sequence != want || len(p.Opus) == 0 {
				t.Fatalf("talk %d: packet %d is %+v, %v", talk, want, p, err)
			}
		}
		r.say(session, xiaozhi.Goodbye{Session: session})
		awaitEvent[event.RobotOffline](t, events)
	}
	must.Value(s.Alert(t.Context(), robotID, "Perch", "Tea.", ""))(t)
	if m := await[xiaozhi.Alert](r); m.Message != "Tea." {
		t.Errorf("alerted by %+v", m)
	}
}

// awaitEvent returns the next event of a type.
func awaitEvent[E event.Event](t *testing.T, events *event.Reader) E {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		e, err := events.Next(ctx)
		if err != nil {
			t.Fatalf("no %T: %v", *new(E), err)
		}
		if wanted, is := e.Event.(E); is {
			return wanted
		}
	}
}

// TestBetweenTalks: tools and a reboot reach a robot that is not talking, and the tools of the pages
// before one that fits none are used.
func TestBetweenTalks(t *testing.T) {
	s, events, address := mqttServer(t, answer("Yes."), &scriptedRecognizer{})
	r := dial(t, address)
	for m := await[xiaozhi.ToMCP](r); !bytes.Contains(m.Payload, []byte("tools/list")); m = await[xiaozhi.ToMCP](r) {
	}
	r.say("", xiaozhi.FromMCP{Payload: []byte(`{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"self.light.on","description":"on","inputSchema":{"type":"object","properties":{}}}],"nextCursor":"self.b"}}`)})
	if m := await[xiaozhi.ToMCP](r); !bytes.Contains(m.Payload, []byte("self.b")) {
		t.Errorf("asked for %s", m.Payload)
	}
	r.say("", xiaozhi.FromMCP{Payload: []byte(`{"jsonrpc":"2.0","id":3,"error":{"message":"Failed to add tool self.b because of payload size limit"}}`)})
	if listed := awaitEvent[event.ToolsListed](t, events); listed.Count != 1 {
		t.Fatalf("%d tools are listed", listed.Count)
	}
	answered := make(chan device.Result, 1)
	go func() {
		result, err := s.Call(t.Context(), robotID, "self.light.on", nil)
		if err != nil {
			t.Error(err)
		}
		answered <- result
	}()
	if m := await[xiaozhi.ToMCP](r); !bytes.Contains(m.Payload, []byte("self.light.on")) {
		t.Errorf("called is %s", m.Payload)
	}
	r.say("", xiaozhi.FromMCP{Payload: []byte(`{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"true"}],"isError":false}}`)})
	if result := <-answered; result.Text != "true" {
		t.Errorf("answered %+v", result)
	}
	must.Succeed(t, s.Reboot(t.Context(), robotID))
	await[xiaozhi.Reboot](r)
	must.Succeed(t, s.ShowEmotion(t.Context(), robotID, agent.Emotion{Name: "happy", Emoji: "😊"}))
	if m := await[xiaozhi.LLM](r); m.Emotion != "happy" {
		t.Errorf("shown is %+v", m)
	}
	must.Succeed(t, s.Hangup(t.Context(), robotID, "forgotten"))
	awaitEvent[event.RobotDisconnected](t, events)
	if err := s.Reboot(t.Context(), robotID); err == nil {
		t.Error("a robot that is gone can be rebooted")
	}
}

// TestCommandsToABrokenConnection: while a robot's MQTT connection is broken and not yet
// given up, each command to it fails as with a closed channel, and a message is kept.
func TestCommandsToABrokenConnection(t *testing.T) {
	s, events, address := mqttServer(t, answer("Yes."), &scriptedRecognizer{})
	r := dial(t, address)
	await[xiaozhi.ToMCP](r)
	k := s.links.of(robotID)
	k.conn.Close()
	awaitEvent[event.RobotDisconnected](t, events)
	tool := device.Tool{Name: "self.light.on", Schema: device.Schema{Type: "object"}}
	k.tools = tools.New([]device.Tool{tool}, tools.NewBudget(limit.Body), k.sendRPC)
	s.links.mu.Lock()
	s.links.open[robotID] = k // as before the end was noticed
	s.links.mu.Unlock()
	for name, err := range map[string]error{
		"reboot":   s.Reboot(t.Context(), robotID),
		"feel":     s.ShowEmotion(t.Context(), robotID, agent.Emotion{Name: "happy", Emoji: "😊"}),
		"announce": s.Announce(t.Context(), robotID, notice.Announcement{ID: "n", Text: "The post is here."}),
		"call":     func() error { _, err := s.Call(t.Context(), robotID, tool.Name, nil); return err }(),
	} {
		if fault, is := errors.AsType[*httpserver.Fault](err); !is || fault.Code() != "robot_offline" || fault.Status() != http.StatusConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	if queued, err := s.Alert(t.Context(), robotID, "Perch", "The post is here.", ""); err != nil || !queued {
		t.Errorf("alert: queued %t, %v", queued, err)
	}
}

// TestAForgottenTalkIsEnded: a robot whose MQTT connection breaks in a talk stays in it, and
// names its session in all that it sends, also in its answers to the requests that greet it.
// It is told that this session is over. A talk that is open is not disturbed.
func TestAForgottenTalkIsEnded(t *testing.T) {
	_, events, address := mqttServer(t, answer("Yes."), &scriptedRecognizer{})
	r := dial(t, address)
	forgotten := r.open()
	_ = r.conn.Close()
	awaitEvent[event.RobotDisconnected](t, events)

	r = dial(t, address)
	m := await[xiaozhi.ToMCP](r)
	if !bytes.Contains(m.Payload, []byte("initialize")) {
		t.Fatalf("the first request is %s", m.Payload)
	}
	r.say(forgotten, xiaozhi.FromMCP{Payload: []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)})
	if m := await[xiaozhi.Goodbye](r); m.Session != forgotten {
		t.Errorf("goodbye to %q, want %q", m.Session, forgotten)
	}
	// Its tools are still taken; request 2 is tools/list.
	r.say(forgotten, xiaozhi.FromMCP{Payload: []byte(`{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"self.light.on","inputSchema":{"type":"object","properties":{}}}]}}`)})
	if listed := awaitEvent[event.ToolsListed](t, events); listed.Count != 1 {
		t.Errorf("%d tools are listed", listed.Count)
	}
	// An idle robot, which may play a notification, names its last session as well: what it
	// answers and senses is no sign of a talk once it was told.
	r.say(forgotten, xiaozhi.Event{Name: "touched", Data: []byte("{}")})
	for _, m := range []xiaozhi.FromRobot{
		xiaozhi.ListenStart{Mode: xiaozhi.Auto}, xiaozhi.ListenStop{}, xiaozhi.ListenDetect{Text: "hi"}, xiaozhi.Abort{},
		xiaozhi.UnknownFromRobot{Type: "iot"},
	} {
		r.say(forgotten, m)
		if bye := await[xiaozhi.Goodbye](r); bye.Session != forgotten {
			t.Errorf("%T: goodbye to %q, want %q", m, bye.Session, forgotten)
		}
	}

	// In another talk too, and that one goes on. A goodbye has no answer: builds up to 2.2.4
	// answer one with another.
	session := r.open()
	r.say(session, xiaozhi.Goodbye{Session: forgotten})
	r.say("", xiaozhi.ListenStop{})
	r.say(forgotten, xiaozhi.Abort{})
	if m := await[xiaozhi.Goodbye](r); m.Session != forgotten {
		t.Errorf("goodbye to %q, want %q", m.Session, forgotten)
	}
	r.say(session, xiaozhi.ListenStart{Mode: xiaozhi.Auto})
	awaitEvent[event.ListeningStarted](t, events)
	r.say(session, xiaozhi.Goodbye{Session: session})
	awaitEvent[event.RobotOffline](t, events)
	// The session has ended by its goodbye, and the robot's answers still name it.
	for m := await[xiaozhi.ToMCP](r); !bytes.Contains(m.Payload, []byte("initialize")); m = await[xiaozhi.ToMCP](r) {
	}
	r.say(session, xiaozhi.FromMCP{Payload: []byte(`{"jsonrpc":"2.0","id":9,"result":{}}`)})
	r.say(session, xiaozhi.Hello{Version: 3, Transport: "udp"})
	await[xiaozhi.Welcome](r)
	for {
		select {
		case m := <-r.texts:
			if bye, is := m.(xiaozhi.Goodbye); is {
				t.Errorf("goodbye to %q", bye.Session)
			}
			continue
		default:
		}
		break
	}
}

// TestPagesOfToolsBeforeOneThatFitsNone: a robot answers the page that would begin with a
// tool too large for any page with an error. The tools of the pages before are used, over
// either transport.
func TestPagesOfToolsBeforeOneThatFitsNone(t *testing.T) {
	for _, framing := range []xiaozhi.Framing{xiaozhi.Framing1, byMQTT} {
		synctest.Test(t, func(t *testing.T) {
			k := newTalkOn(t, answer("Yes."), framing, func(*talk) {})
			k.say(xiaozhi.Hello{Version: 3, Features: xiaozhi.Features{MCP: true}})
			for _, payload := range []string{
				`{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"self.a","inputSchema":{"type":"object","properties":{}}}],"nextCursor":"self.b"}}`,
				`{"jsonrpc":"2.0","id":3,"error":{"message":"Failed to add tool self.b because of payload size limit"}}`,
			} {
				k.say(xiaozhi.FromMCP{Payload: []byte(payload)})
			}
			k.pass(time.Second)
			if tools := k.server.Tools(robotID); len(tools) != 1 || tools[0].Name != "self.a" {
				t.Errorf("framing %d: the robot's tools are %+v", framing, tools)
			}
			if known, _ := k.robots.Get(robotID); len(known.Tools) != 1 {
				t.Errorf("framing %d: %d tools are kept", framing, len(known.Tools))
			}
			k.close()
		})
	}
}
