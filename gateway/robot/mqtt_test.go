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

// mqttRobot is a simulated robot on real MQTT and UDP connections.
type mqttRobot struct {
	t     *testing.T
	conn  net.Conn
	texts chan xiaozhi.ToRobot

	sound    *net.UDPConn
	out, in  *xiaozhi.Datagrams
	sequence uint32
}

// mqttServer starts a server for robots that connect by MQTT, and returns a reader of its events and its address.
func mqttServer(t testing.TB, mind *scriptedMind, recognizer *scriptedRecognizer) (*Server, *event.Reader, string) {
	t.Helper()
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	sound := must.Value(udp.Listen("127.0.0.1:0"))(t)
	s, events := mqttServerOn(t, mind, recognizer, l, sound)
	return s, events, l.Addr().String()
}

// mqttServerOn is like mqttServer with the given sockets.
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

// TestAFailedListenerEndsTheServer checks that ServeMQTT hangs up on the robots and returns if a listener fails.
func TestAFailedListenerEndsTheServer(t *testing.T) {
	bus := event.NewBus()
	defer bus.Close()
	s := NewServer(testOptions(&registry{}, bus, answer("Yes.")))
	defer s.Close()
	l := must.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	sound := must.Value(udp.Listen("127.0.0.1:0"))(t)
	served := make(chan error, 1)
	go func() { served <- s.ServeMQTT(t.Context(), sound, l) }()
	await[xiaozhi.ToMCP](dial(t, l.Addr().String()))
	must.Succeed(t, l.Close())
	select {
	case err := <-served:
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("it returns %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it goes on until the robot leaves")
	}
}

// dial connects a robot.
func dial(t *testing.T, address string) *mqttRobot {
	t.Helper()
	conn := must.Value(net.Dial("tcp", address))(t)
	return login(t, conn)
}

// login logs a robot in on a connection.
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

// logInAs sends the CONNECT of a robot, and returns the response.
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
		if p, is := p.(*packets.PublishPacket); is { // otherwise it is a response to PINGREQ
			handle(xiaozhi.ParseToRobot(p.Payload))
		}
	}
}

// publish sends a message of a robot.
func publish(conn net.Conn, text []byte) error {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.TopicName, p.Payload = MQTTTopic, text
	return p.Write(conn)
}

func (r *mqttRobot) say(session string, m xiaozhi.FromRobot) {
	r.t.Helper()
	must.Succeed(r.t, publish(r.conn, xiaozhi.AppendFromRobot(nil, session, m)))
}

// await returns the next message of a type, and skips other messages.
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

// open begins a session, and returns its ID.
func (r *mqttRobot) open() string {
	r.t.Helper()
	return r.openFrom(func(to *net.UDPAddr) *net.UDPConn {
		r.t.Helper()
		conn := must.Value(net.DialUDP("udp", nil, to))(r.t)
		r.t.Cleanup(func() { _ = conn.Close() })
		return conn
	})
}

// openFrom is like open with a UDP socket that the test makes.
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

// speak sends packets of sound. If lost is set, it does not send the second of every lost[0] packets.
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

// TestATalkByMQTT checks a session over MQTT and UDP, with every tenth packet lost, and that after the robot's goodbye the
// connection stays open for the next session.
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

// TestBetweenTalks checks that tool calls and a reboot reach an idle robot, and that its tools are used although it cannot
// send one of the pages of their list.
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

// TestCommandsToABrokenConnection checks that commands to a robot whose MQTT connection has broken unnoticed fail as for a
// closed channel, and that an alert is queued.
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
	s.links.open[robotID] = k // as if the server had not noticed the end
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

// TestAForgottenTalkIsEnded checks a robot whose MQTT connection has broken during a session. The robot stays in that
// session and names it in all messages, even in its responses after it has connected again. The server sends it a goodbye
// for that session, and does not disturb an open session.
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
	// The list of tools is still accepted; request 2 is tools/list.
	r.say(forgotten, xiaozhi.FromMCP{Payload: []byte(`{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"self.light.on","inputSchema":{"type":"object","properties":{}}}]}}`)})
	if listed := awaitEvent[event.ToolsListed](t, events); listed.Count != 1 {
		t.Errorf("%d tools are listed", listed.Count)
	}
	// An idle robot, which may be playing a notification, names its last session too. Its MCP responses and sensor
	// events cause no second goodbye.
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

	// The server also sends the goodbye during another session, which continues. It does not answer a goodbye, because
	// firmware up to 2.2.4 answers each goodbye with another.
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
	// The robot has ended the session with a goodbye, and its MCP responses still name the session.
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

// TestPagesOfToolsBeforeOneThatFitsNone checks a robot that has a tool that is too large for a page of the list. The robot
// responds with an error instead of the page that would begin with that tool. The tools of the earlier pages are used,
// over both transports.
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
