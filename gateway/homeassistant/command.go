package homeassistant

import (
	"context"
	"errors"
	"strings"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/connection"
	"perch/gateway/homeassistant/topic"
	"perch/plain"
)

// order is a command on its way to a robot.
type order struct {
	*Waiting
	command command
	waited  bool                // for the robot's hello
	from    connection.Incoming // what brought it, to be confirmed once it cannot be lost
}

// command takes what was published under a robot's topic.
func (h *hub) command(ctx context.Context, m connection.Incoming) {
	now := time.Now()
	name, thing, ok := h.names.ParseSet(m.Topic)
	if of, is := strings.CutPrefix(name, topic.AgentPrefix); ok && is {
		h.answer(ctx, of, thing, m)
		return
	}
	id, err := h.o.Robots.Find(name)
	if !ok || err != nil || h.views[id] == nil || !h.o.Robots.Trusts(id) {
		h.refused.log("", now, "a command over MQTT names no robot that its owner has adopted; it is ignored. "+
			"perch robot list lists the robots, perch robot adopt ROBOT adopts one", "topic", plain.Clip(m.Topic, 200))
		m.Ack()
		return
	}
	v := h.views[id]
	c, err := parseCommand(id, thing, m.Payload, h.o.Robots.Find)
	if m.Retained {
		err = errors.New("it was published retained, and such a command would be given again at every connection; publish it without")
	}
	if err != nil {
		h.refuse(v, now, thing, err)
		m.Ack()
		return
	}
	switch c.(type) {
	case say, notify: // worth being carried out later, whatever the robot does now
	default:
		if v.state.Online {
			m.Ack() // it is of this moment, and a slow robot must not hold up the others' messages
		}
	}
	h.enqueue(ctx, v, &order{Waiting: &Waiting{Thing: thing, Payload: string(m.Payload), Expires: now.Add(keptFor)}, command: c, from: m})
}

// enqueue queues an order with its robot.
func (h *hub) enqueue(ctx context.Context, v *view, o *order) {
	id := v.robot.ID
	queued := h.lanes.Add(ctx, id, device.Job{Do: func(ctx context.Context) {
		after, err := o.command.do(ctx, h, id)
		h.loop(ctx, func() { h.done(ctx, id, o, after, err) })
	}})
	if !queued {
		h.refuse(v, time.Now(), o.Thing, errors.New("too many commands came at once"))
		o.from.Ack()
		h.kept.done(id, o.Waiting)
	}
}

// loop has the hub's goroutine call a function, from a lane.
func (h *hub) loop(ctx context.Context, call func()) {
	select {
	case h.calls <- call:
	case <-ctx.Done():
	}
}

// release carries out the commands that waited for the robot.
func (h *hub) release(ctx context.Context, v *view) {
	now := time.Now()
	for _, w := range h.kept.take(v.robot.ID) {
		c, err := parseCommand(v.robot.ID, w.Thing, []byte(w.Payload), h.o.Robots.Find)
		if !now.Before(w.Expires) {
			err = errors.New("it has waited too long")
		}
		if err != nil {
			h.refuse(v, now, w.Thing, err)
			h.kept.done(v.robot.ID, w)
			continue
		}
		h.enqueue(ctx, v, &order{Waiting: w, command: c, waited: true})
	}
}

// done ends an order that was carried out, or not.
func (h *hub) done(ctx context.Context, id device.ID, o *order, after func(context.Context, *view), err error) {
	v, now := h.views[id], time.Now()
	switch {
	case v == nil: // forgotten meanwhile
		o.from.Ack()
		return
	case err != nil && offline(err):
		h.keepFor(ctx, v, o)
		h.settle(v, now)
		return
	case ctx.Err() != nil:
		return // the broker has it still
	}
	o.from.Ack()
	h.kept.done(id, o.Waiting)
	switch {
	case err != nil:
		h.refuse(v, now, o.Thing, err)
		h.read(ctx, v) // what shows must be what is
		v.dirty = true
	default:
		if o.waited {
			h.o.Bus.Publish(id, "", event.Command{Thing: o.Thing, State: event.CommandDone})
		}
		if after != nil {
			after(ctx, v)
		}
	}
	h.settle(v, now)
}

// keepFor keeps an order for the robot's next hello.
func (h *hub) keepFor(ctx context.Context, v *view, o *order) {
	if v.listed && !o.waited { // it has opened its channel meanwhile
		o.waited = true
		h.enqueue(ctx, v, o)
		return
	}
	err := h.kept.keep(v.robot.ID, o.Waiting)
	o.from.Ack() // also what was refused, which is published: a broker sends nothing more while much is unconfirmed
	if err != nil {
		h.refuse(v, time.Now(), o.Thing, err)
		return
	}
	h.o.Bus.Publish(v.robot.ID, "", event.Command{Thing: o.Thing, State: event.CommandQueued})
	v.dirty = true
}

// refuse publishes that something was not done, and why.
func (h *hub) refuse(v *view, now time.Time, thing string, why error) {
	reason := plain.Clip(why.Error(), 300)
	thing = plain.Clip(thing, 40)
	if h.refused.log(v.robot.ID, now, "a command over MQTT is refused", "thing", thing, "err", reason) {
		h.o.Bus.Publish(v.robot.ID, "", event.Command{Thing: thing, State: event.CommandRejected, Reason: reason})
	}
	// The entity may show it as done; the true state is published once more.
	h.out.Republish(h.names.Robot(v.robot.ID, "state"), h.names.Robot(v.robot.ID, "led"))
}

func (c say) do(ctx context.Context, h *hub, id device.ID) (func(context.Context, *view), error) {
	_, err := h.o.Talk.SayKept(ctx, id, c.text) // it publishes itself what becomes of it
	return nil, err
}

func (c notify) do(_ context.Context, h *hub, id device.ID) (func(context.Context, *view), error) {
	n, err := h.o.Notifier.Notify(c.notice)
	return func(_ context.Context, v *view) {
		if !v.state.Online { // the notifier keeps it
			h.waiting[n.ID] = true
			h.o.Bus.Publish(id, "", event.Command{Thing: "notify", State: event.CommandQueued})
		}
	}, err
}

func (c feel) do(ctx context.Context, h *hub, id device.ID) (func(context.Context, *view), error) {
	r, err := h.o.Robots.Get(id)
	if err != nil {
		return nil, err
	}
	return nil, h.o.Talk.Feel(ctx, id, c.emotion.On(r.Board))
}

func (c mute) do(_ context.Context, h *hub, id device.ID) (func(context.Context, *view), error) {
	h.o.Talk.Mute(id, c.on)
	return func(_ context.Context, v *view) { v.mute, v.dirty = c.on, true }, nil
}

func (c sense) do(_ context.Context, h *hub, id device.ID) (func(context.Context, *view), error) {
	return nil, h.o.Senses.FromBroker(id, c.name, c.data)
}

func (c configure) do(_ context.Context, h *hub, id device.ID) (func(context.Context, *view), error) {
	_, err := h.o.Robots.Configure(id, c.change)
	return func(context.Context, *view) { h.look(time.Now()) }, err
}

func (p press) do(ctx context.Context, h *hub, id device.ID) (func(context.Context, *view), error) {
	return nil, p(ctx, h, id)
}

// stop ends what a robot says. One that is offline is quiet.
func stop(ctx context.Context, h *hub, id device.ID) error {
	if err := h.o.Talk.Abort(ctx, id); !offline(err) {
		return err
	}
	return nil
}

func reboot(ctx context.Context, h *hub, id device.ID) error { return h.o.Talk.Reboot(ctx, id) }

// identify has a robot show where it is.
func identify(ctx context.Context, h *hub, id device.ID) error {
	_, text := agent.SplitEmotion(h.o.Phrase(id, "here"))
	_, err := h.o.Talk.Alert(ctx, id, "Perch", text, "happy")
	return err
}

// read asks a robot for its condition, once for however many want to know.
func (h *hub) read(ctx context.Context, v *view) {
	id := v.robot.ID
	if !v.state.Online {
		return
	}
	h.lanes.Add(ctx, id, device.Job{Name: "read", Do: func(ctx context.Context) {
		if r, ok := h.readings(ctx, id); ok {
			h.loop(ctx, func() { h.reported(id, r) })
		}
	}})
}

// reported takes a robot's condition.
func (h *hub) reported(id device.ID, r readings) {
	v := h.views[id]
	if v == nil { // forgotten meanwhile
		return
	}
	if v.take(r) {
		h.announce(v)
	}
	h.settle(v, time.Now())
}

// readings are a robot's status. Where it cannot report it, what is
// known of it stays.
func (h *hub) readings(ctx context.Context, id device.ID) (r readings, ok bool) {
	tools := h.o.Talk.Tools(id)
	if t, found := device.FindControl(tools, "get device status"); found {
		answer, err := h.o.Talk.Call(ctx, id, t.Name, nil)
		if err == nil {
			err = parseStatus(answer.Text, &r)
		}
		if err != nil {
			if ctx.Err() == nil && !offline(err) {
				h.o.Log.Info("a robot's condition cannot be read", "robot", id, "err", plain.Clip(err.Error(), 200))
			}
			return readings{}, false
		}
		ok = true
	}
	if t, found := device.FindAngles(tools); found {
		if answer, err := h.o.Talk.Call(ctx, id, t.Name, nil); err == nil {
			parseHead(answer.Text, &r)
			ok = true
		}
	}
	return r, ok
}
