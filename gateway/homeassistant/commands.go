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
	"perch/gateway/homeassistant/state"
	"perch/plain"
)

// commands carries out commands for robots, each robot's one after the other in its lane, and requests
// to the bridge in another lane.
type commands struct {
	o        *Options
	robots   *robots
	notices  *notices
	waiting  *waitingCommands
	lanes    *lanes
	refusals refusals
}

// order is a command on its way to a robot.
type order struct {
	*Waiting
	command command.Command
	waited  bool                // for the robot's hello
	from    connection.Incoming // is confirmed once the command cannot be lost
}

// onMessage handles a message on the set topic of a robot's thing.
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
		err = errors.New("it was published retained, and such a command would be given again at every connection; publish it without")
	}
	if err != nil {
		c.refuse(v, thing, err)
		m.Ack()
		return
	}
	if v.State.Online && thing != "say" && thing != "notify" {
		m.Ack() // it is worth nothing later, and a slow robot must not hold up other robots' messages
	}
	w := &Waiting{Thing: thing, Payload: string(m.Payload), Expires: now.Add(waitingTime)}
	c.enqueue(ctx, v, &order{Waiting: w, command: parsed, from: m})
}

// enqueue queues an order in its robot's lane.
func (c *commands) enqueue(ctx context.Context, v *state.Robot, o *order) {
	id := v.Registered.ID
	queued := c.lanes.Add(ctx, id, device.Job{Do: func(ctx context.Context) {
		effect, err := c.o.Services.Execute(ctx, id, o.command)
		c.lanes.inHub(ctx, func() { c.finish(ctx, id, o, effect, err) })
	}})
	if !queued {
		c.refuse(v, o.Thing, errors.New("too many commands came at once"))
		o.from.Ack()
		c.waiting.remove(id, o.Waiting)
	}
}

// release carries out the commands that have waited for a robot's hello.
func (c *commands) release(ctx context.Context, v *state.Robot) {
	id := v.Registered.ID
	for _, w := range c.waiting.start(id) {
		parsed, err := command.Parse(id, w.Thing, []byte(w.Payload), c.o.Robots.Resolve)
		if !time.Now().Before(w.Expires) {
			err = errors.New("it has waited too long")
		}
		if err != nil {
			c.refuse(v, w.Thing, err)
			c.waiting.remove(id, w)
			continue
		}
		c.enqueue(ctx, v, &order{Waiting: w, command: parsed, waited: true})
	}
}

// finish ends an order that was carried out, or has failed.
func (c *commands) finish(ctx context.Context, id device.ID, o *order, effect command.Effect, err error) {
	v := c.robots.views[id]
	switch {
	case v == nil: // its owner has forgotten it
		o.from.Ack()
		return
	case err != nil && command.Offline(err):
		c.postpone(ctx, v, o)
		c.robots.publishChanges(v, time.Now())
		return
	case ctx.Err() != nil:
		return // the broker, or the table of waiting commands, still has it
	}
	o.from.Ack()
	c.waiting.remove(id, o.Waiting)
	if err != nil {
		c.refuse(v, o.Thing, err)
		c.read(ctx, v) // so that entities show what is true
		v.Changed = true
	} else {
		if o.waited {
			c.report(v, o.Thing, event.CommandDone, "")
		}
		c.apply(ctx, v, effect)
	}
	c.robots.publishChanges(v, time.Now())
}

// apply shows the effect of a command.
func (c *commands) apply(ctx context.Context, v *state.Robot, e command.Effect) {
	if e.Change != nil {
		e.Change(v)
		v.Changed = true
	}
	if e.Read {
		c.read(ctx, v)
	}
	if e.Configured {
		c.robots.reconcile(time.Now())
	}
	if e.Notice != "" && !v.State.Online { // the notifier stores it
		c.notices.queued[e.Notice] = true
		c.report(v, "notify", event.CommandQueued, "")
	}
	if e.Postponed {
		v.Installing = true
		c.report(v, "firmware", event.CommandQueued, "")
	}
}

// installed reports the outcome of an installation, if a command has waited for it.
func (c *commands) installed(v *state.Robot, outcome, reason string) {
	if v.Installing {
		v.Installing = false
		c.report(v, "firmware", outcome, reason)
	}
}

// postpone stores an order for the robot's next hello.
func (c *commands) postpone(ctx context.Context, v *state.Robot, o *order) {
	if v.Listed && !o.waited { // it has said hello since
		o.waited = true
		c.enqueue(ctx, v, o)
		return
	}
	err := c.waiting.store(v.Registered.ID, o.Waiting)
	o.from.Ack() // also without room on the disk: a broker sends nothing more while much is unconfirmed
	if err != nil {
		c.refuse(v, o.Thing, err)
		return
	}
	c.report(v, o.Thing, event.CommandQueued, "")
	v.Changed = true
}

// refuse reports that a command was not carried out, and why.
func (c *commands) refuse(v *state.Robot, thing string, why error) {
	id, thing, reason := v.Registered.ID, plain.Clip(thing, 40), plain.Clip(why.Error(), 300)
	if c.refusals.log(id, time.Now(), "a command over MQTT is refused", "thing", thing, "err", reason) {
		c.report(v, thing, event.CommandRejected, reason)
	}
	// The entity may show it as done; the true state is published again.
	c.robots.out.Republish(c.robots.topics.Robot(id, "state"), c.robots.topics.Robot(id, "led"))
}

// report publishes on the bus what became of a command.
func (c *commands) report(v *state.Robot, thing, outcome, reason string) {
	c.o.Bus.Publish(v.Registered.ID, "", event.Command{Thing: thing, State: outcome, Reason: reason})
}

// read asks a robot for its status, once for however many commands need it.
func (c *commands) read(ctx context.Context, v *state.Robot) {
	id := v.Registered.ID
	if !v.State.Online {
		return
	}
	c.lanes.Add(ctx, id, device.Job{Name: "read", Do: func(ctx context.Context) {
		if answer, ok := c.o.Read(ctx, id, c.o.Log); ok {
			c.lanes.inHub(ctx, func() {
				if v := c.robots.views[id]; v != nil { // its owner has not forgotten it
					if v.Read(answer) {
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
		m.Ack() // the client does not wait for an answer later
	}
	if word := strings.Trim(verb, "abcdefghijklmnopqrstuvwxyz_") == "" && len(verb) <= 32; m.Retained || !word {
		c.refusals.log("", time.Now(), "a request over MQTT is ignored: it is retained, or nothing that can be asked", "topic", plain.Clip(m.Topic, 200))
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
		c.respond(request, data, err)
		m.Ack()
		if err == nil {
			c.lanes.inHub(ctx, func() { c.robots.reconcile(time.Now()) })
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

// respond publishes the response to a request, and logs an error too.
func (c *commands) respond(request command.Request, data any, err error) {
	response := command.Response{Transaction: request.Transaction, Status: "ok", Data: data}
	if err != nil {
		response.Status, response.Error = "error", plain.Clip(err.Error(), 300)
		c.o.Log.Warn("a request over MQTT failed", "verb", request.Verb, "err", response.Error)
	}
	c.robots.event(c.robots.topics.Bridge("response/"+request.Verb), response)
}
