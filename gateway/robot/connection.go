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

// connection is the MQTT connection of a robot, which stays open while the robot runs. It carries the
// robot's sessions, one after the other.
type connection struct {
	shared      *shared
	robot       device.Robot
	client      device.Client
	conn        *control.Conn
	host        string     // name or address under which the robot reaches this machine
	peer        netip.Addr // address of the robot; its sound must come from the same address
	tools       *tools.Client
	log         *slog.Logger
	done        chan struct{} // closed once the connection has ended
	fetchFailed atomic.Bool   // the robot has not fetched the sound of the latest announcement; reset after its next session

	mu       sync.Mutex
	session  *mqttSession // open session; nil while the robot is idle
	replaced bool         // a newer connection of the same robot has replaced this one
	ended    string       // ID of the latest session that has ended or was dismissed (see dismiss)
}

// mqttSession is one session on a robot's MQTT connection.
type mqttSession struct {
	*transport.MQTT
	sendRPC atomic.Pointer[func(xiaozhi.Request) error] // sends to the robot's MCP server (its tools); nil until newSession has made the session
}

// newConnection returns the connection of a robot that has logged in.
func newConnection(s *shared, r device.Robot, client device.Client, conn *control.Conn, host string, peer netip.Addr) *connection {
	c := &connection{shared: s, robot: r, client: client, conn: conn, host: host, peer: peer,
		log: s.strangers.logOf(r.ID).With("robot", r.ID), done: make(chan struct{})}
	c.tools = tools.New(r.KnownTools(), s.strangers.budgetOf(r.ID), c.sendRPC)
	return c
}

// current returns the open session, or nil while the robot is idle.
func (c *connection) current() *mqttSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

func (c *connection) setSession(s *mqttSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = s
}

// endSession records that a session has ended.
func (c *connection) endSession(s *mqttSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = s.Session()
	if c.session == s {
		c.session = nil
	}
}

// send sends a message outside any session. Its error wraps dialogue.ErrOffline: a failed write means that the
// connection has broken, even if the reading side has not noticed it yet.
func (c *connection) send(m xiaozhi.ToRobot) error {
	if err := c.conn.Send(xiaozhi.AppendToRobot(nil, "", m)); err != nil {
		return fmt.Errorf("%w: %w", dialogue.ErrOffline, err)
	}
	return nil
}

// sendRPC sends a JSON-RPC request to the robot's MCP server, as part of the open session if there is one.
func (c *connection) sendRPC(r xiaozhi.Request) error {
	if s := c.current(); s != nil {
		if send := s.sendRPC.Load(); send != nil {
			return (*send)(r)
		}
	}
	return c.send(xiaozhi.ToMCP{Payload: r.Append(nil)})
}

// publish publishes an event of the robot outside any session.
func (c *connection) publish(e event.Event) { c.shared.options.Bus.Publish(c.robot.ID, "", e) }

// callTool runs one of the robot's tools outside any session.
func (c *connection) callTool(ctx context.Context, tool string, arguments map[string]any) (device.Result, error) {
	return c.shared.callTool(ctx, c.tools, c.robot.ID, "", tool, arguments)
}

// canSpeak reports whether the robot can speak while it is idle: the robot is adopted, its firmware is 2.5 or
// later and so supports notify messages, it has not failed to fetch the latest announcement (see fetchFailed),
// and the URL under which it reaches the appliance is known.
func (c *connection) canSpeak() bool {
	major, minor, ok := playback.ParseVersion(c.robot.Firmware)
	return ok && !c.fetchFailed.Load() && (major > 2 || major == 2 && minor >= 5) && c.robot.BaseURL != "" && c.shared.options.Robots.Trusts(c.robot.ID)
}

// showAlert shows a notification on the robot's screen.
func (c *connection) showAlert(a notice.Announcement) error {
	if err := c.send(newAlert(a)); err != nil {
		return err
	}
	if a.ID != "" {
		c.publish(event.NotificationChanged{ID: a.ID, State: notice.Shown})
	}
	return nil
}

// newAlert returns the message that shows a notification.
func newAlert(a notice.Announcement) xiaozhi.Alert {
	return xiaozhi.Alert{Status: "Perch", Message: a.Text, Emotion: agent.Neutral.Name}
}

// dismiss handles a message that names a session which is not open: it sends the robot a goodbye for
// that session, and reports whether the message must be dropped. Without the goodbye, a robot that has
// lost its connection during a session would stay in it.
//
// Idle robots send MCP responses and sensor events too. Such messages are not dropped. A goodbye cuts off the
// notification that an idle robot may be playing, so such messages cause no goodbye for the session that has
// ended last, and one goodbye for any other session. The appliance never answers a goodbye, because firmware
// up to 2.2.4 answers each goodbye with another.
func (c *connection) dismiss(m xiaozhi.FromRobot, session string, open *mqttSession) (drop bool) {
	maybeIdle := false
	switch m.(type) {
	case xiaozhi.Hello, xiaozhi.Goodbye:
		return false
	case xiaozhi.FromMCP, xiaozhi.Event:
		maybeIdle = true
	}
	if session == "" || open != nil && session == open.Session() {
		return false
	}
	c.mu.Lock()
	dismissed := c.ended == session
	c.ended = session
	c.mu.Unlock()
	if !maybeIdle || !dismissed {
		_ = c.send(xiaozhi.Goodbye{Session: session}) // if this fails, the connection ends
	}
	return !maybeIdle
}

// handleMCPResponse handles a response of the robot's MCP server outside any session.
func (c *connection) handleMCPResponse(payload []byte) {
	listed, err := c.tools.Deliver(payload)
	if err != nil {
		c.log.Warn("the robot's MCP response cannot be used", "err", err)
	}
	if listed != nil {
		c.shared.options.Robots.StoreTools(c.robot.ID, listed)
		c.publish(event.ToolsListed{Count: len(listed)})
	}
}

// cameraSession returns the session ID under which camera tokens are issued while the robot is idle.
func (c *connection) cameraSession() string { return "mqtt " + string(c.robot.ID) }

// initializeMCP sends the robot's MCP server the appliance's name, and the address to upload pictures to.
func (c *connection) initializeMCP() error {
	url, token := c.shared.vision.Issue(c.robot, c.cameraSession(), time.Now())
	return c.tools.Introduce(c.shared.options.Version, url, token)
}
