package homeassistant

import (
	"context"
	"errors"
	"time"

	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/command"
	"perch/gateway/homeassistant/connection"
	"perch/plain"
)

// commands carries out commands for robots, each robot's one after the other in its lane.
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
	id, err := c.o.Robots.Find(name)
	v := c.robots.views[id]
	if err != nil || v == nil || !c.o.Robots.Trusts(id) {
		c.refusals.log("", now, "a command over MQTT names no robot that its owner has adopted; it is ignored. "+
			"perch robot list lists the robots, perch robot adopt ROBOT adopts one", "topic", plain.Clip(m.Topic, 200))
		m.Ack()
		return
	}
	parsed, err := command.Parse(id, thing, m.Payload, c.o.Robots.Find)
	if m.Retained {
		err = errors.New("it was published retained, and such a command would be given again at every connection; publish it without")
	}
	if err != nil {
		c.refuse(v, thing, err)
		m.Ack()
		return
	}
	if v.State.Online && !command.Lasting(parsed) {
		m.Ack() // it is worth nothing later, and a slow robot must not hold up other robots' messages
	}
	w := &Waiting{Thing: thing, Payload: string(m.Payload), Expires: now.Add(waitingTime)}
	c.enqueue(ctx, v, &order{Waiting: w, command: parsed, from: m})
}

// enqueue queues an order in its robot's lane.
func (c *commands) enqueue(ctx context.Context, v *view, o *order) {
	id := v.Registered.ID
	queued := c.lanes.Add(ctx, id, device.Job{Do: func(ctx context.Context) {
		effect, err := c.o.Services.Do(ctx, id, o.command)
		c.lanes.inHub(ctx, func() { c.finish(ctx, id, o, effect, err) })
	}})
	if !queued {
		c.refuse(v, o.Thing, errors.New("too many commands came at once"))
		o.from.Ack()
		c.waiting.remove(id, o.Waiting)
	}
}

// release carries out the commands that have waited for a robot's hello.
func (c *commands) release(ctx context.Context, v *view) {
	id := v.Registered.ID
	for _, w := range c.waiting.start(id) {
		parsed, err := command.Parse(id, w.Thing, []byte(w.Payload), c.o.Robots.Find)
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
		c.robots.settle(v, time.Now())
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
	c.robots.settle(v, time.Now())
}

// apply shows the effect of a command.
func (c *commands) apply(ctx context.Context, v *view, e command.Effect) {
	v.Changed = v.Changed || e.Mute != nil || e.Light != nil || e.Yaw != nil || e.Pitch != nil
	if e.Mute != nil {
		v.Mute = *e.Mute
	}
	if e.Light != nil {
		v.Light = e.Light
	}
	if e.Yaw != nil {
		v.Readings.HeadYaw = new(float64(*e.Yaw))
	}
	if e.Pitch != nil {
		v.Readings.HeadPitch = new(float64(*e.Pitch))
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
	if e.Installing != nil {
		if v.Installing = *e.Installing; v.Installing {
			c.report(v, "firmware", event.CommandQueued, "")
		}
	}
}

// installed reports the outcome of an installation, if a command has waited for it.
func (c *commands) installed(v *view, outcome, reason string) {
	if v.Installing {
		v.Installing = false
		c.report(v, "firmware", outcome, reason)
	}
}

// postpone stores an order for the robot's next hello.
func (c *commands) postpone(ctx context.Context, v *view, o *order) {
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
func (c *commands) refuse(v *view, thing string, why error) {
	id, thing, reason := v.Registered.ID, plain.Clip(thing, 40), plain.Clip(why.Error(), 300)
	if c.refusals.log(id, time.Now(), "a command over MQTT is refused", "thing", thing, "err", reason) {
		c.report(v, thing, event.CommandRejected, reason)
	}
	// The entity may show it as done; the true state is published again.
	c.robots.out.Republish(c.robots.topics.Robot(id, "state"), c.robots.topics.Robot(id, "led"))
}

// report publishes on the bus what became of a command.
func (c *commands) report(v *view, thing, outcome, reason string) {
	c.o.Bus.Publish(v.Registered.ID, "", event.Command{Thing: thing, State: outcome, Reason: reason})
}

// read asks a robot for its status, once for however many commands need it.
func (c *commands) read(ctx context.Context, v *view) {
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
					c.robots.settle(v, time.Now())
				}
			})
		}
	}})
}
