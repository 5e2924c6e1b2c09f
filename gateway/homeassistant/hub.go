package homeassistant

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/connection"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/state"
	"perch/gateway/homeassistant/topic"
	"perch/plain"
)

// birthDelay bounds the random part of the delay before everything is published again after Home Assistant has
// started, so that not all programs on the broker publish at the same moment. Half a second is always waited.
const birthDelay = 3 * time.Second

// hub holds everything that is mirrored. Its methods run in one goroutine, which waits only for its inputs, and
// for the disk when it stores a command.
type hub struct {
	publisher
	o          *Options
	connection *connection.Connection
	states     *agent.Follower
	strangers  *strangers
	robots     *robots
	agents     *agents
	bridge     *bridge
	notices    *notices
	commands   *commands
	republish  time.Time // when to publish everything again, because Home Assistant has started; otherwise zero
}

func newHub(o *Options, c *connection.Connection, l *lanes) *hub {
	p := publisher{o.Topics(), c.Out}
	a := announcements{p, o.Announced, o.Log}
	f := refusals{o.Log, map[device.ID]*rate.Limiter{}}
	h := &hub{publisher: p, o: o, connection: c, strangers: newStrangers(), bridge: newBridge(o, a), notices: newNotices(o, p)}
	waiting := newWaitingCommands(o.WaitingCommands)
	h.robots = &robots{announcements: a, o: o, views: map[device.ID]*state.Robot{}, strangers: h.strangers, waiting: waiting}
	h.agents = &agents{announcements: a, o: o, views: map[string]*state.Agent{}, pace: newLimiter(), lanes: l, refusals: f}
	h.commands = &commands{o, h.robots, h.notices, waiting, l, f}
	return h
}

// onEvent publishes the changes that follow from an event of the bus. A comment at the end of a line names
// the documents that the called function publishes.
func (h *hub) onEvent(ctx context.Context, e event.Envelope) {
	switch ev := e.Event.(type) {
	case event.Missed:
		h.recoverFromLoss(ev, e)
		return
	case event.Notification:
		h.notices.publishNew(e, ev, h.robots.views[e.Robot] != nil) // notification of the robot or the bridge
	case event.NotificationChanged:
		h.notices.publishStep(e, ev, h.robots.views[e.Robot] != nil) // notification
	case event.Changed:
		if e.Robot == "" && slices.Contains([]string{"characters", "settings", "voices"}, ev.What) {
			h.robots.readChoices(e.At) // discovery
		}
	}
	var robot *state.Robot
	var session *state.Agent
	if e.Robot == "" {
		session = h.agents.viewFor(e) // discovery of an agent
	} else {
		robot = h.robots.viewFor(e.Robot, e.At) // discovery of a robot
	}
	for _, c := range h.states.HandleEvent(e) {
		h.setState(c)
	}
	switch {
	case robot != nil:
		h.onRobotEvent(ctx, robot, e)
	case session != nil:
		h.onAgentEvent(session, e)
	case e.Robot != "":
		h.onStrangerEvent(e) // robot event of the bridge
	}
	h.publishCounts() // info of the bridge
}

// setState sets the new state of a session. If the state changed without an event, setState publishes the state document.
// If an event has changed the state, setState publishes only the status of a robot; onRobotEvent or onAgentEvent then
// publishes the state document.
func (h *hub) setState(c agent.Change) {
	if c.State.Robot == "" {
		if v := h.agents.views[topic.AgentID(c.State.Session)]; v != nil {
			v.State = c.State
			if c.By == nil {
				h.agents.publishChanges(v, c.At) // state
			}
		}
		return
	}
	switch v := h.robots.views[c.State.Robot]; {
	case v == nil:
	case c.By == nil:
		v.State = c.State
		h.robots.publishChanges(v, c.At) // state
	default:
		v.SetState(c.State, c.At)
		h.robots.publishStatus(v, c.At) // status
	}
}

// onRobotEvent publishes the documents of a robot that change with an event. A comment at the end of a line
// names the documents that the called function publishes.
func (h *hub) onRobotEvent(ctx context.Context, v *state.Robot, e event.Envelope) {
	publish := func(thing string, document any) { h.sendEvent(h.topics.Robot(v.Registered.ID, thing), document) }
	if v.DetectLongPress(e.At) {
		h.robots.publishSense(v, "touch", state.Event{Type: "long_press_start"})
	}
	switch ev := e.Event.(type) {
	case event.RobotOnline:
		v.Channel = state.Channel{}
	case event.RobotOffline, event.RobotConnected, event.RobotDisconnected:
		v.Listed, v.UsedTools = false, false
	case event.RobotSeen:
		h.robots.checkIn(v, e.At) // discovery, status
		if !ev.Waiting {          // Waiting means that another machine with this robot's MAC address has checked in
			h.robots.endDownload(v) // firmware
		}
	case event.RobotRenamed, event.Changed:
		h.robots.reconcile(e.At) // discovery
	case event.RobotStatus:
		v.SetStatus(ev)
	case event.ToolsListed:
		v.Listed = true
		h.robots.publishDiscovery(v) // discovery
		h.commands.runWaiting(ctx, v)
		h.commands.readStatus(ctx, v)
	case event.ToolStatus:
		v.UsedTools = v.UsedTools || ev.Status != event.ToolRunning
		h.sendTelemetry(h.topics.Robot(v.Registered.ID, "tool"), state.NewToolStatus(e.Session, ev))
	case event.TurnEnded:
		if v.UsedTools { // for example, a person may have asked for another volume
			h.commands.readStatus(ctx, v)
		}
		v.UsedTools = false
	case event.Heard:
		if h.o.ShareTranscripts {
			v.LastHeard, v.Changed = &ev.Text, true
		}
	case event.Perceived:
		touches, newSense, err := v.Perceive(ev, e.At)
		if err != nil {
			h.commands.refusals.log(v.Registered.ID, e.At, "an event of the robot's perception is not published", "event", plain.Clip(ev.Name, 40), "err", err)
			break
		}
		if newSense {
			h.robots.publishDiscovery(v) // discovery, so that Home Assistant has the entity of the event
			v.HeldUntil = time.Now().Add(newEntityDelay)
		}
		h.robots.publishSense(v, "perception", state.Perception(ev))
		for _, touch := range touches {
			h.robots.publishSense(v, "touch", touch)
		}
	case event.Mood:
		if v.Senses.Add("mood") {
			h.robots.publishDiscovery(v) // discovery
		}
		if v.SetMood(ev) {
			h.robots.publishMood(v, e.At) // mood
		}
	case event.Gesture:
		if g, known := h.o.Gestures.Named(ev.Name); known {
			v.StartGesture(g.Name, time.Duration(cmp.Or(max(ev.Duration, 0), g.Duration))*time.Millisecond, e.At)
		}
	case event.Recorded:
		publish("diary", state.Diary(ev, h.o.ShareTranscripts))
	case event.FirmwareProgress:
		v.SetProgress(ev, e.At)
		h.robots.publishFirmware(v) // firmware
	case event.FirmwareOffered, event.FirmwareRolledBack:
		h.robots.endDownload(v) // firmware
	case event.FirmwareInstalled:
		h.robots.checkIn(v, e.At) // discovery, status
		h.commands.reportInstallation(v, event.CommandDone, "")
		h.robots.endDownload(v) // firmware
	case event.FirmwareFailed:
		h.commands.reportInstallation(v, event.CommandRejected, plain.Clip(ev.Why, 300))
		h.robots.endDownload(v) // firmware
	}
	if document, ok := v.Conversation(e, h.o.ShareTranscripts); ok {
		publish("conversation", document)
	}
	h.robots.publishChanges(v, e.At) // state, led
}

// onAgentEvent publishes the documents of an agent without a robot that change with an event.
func (h *hub) onAgentEvent(v *state.Agent, e event.Envelope) {
	v.Seen = e.At
	switch ev := e.Event.(type) {
	case event.ToolStatus:
		v.SetTool(ev)
		h.sendTelemetry(h.topics.Agent(v.ID, "tool"), state.NewToolStatus(e.Session, ev))
	case event.Asked:
		v.AddQuestion(ev.ID, ev.Text, h.agents.isAnswerable(ev.ID), e.At)
	case event.Answered:
		v.RemoveQuestion(ev.ID, e.At)
	case event.TurnEnded:
		v.EndTurn(e.At)
	}
	h.agents.publishChanges(v, e.At) // state
}

// onStrangerEvent publishes the arrival of a robot that its owner has not adopted.
func (h *hub) onStrangerEvent(e event.Envelope) {
	seen, ok := e.Event.(event.RobotSeen)
	if !ok || !h.strangers.arrive(e.Robot, e.At) {
		return
	}
	document := state.StrangerSeen{Type: "came", Robot: e.Robot, MAC: e.Robot.MAC(), Address: discovery.OneLine(seen.Address),
		Board: discovery.OneLine(seen.Board)}
	if seen.Waiting {
		document.Type = "waits"
	}
	h.sendEvent(h.topics.Bridge("robot"), document)
}

// recoverFromLoss reads all states again after events were lost, and publishes them.
func (h *hub) recoverFromLoss(lost event.Missed, e event.Envelope) {
	h.o.Log.Warn("the MQTT mirror fell behind; events were lost", "events", lost.N)
	for _, c := range h.states.HandleEvent(e) {
		c.By = nil
		h.setState(c) // state
	}
	for _, v := range h.robots.views {
		v.Changed = true
		h.robots.advance(v, e.At) // state, status
	}
	for _, v := range h.agents.views {
		h.agents.readQuestions(v, e.At) // state of an agent
	}
	h.notices.reload(e.At)
	h.robots.readChoices(e.At) // discovery
	h.bridge.refresh()
	h.publishCounts() // info of the bridge
}

// publishCounts publishes the numbers of connected robots, strangers and waiting agents if they have changed.
func (h *hub) publishCounts() {
	h.bridge.setCounts(h.robots.countOnline(), h.agents.countWaiting(), h.strangers.count)
}

// onMessage handles a message from the broker: a command, a request, or Home Assistant's birth message.
func (h *hub) onMessage(ctx context.Context, m connection.Incoming) {
	if m.Topic == h.topics.Birth() {
		// A retained message is older than this connection, which has published everything already.
		if !m.Retained && strings.TrimSpace(string(m.Payload)) == "online" && h.republish.IsZero() {
			h.republish = time.Now().Add(500*time.Millisecond + rand.N(birthDelay))
		}
		return
	}
	if verb, ok := h.topics.ParseRequest(m.Topic); ok {
		h.commands.onRequest(ctx, verb, m)
		return
	}
	name, thing, _ := h.topics.ParseSet(m.Topic)
	if id, ok := strings.CutPrefix(name, topic.AgentPrefix); ok {
		h.agents.onMessage(ctx, id, thing, m)
		return
	}
	h.commands.onMessage(ctx, name, thing, m)
}
