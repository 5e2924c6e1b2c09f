package robot

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/agent/notice"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/tools"
	"perch/gateway/robot/transport"
	"perch/gateway/robot/udp"
	"perch/limit"
	"perch/voice"
)

// MQTTTopic is the only topic that robots publish to. Robots subscribe to no topic.
const MQTTTopic = "perch"

// maxHellosPerSecond is how many hellos the appliance accepts from one robot in a second. Each hello
// begins a session, and people begin at most one session every few seconds.
const maxHellosPerSecond = 2

// link serves a robot's MQTT connection, and announces on it while the robot is idle.
type link struct {
	*connection
	sessions  *sessions
	announcer *announcer
	hellos    limit.Pace // limits the rate of hellos
}

// newLink returns a link for a connection. serve starts its goroutines.
func newLink(s *sessions, c *connection) *link {
	k := &link{connection: c, sessions: s, announcer: newAnnouncer(c), hellos: limit.PerSecond(maxHellosPerSecond)}
	k.hellos.Took(1) // opening the connection counts as a hello
	return k
}

// refresh renews the token of the robot's camera, and asks the robot for its status.
func (k *link) refresh(ctx context.Context) {
	if err := k.initializeMCP(); err != nil {
		return // serve logs why the connection has ended
	}
	isStatus := func(t device.Tool) bool { return strings.HasSuffix(t.Name, tools.StatusTool) }
	list := k.tools.Tools()
	if i := slices.IndexFunc(list, isStatus); i >= 0 {
		if _, err := k.callTool(ctx, list[i].Name, nil); err != nil && ctx.Err() == nil {
			k.log.Debug("a robot does not report its status", "err", err)
		}
	}
}

// announce makes the robot speak a notification. It only shows the notification if a.Speak is false, or if
// the robot cannot speak while it is idle.
func (k *link) announce(a notice.Announcement) error {
	if a.Speak && k.canSpeak() {
		k.announcer.add(dialogue.Announcement{Text: a.Text, Notice: a.ID, Urgent: a.Urgent})
		return nil
	}
	return k.showAlert(a)
}

// speakStored makes the robot speak its stored sentences if it can speak while idle. It returns false if
// the robot cannot, or may do so only after the quiet hours. The link may be nil.
func (k *link) speakStored() bool {
	if k == nil || !k.canSpeak() {
		return false
	}
	k.announcer.wake()
	return !k.shared.options.Quiet(time.Now())
}

// serve serves the connection until it ends. It then calls ended, and publishes the end unless a newer
// connection has replaced this one.
func (k *link) serve(sound *udp.Socket, ended func()) {
	k.log.Info("a robot is connected by MQTT", "firmware", k.robot.Firmware)
	k.publish(event.RobotConnected{Speaks: k.canSpeak()})
	k.shared.phrases.Prepare()
	err := k.initializeMCP()
	if err == nil {
		err = k.tools.RequestList()
	}
	k.announcer.wake()
	var sessions sync.WaitGroup
	pace := limit.PerSecond(maxMessagesPerSecond)
	for err == nil {
		var text []byte
		if text, err = k.conn.Receive(); err == nil {
			pace.Took(1)
			pace.Wait(nil)
			k.handleMessage(text, sound, &sessions)
		}
	}
	k.conn.Close()
	if s := k.current(); s != nil {
		s.Abandon()
	}
	sessions.Wait()
	k.announcer.close()
	k.tools.Close()
	why := "the robot closed the connection"
	switch {
	case errors.Is(err, net.ErrClosed):
		why = "the appliance closed the connection"
	case !errors.Is(err, io.EOF):
		why = err.Error()
	}
	k.shared.vision.Revoke(k.cameraSession())
	ended()
	k.log.Info("a robot's MQTT connection is closed", "why", why)
	if k.mu.Lock(); !k.replaced {
		k.publish(event.RobotDisconnected{Why: why})
	}
	k.mu.Unlock()
}

// handleMessage handles a message of the robot: a hello begins a session, other messages go to the open
// session, and an idle robot's MCP responses and sensor events are handled here.
func (k *link) handleMessage(text []byte, sound *udp.Socket, sessions *sync.WaitGroup) {
	m, err := xiaozhi.ParseFromRobot(text)
	open := k.current()
	if k.dismiss(m, xiaozhi.SessionOf(text), open) {
		return
	}
	switch m := m.(type) {
	case xiaozhi.Hello:
		k.hellos.Took(1)
		k.hellos.Wait(nil)
		if open != nil {
			open.Abandon()
		}
		open = k.beginSession(sound, m, sessions)
	case xiaozhi.Goodbye:
		if open != nil && m.Session == open.Session() {
			open.Abandon()
			return
		}
	case xiaozhi.FromMCP:
		if open == nil {
			k.handleMCPResponse(m.Payload)
			return
		}
	case xiaozhi.Event:
		if open == nil {
			if err := k.shared.options.Senses.FromRobot(k.robot.ID, "", m.Name, m.Data); err != nil {
				k.log.Debug("a sensor event of the robot is refused", "err", err)
			}
			return
		}
	}
	if open == nil {
		k.log.Debug("a robot sent a message of a session before its hello", "err", err)
		return
	}
	open.Deliver(text)
}

// beginSession begins a session, and adds its goroutine to sessions.
func (k *link) beginSession(sound *udp.Socket, hello xiaozhi.Hello, sessions *sync.WaitGroup) *mqttSession {
	s, c := k.newMQTTSession(sound, hello.Audio)
	k.setSession(s)
	k.announcer.interrupt()
	sessions.Go(func() {
		if err := k.sessions.serve(c, k.robot, k.client); err != nil && !errors.Is(err, ErrStopping) {
			k.log.Error("a robot's session could not be started", "err", err)
		}
		if k.current() == nil {
			_ = k.initializeMCP() // the camera's token was revoked with the session; if this fails, the connection ends
			k.fetchFailed.Store(false)
			k.announcer.wake()
		}
	})
	return s
}

// newMQTTSession returns a new session and the channel to serve it on. a holds the audio parameters of
// the robot's hello.
func (k *link) newMQTTSession(sound *udp.Socket, a xiaozhi.AudioParams) (*mqttSession, channel) {
	packet := cmp.Or(time.Duration(a.FrameDuration)*time.Millisecond, voice.FrameDuration)
	stream, s := sound.Open(k.host, k.peer, packet), &mqttSession{}
	s.MQTT = transport.NewMQTT(newSessionID(), k.conn, stream, func() { k.endSession(s) })
	secret := stream.Secret()
	return s, channel{Transport: s, id: s.Session(), udp: &secret, tools: func(send func(xiaozhi.Request) error) *tools.Client {
		s.sendRPC.Store(&send)
		return k.tools
	}}
}
