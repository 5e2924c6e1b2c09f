package robot

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/control"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/playback"
	"perch/gateway/robot/tools"
	"perch/gateway/robot/transport"
)

// connection is the MQTT connection of a robot, which is open while the robot runs. Its talks are
// sessions, one after the other.
type connection struct {
	shared *shared
	robot  device.Robot
	client device.Client
	conn   *control.Conn
	host   string     // where the robot reaches this machine
	peer   netip.Addr // of the robot; its sound comes from there as well
	tools  *tools.Client
	log    *slog.Logger
	done   chan struct{} // closed once it is over
	mute   atomic.Bool   // it has not fetched what it was to speak

	mu       sync.Mutex
	talk     *mqttTalk // under way; nil between talks
	replaced bool      // by another connection of the robot
	ended    string    // the session that has ended latest on this connection, or was said goodbye to
}

// mqttTalk is one talk of a connected robot.
type mqttTalk struct {
	*transport.MQTT
	rpc atomic.Pointer[func(xiaozhi.Request) error] // the session's way to the robot's tools; nil before there is one
}

func newConnection(s *shared, r device.Robot, client device.Client, conn *control.Conn, host string, peer netip.Addr) *connection {
	c := &connection{shared: s, robot: r, client: client, conn: conn, host: host, peer: peer,
		log: s.strangers.logOf(r.ID).With("robot", r.ID), done: make(chan struct{})}
	c.tools = tools.New(r.KnownTools(), s.strangers.budgetOf(r.ID), c.sendRPC)
	return c
}

// current returns the talk under way, or nil.
func (c *connection) current() *mqttTalk {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.talk
}

func (c *connection) setTalk(t *mqttTalk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.talk = t
}

// endTalk records that a talk has ended.
func (c *connection) endTalk(t *mqttTalk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = t.Session()
	if c.talk == t {
		c.talk = nil
	}
}

// send sends a message outside any talk. Its error wraps ErrOffline: the connection has broken,
// which shows here before the connection is given up.
func (c *connection) send(m xiaozhi.ToRobot) error {
	if err := c.conn.Send(xiaozhi.AppendToRobot(nil, "", m)); err != nil {
		return fmt.Errorf("%w: %w", dialogue.ErrOffline, err)
	}
	return nil
}

// sendRPC sends a request to the robot's tools, in its talk if it has one.
func (c *connection) sendRPC(r xiaozhi.Request) error {
	if t := c.current(); t != nil {
		if send := t.rpc.Load(); send != nil {
			return (*send)(r)
		}
	}
	return c.send(xiaozhi.ToMCP{Payload: r.Append(nil)})
}

func (c *connection) publish(e event.Event) { c.shared.options.Bus.Publish(c.robot.ID, "", e) }

// call runs one of the robot's tools between talks.
func (c *connection) call(ctx context.Context, tool string, arguments map[string]any) (device.Result, error) {
	return c.shared.call(ctx, c.tools, c.robot.ID, "", tool, arguments)
}

// speaks reports whether a robot speaks without being asked: its firmware knows notify, as far as
// its version and the last attempt show, and its address for us is known.
func (c *connection) speaks() bool {
	major, minor, ok := playback.Version(c.robot.Firmware)
	return ok && !c.mute.Load() && (major > 2 || major == 2 && minor >= 5) && c.robot.BaseURL != "" && c.shared.options.Robots.Trusts(c.robot.ID)
}

// alert shows a notification on the robot's screen.
func (c *connection) alert(a notice.Announcement) error {
	if err := c.send(alertOf(a)); err != nil {
		return err
	}
	if a.ID != "" {
		c.publish(event.NotificationChanged{ID: a.ID, State: notice.Shown})
	}
	return nil
}

// alertOf returns the message that shows a notification.
func alertOf(a notice.Announcement) xiaozhi.Alert {
	return xiaozhi.Alert{Status: "Perch", Message: a.Text, Emotion: agent.Neutral.Name}
}

// dismiss says goodbye to a robot that names a session which is not open, and reports whether its
// message is to be dropped. A robot that has lost its connection in a talk stays in that talk until
// then. Answers of tools and events come from idle robots as well, and are used; they get one
// goodbye in a session, since it would cut off a notification that an idle robot plays. A goodbye
// gets none: firmware up to 2.2.4 answers it with another.
func (c *connection) dismiss(m xiaozhi.FromRobot, session string, t *mqttTalk) bool {
	idle := false
	switch m.(type) {
	case xiaozhi.Hello, xiaozhi.Goodbye:
		return false
	case xiaozhi.FromMCP, xiaozhi.Event:
		idle = true
	}
	if session == "" || t != nil && session == t.Session() {
		return false
	}
	c.mu.Lock()
	dismissed := c.ended == session
	c.ended = session
	c.mu.Unlock()
	if !idle || !dismissed {
		_ = c.send(xiaozhi.Goodbye{Session: session}) // if it cannot be sent, the connection ends
	}
	return !idle
}

// deliver handles a response of the robot's tools between talks.
func (c *connection) deliver(payload []byte) {
	listed, err := c.tools.Deliver(payload)
	if err != nil {
		c.log.Warn("the robot's MCP answer cannot be used", "err", err)
	}
	if listed != nil {
		c.shared.options.Robots.KeepTools(c.robot.ID, listed)
		c.publish(event.ToolsListed{Count: len(listed)})
	}
}

// camera is the session under which its camera's tokens are issued outside talks.
func (c *connection) camera() string { return "mqtt " + string(c.robot.ID) }

// introduce gives the robot's tools our name, and the address for pictures.
func (c *connection) introduce() error {
	url, token := c.shared.vision.Issue(c.robot, c.camera(), time.Now())
	return c.tools.Introduce(c.shared.options.Version, url, token)
}
