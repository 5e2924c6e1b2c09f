package homeassistant

import (
	"context"
	"time"

	"perch/event"
	"perch/gateway/homeassistant/state"
)

// run handles events, messages, calls and timers until ctx ends.
func (h *hub) run(ctx context.Context, l *lanes) {
	events, stop := h.start(time.Now()).Events(ctx)
	defer stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	reconcile := time.NewTicker(reconcileInterval)
	defer reconcile.Stop()
	for {
		timer.Reset(max(time.Until(h.nextChange(time.Now())), 0))
		select {
		case e, open := <-events:
			if !open {
				<-ctx.Done() // the bus is closed because the appliance is stopping
				return
			}
			h.onEvent(ctx, e)
		case m := <-h.connection.Arrived:
			h.onMessage(ctx, m)
		case call := <-l.calls:
			call()
			h.publishCounts()
		case <-reconcile.C:
			h.reconcile(time.Now())
		case <-timer.C:
			h.advance(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// start publishes the present states, and returns a reader of the events that follow.
func (h *hub) start(now time.Time) *event.Reader {
	h.states = h.o.Board.NewFollower(now)
	h.robots.characters = h.o.Characters.Names()
	h.robots.removeForgotten()
	h.sendRetainedText(h.topics.Bridge("status"), "online")
	h.bridge.refresh() // first, because the devices of robots refer to the bridge's device
	h.reconcile(now)
	h.notices.reload(now)
	for _, s := range h.states.States() {
		if v := h.robots.views[s.Robot]; v != nil {
			v.State, v.Shown = s, s.At(now)
			h.robots.publishStatus(v, now)
			h.robots.publishState(v, now)
		}
	}
	h.agents.resume(h.states.States(), now)
	h.publishCounts()
	return h.states.Reader(h.o.Bus)
}

// reconcile publishes changes that the bus does not report.
func (h *hub) reconcile(now time.Time) {
	h.robots.reconcile(now)
	h.agents.forgetRemoved(h.connection.Status(), now)
	h.bridge.refresh()
	h.publishCounts()
}

// nextChange returns the time at which advance has to be called next, at most an hour after now.
func (h *hub) nextChange(now time.Time) time.Time {
	next := state.Earliest(now.Add(time.Hour), h.states.NextExpiry(), h.republish)
	for _, v := range h.robots.views {
		next = state.Earliest(next, h.robots.nextChange(v, now))
	}
	for _, v := range h.agents.views {
		next = state.Earliest(next, v.Ends())
		if v.Changed {
			next = state.Earliest(next, v.Published.Add(stateInterval))
		}
	}
	return next
}

// advance publishes the changes that are due at the time now.
func (h *hub) advance(now time.Time) {
	for _, c := range h.states.Expire(now) {
		h.setState(c)
	}
	for _, v := range h.robots.views {
		h.robots.advance(v, now)
	}
	for _, v := range h.agents.views {
		if now.Before(v.Ends()) {
			h.agents.publishChanges(v, now)
		} else {
			h.agents.remove(v.ID, now)
		}
	}
	h.publishCounts()
	if !h.republish.IsZero() && !now.Before(h.republish) {
		h.republish = time.Time{}
		h.out.Republish()
	}
}
