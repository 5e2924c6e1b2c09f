package robot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/tools"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/control"
	"perch/gateway/robot/udp"
	"perch/limit"
	"perch/voice"
)

// MQTTTopic is the only topic to which robots publish. They subscribe to none.
const MQTTTopic = "perch"

// link is the MQTT connection of a robot, which stands while the robot runs. Its
// talks are sessions of their own, one after the other.
type link struct {
	server  *Server
	robot   device.Robot
	client  device.Client
	conn    *control.Conn
	host    string     // by which the robot reaches this machine
	peer    netip.Addr // of the robot; its sound comes from there as well
	toolbox *tools.Client
	teller  *teller
	log     *slog.Logger
	done    chan struct{} // closed once it is over
	mute    atomic.Bool   // it has not fetched what it was to speak
	hellos  limit.Pace

	mu       sync.Mutex
	talk     *mqttTalk // under way; nil between talks
	replaced bool      // by another connection of the robot
	ended    string    // the session that has ended latest on this connection, or was said goodbye to
}

// tendEvery is how often a robot that does not talk is asked for its condition, and
// given a new token for its camera. Its battery is reported nowhere else.
const tendEvery = 10 * time.Minute

// ServeMQTT holds the connections of robots, and reads their sound, until ctx ends.
// It closes the socket and the listeners.
func (s *Server) ServeMQTT(ctx context.Context, sound *udp.Socket, listeners ...net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1+len(listeners))
	var running sync.WaitGroup
	serve := func(run func() error) {
		running.Go(func() {
			defer cancel() // connections are of no use without sound, nor sound without them
			failed <- run()
		})
	}
	serve(func() error { return sound.Run(ctx) })
	for _, l := range listeners {
		serve(func() error { return s.accept(ctx, l, sound) })
	}
	s.tend(ctx)
	running.Wait()
	close(failed)
	var all error
	for err := range failed {
		all = errors.Join(all, err)
	}
	return all
}

// accept holds the connections of a listener.
func (s *Server) accept(ctx context.Context, l net.Listener, sound *udp.Socket) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var connections sync.WaitGroup
	defer connections.Wait()
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("accept a robot's MQTT connection: %w", err)
		}
		connections.Go(func() {
			end := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer end()
			s.connect(conn, sound)
		})
	}
}

// tend looks after the robots that do not talk, until ctx ends.
func (s *Server) tend(ctx context.Context) {
	every := time.NewTicker(tendEvery)
	defer every.Stop()
	var tended sync.WaitGroup
	defer tended.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		s.mu.Lock()
		links := slices.Collect(maps.Values(s.links))
		s.mu.Unlock()
		for _, k := range links {
			if k.current() == nil {
				tended.Go(func() { k.tend(ctx) })
			}
		}
	}
}

// tend renews what the robot was told, and asks how it is.
func (k *link) tend(ctx context.Context) {
	if err := k.introduce(); err != nil {
		return // the connection's end says why
	}
	own := func(t device.Tool) bool { return strings.HasSuffix(t.Name, tools.StatusTool) }
	tools := k.toolbox.Tools()
	if i := slices.IndexFunc(tools, own); i >= 0 {
		if _, err := k.call(ctx, tools[i].Name, nil); err != nil && ctx.Err() == nil {
			k.log.Debug("a robot does not say how it is", "err", err)
		}
	}
}

// connect admits a robot and holds its connection.
func (s *Server) connect(conn net.Conn, sound *udp.Socket) {
	if s.pace.CheckPeer(conn.RemoteAddr().String()) != nil {
		_ = conn.Close() // it may try again
		return
	}
	var robot device.Robot
	var client device.Client
	c, err := control.Accept(conn, func(given control.Credentials) (string, error) {
		id, err := device.ParseID(given.Username)
		if err != nil {
			return "", err
		}
		client = device.NewClient(given.ClientID)
		robot, err = s.options.Robots.Admit(id, client, given.Password)
		return MQTTTopic, err
	})
	if err != nil {
		s.strangers.log.Warn("a robot's MQTT connection was refused", "address", conn.RemoteAddr(), "err", err)
		return
	}
	leave, err := s.reserve(robot.ID)
	if err != nil {
		c.Close()
		return
	}
	defer leave()
	s.options.Robots.Seen(robot.ID, time.Now())
	host, _, _ := net.SplitHostPort(conn.LocalAddr().String())
	peer, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // never fails for TCP
	if base, err := url.Parse(robot.BaseURL); err == nil && base.Hostname() != "" {
		host = base.Hostname() // this machine may have another address inside a container
	}
	k := &link{server: s, hellos: limit.PerSecond(mostHellos), robot: robot, client: client, conn: c, host: host, peer: peer.Addr(), log: s.logOf(robot.ID).With("robot", robot.ID),
		done: make(chan struct{})}
	k.hellos.Took(1) // the connection counts as one
	k.toolbox = tools.New(robot.KnownTools(), s.toolLimitOf(robot.ID), k.sendRPC)
	k.teller = newTeller(k)
	k.hold(sound)
}

// hold holds the connection until it ends.
func (k *link) hold(sound *udp.Socket) {
	defer close(k.done)
	if !k.server.link(k) {
		k.conn.Close()
		return
	}
	k.log.Info("a robot is connected by MQTT", "firmware", k.robot.Firmware)
	k.publish(event.RobotConnected{Speaks: k.speaks()})
	k.server.Prepare()
	err := k.introduce()
	if err == nil {
		err = k.toolbox.RequestList()
	}
	k.teller.wake()
	var talks sync.WaitGroup
	pace := limit.PerSecond(mostMessages)
	for err == nil {
		var text []byte
		if text, err = k.conn.Receive(); err == nil {
			pace.Took(1)
			pace.Wait(nil)
			k.take(text, sound, &talks)
		}
	}
	k.conn.Close()
	if t := k.current(); t != nil {
		t.end()
	}
	talks.Wait()
	k.teller.end()
	k.toolbox.Close()
	why := "the robot closed the connection"
	switch {
	case errors.Is(err, net.ErrClosed):
		why = "the appliance closed the connection"
	case !errors.Is(err, io.EOF):
		why = err.Error()
	}
	k.server.vision.Revoke(k.camera())
	k.server.unlink(k)
	k.log.Info("a robot's MQTT connection is closed", "why", why)
	if k.mu.Lock(); !k.replaced {
		k.publish(event.RobotDisconnected{Why: why})
	}
	k.mu.Unlock()
}

// mostHellos are taken of one robot in a second. Each begins a session, and a person
// begins one in some seconds.
const mostHellos = 2

// camera is under which its camera's tokens are, outside talks.
func (k *link) camera() string { return "mqtt " + string(k.robot.ID) }

// introduce gives the robot's tools our name, and the address for pictures.
func (k *link) introduce() error {
	url, token := k.server.vision.Issue(k.robot, k.camera(), time.Now())
	return k.toolbox.Introduce(k.server.options.Version, url, token)
}

// call runs one of the robot's tools between talks.
func (k *link) call(ctx context.Context, tool string, arguments map[string]any) (device.Result, error) {
	answer, err := k.toolbox.Call(ctx, tool, arguments)
	if status, ok := tools.ParseStatus(tool, answer.Text); ok && err == nil {
		k.server.keepStatus(k.robot.ID, status)
		k.publish(status)
	}
	return answer, err
}

// take takes a message of the robot: it begins a talk, belongs to one, or to none.
func (k *link) take(text []byte, sound *udp.Socket, talks *sync.WaitGroup) {
	m, err := xiaozhi.ParseFromRobot(text)
	talk := k.current()
	if k.dismiss(m, xiaozhi.SessionOf(text), talk) {
		return
	}
	switch m := m.(type) {
	case xiaozhi.Hello:
		k.hellos.Took(1)
		k.hellos.Wait(nil)
		if talk != nil {
			talk.end()
		}
		talk = newMQTTTalk(k, sound, m.Audio)
		k.set(talk)
		k.teller.hush()
		talks.Go(func() {
			if err := k.server.serve(talk, k.robot, k.client, 0); err != nil && !errors.Is(err, ErrStopping) {
				k.log.Error("a robot's session could not be held", "err", err)
			}
			if k.current() == nil {
				_ = k.introduce() // its camera's token was the session's; where it cannot be sent, the connection ends
				k.mute.Store(false)
				k.teller.wake()
			}
		})
	case xiaozhi.Goodbye:
		if talk != nil && m.Session == talk.id() {
			talk.end()
			return
		}
	case xiaozhi.FromMCP:
		if talk == nil {
			k.deliver(m.Payload)
			return
		}
	case xiaozhi.Event:
		if talk == nil {
			if err := k.server.options.Senses.FromRobot(k.robot.ID, "", m.Name, m.Data); err != nil {
				k.log.Debug("what the robot sensed is not taken", "err", err)
			}
			return
		}
	}
	if talk == nil {
		k.log.Debug("a robot sent a message of a talk before hello", "err", err)
		return
	}
	select {
	case talk.texts <- text:
	case <-talk.over:
	}
}

// dismiss says goodbye to a robot that names a session which is not open, and reports
// whether its message is to be dropped. A robot that has lost its connection in a talk
// stays in that talk until then. Answers of tools and events come from idle robots as
// well, and are used; they get one goodbye in a session, since it would cut off a
// notification that an idle robot plays. A goodbye gets none: firmware up to 2.2.4
// answers it with another.
func (k *link) dismiss(m xiaozhi.FromRobot, session string, talk *mqttTalk) bool {
	idle := false
	switch m.(type) {
	case xiaozhi.Hello, xiaozhi.Goodbye:
		return false
	case xiaozhi.FromMCP, xiaozhi.Event:
		idle = true
	}
	if session == "" || talk != nil && session == talk.id() {
		return false
	}
	k.mu.Lock()
	told := k.ended == session
	k.ended = session
	k.mu.Unlock()
	if !idle || !told {
		_ = k.send(xiaozhi.Goodbye{Session: session}) // where it cannot be sent, the connection ends
	}
	return !idle
}

func (k *link) deliver(payload []byte) {
	listed, err := k.toolbox.Deliver(payload)
	if err != nil {
		k.log.Warn("the robot's MCP answer cannot be used", "err", err)
	}
	if listed != nil {
		k.server.options.Robots.KeepTools(k.robot.ID, listed)
		k.publish(event.ToolsListed{Count: len(listed)})
	}
}

func (k *link) current() *mqttTalk {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.talk
}

func (k *link) set(t *mqttTalk) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.talk = t
}

// send sends a message outside any talk. It wraps ErrOffline where the connection
// has broken, which is seen here before the connection is given up.
func (k *link) send(m xiaozhi.ToRobot) error {
	if err := k.conn.Send(xiaozhi.AppendToRobot(nil, "", m)); err != nil {
		return fmt.Errorf("%w: %w", dialogue.ErrOffline, err)
	}
	return nil
}

// sendRPC sends a request to the robot's tools, in its talk where it is in one.
func (k *link) sendRPC(r xiaozhi.Request) error {
	if t := k.current(); t != nil {
		if send := t.rpc.Load(); send != nil {
			return (*send)(r)
		}
	}
	return k.send(xiaozhi.ToMCP{Payload: r.Append(nil)})
}

func (k *link) publish(e event.Event) { k.server.options.Bus.Publish(k.robot.ID, "", e) }

// link notes a robot's connection, in place of an earlier one, which it ends. It
// reports false once the server closes.
func (s *Server) link(k *link) bool {
	s.mu.Lock()
	before, stopping := s.links[k.robot.ID], s.stopping
	if !stopping {
		s.links[k.robot.ID] = k
	}
	s.mu.Unlock()
	if before != nil && !stopping {
		before.mu.Lock()
		before.replaced = true
		before.mu.Unlock()
		before.conn.Close()
		<-before.done
	}
	return !stopping
}

func (s *Server) unlink(k *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links[k.robot.ID] == k {
		delete(s.links, k.robot.ID)
	}
}

// Connected is how many robots are connected by MQTT.
func (s *Server) Connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.links)
}

// linkOf is the MQTT connection of a robot, or nil.
func (s *Server) linkOf(id device.ID) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.links[id]
}

// sendOutside sends a message to a robot whose channel is closed, and which is
// connected by MQTT. err is why no session took it.
func (s *Server) sendOutside(id device.ID, m xiaozhi.ToRobot, err error) error {
	if k := s.linkOf(id); errors.Is(err, dialogue.ErrOffline) && k != nil {
		return k.send(m)
	}
	return err
}

// mqttTalk is the transport of one talk: texts by the robot's connection, sound by
// UDP.
type mqttTalk struct {
	link  *link
	sound *udp.Talk
	texts chan []byte
	over  chan struct{} // closed when the talk has ended, on either side
	once  sync.Once

	rpc atomic.Pointer[func(xiaozhi.Request) error] // the session's way to the robot's tools; nil before there is one

	mu      sync.Mutex
	session string

	// The receiver's.
	jitter  udp.Jitter
	arrived udp.Arrived
}

// textsAhead is how many messages of a robot may wait for its session.
const textsAhead = 16

func newMQTTTalk(k *link, sound *udp.Socket, a xiaozhi.AudioParams) *mqttTalk {
	packet := cmp.Or(time.Duration(a.FrameDuration)*time.Millisecond, voice.FrameDuration)
	return &mqttTalk{link: k, sound: sound.Open(k.host, k.peer, packet), texts: make(chan []byte, textsAhead), over: make(chan struct{})}
}

// Begin implements transport.
func (t *mqttTalk) Begin(session string) *xiaozhi.UDP {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session = session
	secret := t.sound.Secret()
	return &secret
}

// Audible implements transport: where the robot is shows its first datagram.
func (t *mqttTalk) Audible() <-chan struct{} { return t.sound.Heard() }

// Toolbox implements transport.
func (t *mqttTalk) Toolbox(send func(xiaozhi.Request) error) *tools.Client {
	t.rpc.Store(&send)
	return t.link.toolbox
}

func (t *mqttTalk) id() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session
}

// Receive implements transport. A packet of sound that is lost has Lost set.
func (t *mqttTalk) Receive() ([]byte, xiaozhi.Audio, bool, error) {
	for {
		now := time.Now()
		if audio, lost, ok := t.jitter.Take(now); ok {
			audio.Lost = lost
			return nil, audio, false, nil
		}
		var giveUp <-chan time.Time
		if due := t.jitter.Due(); !due.IsZero() {
			giveUp = time.After(due.Sub(now))
		}
		select {
		case text := <-t.texts:
			return text, xiaozhi.Audio{}, true, nil
		case t.arrived = <-t.sound.Arrived():
			t.jitter.Put(t.arrived.Datagram(), time.Now())
		case <-giveUp:
		case <-t.over:
			return nil, xiaozhi.Audio{}, false, io.EOF
		}
	}
}

func (t *mqttTalk) SendText(text []byte) error { return t.link.conn.Send(text) }

// SendAudio implements transport. Sound that does not reach the robot is lost, and
// ends nothing: the robot's connection shows whether it is there.
func (t *mqttTalk) SendAudio(a xiaozhi.Audio) error {
	_ = t.sound.Send(a)
	return nil
}

// Close implements transport. The robot's connection stands.
func (t *mqttTalk) Close(int, string) {
	select {
	case <-t.over: // the robot has ended it
	default:
		_ = t.link.send(xiaozhi.Goodbye{Session: t.id()})
	}
	t.end()
}

// end ends the talk.
func (t *mqttTalk) end() {
	t.once.Do(func() {
		close(t.over)
		t.sound.Close()
		session := t.id()
		t.link.mu.Lock()
		defer t.link.mu.Unlock()
		t.link.ended = session
		if t.link.talk == t {
			t.link.talk = nil
		}
	})
}
