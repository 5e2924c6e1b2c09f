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

// MQTTTopic is the only topic that robots publish to. They subscribe to none.
const MQTTTopic = "perch"

// mostHellos are accepted from one robot in a second. Each begins a session, and a person begins
// one in some seconds.
const mostHellos = 2

// link is a robot's connection with what serves it.
type link struct {
	*connection
	sessions  *sessions
	announcer *announcer
	hellos    limit.Pace
}

func newLink(s *sessions, c *connection) *link {
	k := &link{connection: c, sessions: s, announcer: newAnnouncer(c), hellos: limit.PerSecond(mostHellos)}
	k.hellos.Took(1) // the connection counts as one
	return k
}

// tend renews the token of the robot's camera, and asks for its status.
func (k *link) tend(ctx context.Context) {
	if err := k.introduce(); err != nil {
		return // the connection's end says why
	}
	own := func(t device.Tool) bool { return strings.HasSuffix(t.Name, tools.StatusTool) }
	all := k.tools.Tools()
	if i := slices.IndexFunc(all, own); i >= 0 {
		if _, err := k.call(ctx, all[i].Name, nil); err != nil && ctx.Err() == nil {
			k.log.Debug("a robot does not say how it is", "err", err)
		}
	}
}

// announce makes the robot speak a notification. It only shows it if the notification is not to be
// spoken, or the firmware speaks in talks only.
func (k *link) announce(a notice.Announcement) error {
	if a.Speak && k.speaks() {
		k.announcer.add(dialogue.Announcement{Text: a.Text, Notice: a.ID, Urgent: a.Urgent})
		return nil
	}
	return k.alert(a)
}

// speaksNow makes a robot speak what waits if it speaks between talks, and reports whether it does
// so now: not in the quiet hours. The link may be nil.
func (k *link) speaksNow() bool {
	if k == nil || !k.speaks() {
		return false
	}
	k.announcer.wake()
	return !k.shared.options.Quiet(time.Now())
}

// serve serves the connection until it ends, and then calls ended before it publishes that.
func (k *link) serve(sound *udp.Socket, ended func()) {
	k.log.Info("a robot is connected by MQTT", "firmware", k.robot.Firmware)
	k.publish(event.RobotConnected{Speaks: k.speaks()})
	k.shared.phrases.Prepare()
	err := k.introduce()
	if err == nil {
		err = k.tools.RequestList()
	}
	k.announcer.wake()
	var talks sync.WaitGroup
	pace := limit.PerSecond(mostMessages)
	for err == nil {
		var text []byte
		if text, err = k.conn.Receive(); err == nil {
			pace.Took(1)
			pace.Wait(nil)
			k.handle(text, sound, &talks)
		}
	}
	k.conn.Close()
	if t := k.current(); t != nil {
		t.Abandon()
	}
	talks.Wait()
	k.announcer.close()
	k.tools.Close()
	why := "the robot closed the connection"
	switch {
	case errors.Is(err, net.ErrClosed):
		why = "the appliance closed the connection"
	case !errors.Is(err, io.EOF):
		why = err.Error()
	}
	k.shared.vision.Revoke(k.camera())
	ended()
	k.log.Info("a robot's MQTT connection is closed", "why", why)
	if k.mu.Lock(); !k.replaced {
		k.publish(event.RobotDisconnected{Why: why})
	}
	k.mu.Unlock()
}

// handle handles a message of the robot: it begins a talk, belongs to one, or to none.
func (k *link) handle(text []byte, sound *udp.Socket, talks *sync.WaitGroup) {
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
			talk.Abandon()
		}
		talk = k.beginTalk(sound, m, talks)
	case xiaozhi.Goodbye:
		if talk != nil && m.Session == talk.Session() {
			talk.Abandon()
			return
		}
	case xiaozhi.FromMCP:
		if talk == nil {
			k.deliver(m.Payload)
			return
		}
	case xiaozhi.Event:
		if talk == nil {
			if err := k.shared.options.Senses.FromRobot(k.robot.ID, "", m.Name, m.Data); err != nil {
				k.log.Debug("what the robot sensed is not taken", "err", err)
			}
			return
		}
	}
	if talk == nil {
		k.log.Debug("a robot sent a message of a talk before hello", "err", err)
		return
	}
	talk.Deliver(text)
}

// beginTalk begins a talk.
func (k *link) beginTalk(sound *udp.Socket, hello xiaozhi.Hello, talks *sync.WaitGroup) *mqttTalk {
	t, c := k.newTalk(sound, hello.Audio)
	k.setTalk(t)
	k.announcer.interrupt()
	talks.Go(func() {
		if err := k.sessions.serve(c, k.robot, k.client); err != nil && !errors.Is(err, ErrStopping) {
			k.log.Error("a robot's session could not be held", "err", err)
		}
		if k.current() == nil {
			_ = k.introduce() // its camera's token was the session's; if it cannot be sent, the connection ends
			k.mute.Store(false)
			k.announcer.wake()
		}
	})
	return t
}

// newTalk returns a talk, and the channel of its session.
func (k *link) newTalk(sound *udp.Socket, a xiaozhi.AudioParams) (*mqttTalk, channel) {
	packet := cmp.Or(time.Duration(a.FrameDuration)*time.Millisecond, voice.FrameDuration)
	opened, t := sound.Open(k.host, k.peer, packet), &mqttTalk{}
	t.MQTT = transport.NewMQTT(newSessionID(), k.conn, opened, func() { k.endTalk(t) })
	secret := opened.Secret()
	return t, channel{Transport: t, id: t.Session(), udp: &secret, tools: func(send func(xiaozhi.Request) error) *tools.Client {
		t.rpc.Store(&send)
		return k.tools
	}}
}
