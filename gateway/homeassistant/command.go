package homeassistant

import (
	"context"
	"errors"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
)

// order is a command on its way to a robot.
type order struct {
	Waiting
	command command
	waited  bool     // for the robot's hello
	from    incoming // what brought it, to be confirmed once it cannot be lost
}

// report is what a lane sends the hub.
type report struct {
	robot    device.ID
	order    *order // that was carried out, or not
	err      error
	readings *readings // the robot's status
	light    *light    // as it is now
	turned   turn      // the head, where it cannot be asked
	notice   string    // the id of one that was taken
	look     bool      // at the registry, which has changed
	queued   bool      // an installation, until the robot checks in
}

// command takes what was published under a robot's topic.
func (h *hub) command(ctx context.Context, m incoming) {
	now := time.Now()
	name, thing, ok := h.names.setTopic(m.topic)
	if of, is := strings.CutPrefix(name, agentPrefix); ok && is {
		h.answer(ctx, of, thing, m)
		return
	}
	id, err := h.o.Robots.Find(name)
	if !ok || err != nil || h.views[id] == nil || !h.o.Robots.Trusts(id) {
		h.refused.log("", now, "a command over MQTT names no robot that its owner has adopted; it is ignored. "+
			"perch robot list lists the robots, perch robot adopt ROBOT adopts one", "topic", device.Clip(m.topic, 200))
		m.kept()
		return
	}
	v := h.views[id]
	c, err := parseCommand(id, thing, m.payload, h.o.Robots.Find)
	if m.retained {
		err = errors.New("it was published retained, and such a command would be given again at every connection; publish it without")
	}
	if err != nil {
		h.refuse(v, now, thing, err)
		m.kept()
		return
	}
	switch c.(type) {
	case say, notify: // worth being carried out later, whatever the robot does now
	default:
		if v.state.Online {
			m.kept() // it is of this moment, and a slow robot must not hold up the others' messages
		}
	}
	h.enqueue(ctx, v, &order{Waiting: Waiting{Thing: thing, Payload: string(m.payload), Expires: now.Add(keptFor)}, command: c, from: m})
}

// enqueue queues an order with its robot.
func (h *hub) enqueue(ctx context.Context, v *view, o *order) {
	id, board := v.robot.ID, v.robot.Board
	queued := h.lanes.Add(ctx, id, device.Job{Do: func(ctx context.Context) {
		r := h.perform(ctx, id, board, o.command)
		r.robot, r.order = id, o
		h.report(ctx, r)
	}})
	if !queued {
		h.refuse(v, time.Now(), o.Thing, errors.New("too many commands came at once"))
		o.from.kept()
		h.kept.done(id, o.Waiting)
	}
}

// report hands something to the loop.
func (h *hub) report(ctx context.Context, r report) {
	select {
	case h.reports <- r:
	case <-ctx.Done():
	}
}

// release carries out the commands that waited for the robot.
func (h *hub) release(ctx context.Context, v *view) {
	now := time.Now()
	for _, w := range h.kept.take(v.robot.ID) {
		c, err := parseCommand(v.robot.ID, w.Thing, []byte(w.Payload), h.o.Robots.Find)
		switch {
		case !now.Before(w.Expires):
			h.refuse(v, now, w.Thing, errors.New("it has waited too long"))
			h.kept.done(v.robot.ID, w)
		case err != nil:
			h.refuse(v, now, w.Thing, err)
			h.kept.done(v.robot.ID, w)
		default:
			h.enqueue(ctx, v, &order{Waiting: w, command: c, waited: true})
		}
	}
}

// reported takes the end of an order, or a robot's status.
func (h *hub) reported(ctx context.Context, r report) {
	now := time.Now()
	if r.look {
		h.look(now)
	}
	v := h.views[r.robot]
	if v == nil { // forgotten meanwhile
		if r.order != nil {
			r.order.from.kept()
		}
		return
	}
	if r.readings != nil && v.take(*r.readings) {
		h.announce(v)
	}
	if r.order != nil {
		h.done(ctx, v, r, now)
	}
	h.settle(v, now)
}

func (h *hub) done(ctx context.Context, v *view, r report, now time.Time) {
	o := r.order
	switch {
	case r.err != nil && offline(r.err):
		h.keepFor(ctx, v, o)
		return
	case ctx.Err() != nil:
		return // the broker has it still
	}
	o.from.kept()
	h.kept.done(v.robot.ID, o.Waiting)
	switch {
	case r.err != nil:
		h.refuse(v, now, o.Thing, r.err)
		h.read(ctx, v) // what shows must be what is
		v.dirty = true
		return
	case o.waited:
		h.o.Bus.Publish(v.robot.ID, "", event.Command{Thing: o.Thing, State: event.CommandDone})
	}
	switch c := o.command.(type) {
	case notify:
		if !v.state.Online { // the notifier keeps it
			h.waiting[r.notice] = true
			h.o.Bus.Publish(v.robot.ID, "", event.Command{Thing: o.Thing, State: event.CommandQueued})
		}
	case mute:
		v.mute, v.dirty = c.on, true
	case lamp:
		v.led, v.dirty = r.light, true
	case turn:
		v.readings.turned(r.turned)
		v.dirty = true
		h.read(ctx, v)
	case adjust:
		h.read(ctx, v)
	case install:
		if v.installing = r.queued; v.installing {
			h.o.Bus.Publish(v.robot.ID, "", event.Command{Thing: o.Thing, State: event.CommandQueued})
		}
	}
}

// keepFor keeps an order for the robot's next hello.
func (h *hub) keepFor(ctx context.Context, v *view, o *order) {
	if v.listed && !o.waited { // it has opened its channel meanwhile
		o.waited = true
		h.enqueue(ctx, v, o)
		return
	}
	err := h.kept.keep(v.robot.ID, o.Waiting)
	o.from.kept() // also what was refused, which is published: a broker sends nothing more while much is unconfirmed
	if err != nil {
		h.refuse(v, time.Now(), o.Thing, err)
		return
	}
	h.o.Bus.Publish(v.robot.ID, "", event.Command{Thing: o.Thing, State: event.CommandQueued})
	v.dirty = true
}

// refuse publishes that something was not done, and why.
func (h *hub) refuse(v *view, now time.Time, thing string, why error) {
	reason := device.Clip(why.Error(), 300)
	thing = device.Clip(thing, 40)
	if h.refused.log(v.robot.ID, now, "a command over MQTT is refused", "thing", thing, "err", reason) {
		h.o.Bus.Publish(v.robot.ID, "", event.Command{Thing: thing, State: event.CommandRejected, Reason: reason})
	}
	// The entity may show it as done; the true state is published once more.
	h.out.republish(h.names.robotTopic(v.robot.ID, "state"), h.names.robotTopic(v.robot.ID, "led"))
}

// perform carries an order out. It runs in the robot's lane.
func (h *hub) perform(ctx context.Context, id device.ID, board string, c command) (r report) {
	talk := h.o.Talk
	switch c := c.(type) {
	case say:
		_, r.err = talk.SayKept(ctx, id, c.text) // it publishes itself what becomes of it
	case notify:
		var n notice.Notification
		n, r.err = h.o.Notifier.Notify(c.notice)
		r.notice = n.ID
	case feel:
		r.err = talk.Feel(ctx, id, c.emotion.On(board))
	case mute:
		talk.Mute(id, c.on)
	case sense:
		r.err = h.o.Senses.FromBroker(id, c.name, c.data)
	case gesture:
		r.err = h.gesture(ctx, id, c)
	case stop:
		if r.err = talk.Abort(ctx, id); offline(r.err) {
			r.err = nil // it is quiet
		}
	case reboot:
		r.err = talk.Reboot(ctx, id)
	case identify:
		_, r.err = talk.Alert(ctx, id, "Perch", h.here(id), "happy")
	case adjust:
		r.err = h.adjust(ctx, id, c)
	case turn:
		r.turned, r.err = h.turn(ctx, id, c)
	case lamp:
		r.light, r.err = h.lamp(ctx, id, c.light)
	case install:
		r.queued, r.err = h.install(ctx, id)
	case configure:
		_, r.err = h.o.Robots.Configure(id, c.change)
		r.look = r.err == nil
	}
	return r
}

// read asks a robot for its condition, once for however many want to know.
func (h *hub) read(ctx context.Context, v *view) {
	id := v.robot.ID
	if !v.state.Online {
		return
	}
	h.lanes.Add(ctx, id, device.Job{Name: "read", Do: func(ctx context.Context) {
		if r, ok := h.readings(ctx, id); ok {
			h.report(ctx, report{robot: id, readings: &r})
		}
	}})
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
				h.o.Log.Info("a robot's condition cannot be read", "robot", id, "err", device.Clip(err.Error(), 200))
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

// here is what a robot shows that is looked for among others.
func (h *hub) here(id device.ID) string {
	_, text := agent.SplitEmotion(h.o.Phrase(id, "here"))
	return text
}
