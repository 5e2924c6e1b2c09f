package homeassistant

import (
	"context"
	"errors"
	"strings"
	"time"

	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/command"
	"perch/gateway/homeassistant/connection"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/state"
	"perch/plain"
)

// commands carries out commands for robots and requests to the bridge, which is the appliance's device in Home
// Assistant. The commands for one robot run one after the other in the robot's lane. Requests have a lane for
// downloads of firmware and a lane for all others.
type commands struct {
	o        *Options
	robots   *robots
	notices  *notices
	waiting  *waitingCommands
	lanes    *lanes
	refusals refusals
}

// order is a command that is queued in a robot's lane.
type order struct {
	*Waiting
	command command.Command
	waited  bool                // the command could not be carried out at once, because the robot was offline
	message connection.Incoming // confirmed to the broker by the time the command is stored or over; zero for a stored one
}

// onMessage handles a message on "<robot>/<thing>/set".
func (c *commands) onMessage(ctx context.Context, name, thing string, m connection.Incoming) {
	now := time.Now()
	id, err := c.o.Robots.Resolve(name)
	v := c.robots.views[id]
	if err != nil || v == nil || !c.o.Robots.Trusts(id) {
		c.refusals.log("", now, "a command over MQTT names no robot that its owner has adopted; it is ignored. "+
			"perch robot list lists the robots, perch robot adopt ROBOT adopts one", "topic", plain.Clip(m.Topic, 200))
		m.Ack()
		return
	}
	parsed, err := command.Parse(id, thing, m.Payload, c.o.Robots.Resolve)
	if m.Retained {
		err = errors.New("it was published retained, and such a command would be given again at every connection; publish it without the retain flag")
	}
	if err != nil {
		c.reportRefusal(v, thing, err)
		m.Ack()
		return
	}
	if q, isQuestion := parsed.(command.Ask); isQuestion {
		m.Ack() // the question makes no sense later
		c.ask(ctx, v, q)
		return
	}
	if v.State.Online && thing != "say" && thing != "notify" {
		m.Ack() // the command is useless later, and a slow robot must not delay messages for other robots
	}
	w := &Waiting{Thing: thing, Payload: string(m.Payload), Expires: now.Add(commandLifetime)}
	c.enqueue(ctx, v, &order{Waiting: w, command: parsed, message: m})
}

// askLane is the prefix of the lanes for questions. Each robot has such a lane, because a question would delay
// the other commands in the robot's lane.
const askLane = "ask "

// ask makes a robot ask a question, and publishes the answer.
func (c *commands) ask(ctx context.Context, v *state.Robot, q command.Ask) {
	id := v.Registered.ID
	queued := c.lanes.Add(ctx, askLane+id, device.Job{Do: func(ctx context.Context) {
		answer := c.o.Services.Ask(ctx, id, q)
		c.lanes.callInHub(ctx, func() {
			if c.robots.views[id] != nil { // nil if the owner has forgotten the robot
				c.robots.sendEvent(c.robots.topics.Robot(id, "answer"), answer)
			}
		})
	}})
	if !queued {
		c.reportRefusal(v, "ask", errors.New("too many questions came at once"))
	}
}

// enqueue adds an order to the lane of its robot, or refuses the order if the lane is full.
func (c *commands) enqueue(ctx context.Context, v *state.Robot, o *order) {
	id := v.Registered.ID
	queued := c.lanes.Add(ctx, id, device.Job{Do: func(ctx context.Context) {
		completed := make(chan command.Command, 1)
		c.lanes.callInHub(ctx, func() { completed <- command.Complete(o.command, v) }) // after the effect of the command before it
		select {
		case o.command = <-completed:
		case <-ctx.Done():
			return
		}
		effect, err := c.o.Services.Execute(ctx, id, o.command)
		c.lanes.callInHub(ctx, func() { c.finish(ctx, id, o, effect, err) })
	}})
	if !queued {
		c.reportRefusal(v, o.Thing, errors.New("too many commands came at once"))
		o.message.Ack()
		c.waiting.remove(id, o.Waiting)
	}
}

// runWaiting queues the commands that were stored until the robot connected.
func (c *commands) runWaiting(ctx context.Context, v *state.Robot) {
	id := v.Registered.ID
	for _, w := range c.waiting.start(id) {
		parsed, err := command.Parse(id, w.Thing, []byte(w.Payload), c.o.Robots.Resolve)
		if !time.Now().Before(w.Expires) {
			err = errors.New("it has waited too long")
		}
		if err != nil {
			c.reportRefusal(v, w.Thing, err)
			c.waiting.remove(id, w)
			continue
		}
		c.enqueue(ctx, v, &order{Waiting: w, command: parsed, waited: true})
	}
}

// finish handles the outcome of an order: it stores a command for an offline robot, reports a refusal, or applies the
// effect.
func (c *commands) finish(ctx context.Context, id device.ID, o *order, effect command.Effect, err error) {
	v := c.robots.views[id]
	switch {
	case v == nil: // the owner has forgotten the robot
		o.message.Ack()
		return
	case err != nil && command.Offline(err):
		c.postpone(ctx, v, o)
		c.robots.publishChanges(v, time.Now())
		return
	case ctx.Err() != nil:
		return // Perch stops; an unconfirmed command is delivered again, and a stored one stays in its table
	}
	o.message.Ack()
	c.waiting.remove(id, o.Waiting)
	if err != nil {
		c.reportRefusal(v, o.Thing, err)
		c.readStatus(ctx, v) // to correct what the entities show
		v.Changed = true
	} else {
		if o.waited {
			c.publishOutcome(v, o.Thing, event.CommandDone, "")
		}
		c.applyEffect(ctx, v, effect)
	}
	c.robots.publishChanges(v, time.Now())
}

// applyEffect makes the updates that a command requires; see command.Effect.
func (c *commands) applyEffect(ctx context.Context, v *state.Robot, e command.Effect) {
	if e.Change != nil {
		e.Change(v)
		v.Changed = true
	}
	if e.Read {
		c.readStatus(ctx, v)
	}
	if e.Configured {
		c.robots.reconcile(time.Now())
	}
	if e.Notice != "" && !v.State.Online { // the notifier stores the notification until the robot connects
		c.notices.queued[e.Notice] = true
		c.publishOutcome(v, "notify", event.CommandQueued, "")
	}
	if e.Postponed {
		v.Installing = true
		c.publishOutcome(v, "firmware", event.CommandQueued, "")
	}
}

// reportInstallation publishes the outcome of an installation that a command has asked for.
func (c *commands) reportInstallation(v *state.Robot, outcome, reason string) {
	if v.Installing {
		v.Installing = false
		c.publishOutcome(v, "firmware", outcome, reason)
	}
}

// postpone stores an order until the robot connects. If the robot has connected in the meantime, postpone instead queues
// the order a second time.
func (c *commands) postpone(ctx context.Context, v *state.Robot, o *order) {
	if v.Listed && !o.waited { // the robot has connected in the meantime
		o.waited = true
		c.enqueue(ctx, v, o)
		return
	}
	err := c.waiting.store(v.Registered.ID, o.Waiting)
	o.message.Ack() // even if the command was not stored: a broker stops sending while many messages are unconfirmed
	if err != nil {
		c.reportRefusal(v, o.Thing, err)
		return
	}
	c.publishOutcome(v, o.Thing, event.CommandQueued, "")
	if change := command.StateChange(o.command); change != nil {
		change(v)
	}
	v.Changed = true
}

// reportRefusal logs and publishes that a command was not carried out, and why. The rate is limited for each robot.
func (c *commands) reportRefusal(v *state.Robot, thing string, err error) {
	id, thing, reason := v.Registered.ID, plain.Clip(thing, 40), plain.Clip(err.Error(), 300)
	if c.refusals.log(id, time.Now(), "a command over MQTT is refused", "thing", thing, "err", reason) {
		c.publishOutcome(v, thing, event.CommandRejected, reason)
	}
	// Home Assistant may show the entity as if the command had succeeded, so the actual state is published again.
	c.robots.out.Republish(c.robots.topics.Robot(id, "state"), c.robots.topics.Robot(id, "led"))
}

// publishOutcome publishes the outcome of a command on the bus.
func (c *commands) publishOutcome(v *state.Robot, thing, outcome, reason string) {
	c.o.Bus.Publish(v.Registered.ID, "", event.Command{Thing: thing, State: outcome, Reason: reason})
}

// readStatus asks a connected robot for its status. It does nothing if such a job waits in the robot's lane already.
func (c *commands) readStatus(ctx context.Context, v *state.Robot) {
	id := v.Registered.ID
	if !v.State.Online {
		return
	}
	c.lanes.Add(ctx, id, device.Job{Name: "read", Do: func(ctx context.Context) {
		if readings, ok := c.o.ReadStatus(ctx, id, c.o.Log); ok {
			c.lanes.callInHub(ctx, func() {
				if v := c.robots.views[id]; v != nil { // nil if the owner has forgotten the robot
					if v.SetReadings(readings) {
						c.robots.publishDiscovery(v)
					}
					c.robots.publishChanges(v, time.Now())
				}
			})
		}
	}})
}

// onRequest handles a message on a request topic of the bridge.
func (c *commands) onRequest(ctx context.Context, verb string, m connection.Incoming) {
	if verb != "notify" || m.Retained {
		m.Ack() // the request is useless later
	}
	if isWord := strings.Trim(verb, "abcdefghijklmnopqrstuvwxyz_") == "" && len(verb) <= 32; m.Retained || !isWord {
		c.refusals.log("", time.Now(), "a request over MQTT is ignored: it is retained, or its topic names no request", "topic", plain.Clip(m.Topic, 200))
		return
	}
	request, err := command.ParseRequest(verb, m.Payload, c.o.Robots.Resolve)
	if err != nil {
		c.respond(request, nil, err)
		m.Ack()
		return
	}
	lane := device.ID("")
	if verb == "firmware" {
		lane = "firmware" // a download must not delay other requests
	}
	queued := c.lanes.Add(ctx, lane, device.Job{Do: func(ctx context.Context) {
		data, err := c.o.ExecuteRequest(ctx, request)
		if verb == "restart" && err == nil {
			err = c.o.Startable()
		}
		if verb == "adopt" && err == nil {
			c.o.Log.Info("a request over MQTT has adopted robots", "adopted", data)
		}
		c.respond(request, data, err)
		m.Ack()
		if err == nil {
			c.lanes.callInHub(ctx, func() { c.robots.reconcile(time.Now()) })
		}
		if verb == "restart" && err == nil {
			c.o.Restart()
		}
	}})
	if !queued {
		c.respond(request, nil, errors.New("too many requests came at once"))
		m.Ack()
	}
}

// respond publishes the response to a request. If err is not nil, it also logs err and publishes a "refused" event.
func (c *commands) respond(request command.Request, data any, err error) {
	response := command.Response{Transaction: request.Transaction, Status: "ok", Data: data}
	if err != nil {
		response.Status, response.Error = "error", plain.Clip(err.Error(), 300)
		c.o.Log.Warn("a request over MQTT failed", "verb", request.Verb, "err", response.Error)
		c.robots.sendEvent(c.robots.topics.Bridge("refused"),
			state.Event{Type: discovery.ListedOrOther(request.Verb, discovery.RequestVerbs()), Reason: response.Error})
	}
	c.robots.sendEvent(c.robots.topics.Bridge("response/"+request.Verb), response)
}
