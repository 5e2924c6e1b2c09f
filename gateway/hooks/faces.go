package hooks

import (
	"context"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
)

// wardrobe is what robots were last given to wear. It follows them itself: who
// is woken by an event must not look at a board that has yet to fold it.
type wardrobe struct {
	robots *agent.Follower
	worn   map[device.ID]coding
	spoken map[device.ID]time.Time // when a robot last began to listen, or heard something
}

// silence is how long a robot that listens hears nothing until it is dressed.
// Before that it wears the face of its last answer.
const silence = 4 * time.Second

// await returns when there is something to look at, and all that was published
// until then is known. It reports false at the end.
func (w *wardrobe) await(ctx context.Context, d *Door, events <-chan event.Envelope, alarm <-chan time.Time) bool {
	for news := false; !news; {
		select {
		case e, open := <-events:
			if !open {
				return false
			}
			w.take(e)
			news = stirs(e)
		case <-d.changed:
			news = true
		case <-alarm:
			news = true
		case <-ctx.Done():
			return false
		}
	}
	for until := d.o.Bus.Seq(); w.robots.Seq() < until; {
		e, open := <-events
		if !open {
			return false
		}
		w.take(e)
	}
	return true
}

func (w *wardrobe) take(e event.Envelope) {
	w.robots.Take(e)
	if stirs(e) {
		w.spoken[e.Robot] = e.At
	}
	if _, gone := e.Event.(event.RobotOffline); gone {
		delete(w.spoken, e.Robot)
	}
}

// rests reports whether a robot's own talk shows nothing on its face: it is idle,
// or listens in silence. Where it does not, it says when it may by itself.
func (w *wardrobe) rests(id device.ID, now time.Time) (rests bool, from time.Time) {
	robot := w.robots.Robot(id)
	from = robot.Due()
	switch robot.At(now) {
	case agent.Idle:
		return true, from
	case agent.Listening:
		from = w.spoken[id].Add(silence)
		return !now.Before(from), from
	}
	return false, from
}

// stirs reports whether an event may have made a robot rest, or woken it.
func stirs(e event.Envelope) bool {
	if e.Robot == "" {
		return false
	}
	switch e.Event.(type) {
	case event.RobotOnline, event.RobotOffline, event.ListeningStarted, event.Heard, event.Misheard, event.ThinkingStarted, event.SpeakingStarted, event.TurnEnded, event.Answered:
		return true
	}
	return false
}

// dress has robots that rest look as the sessions do. It says when one will rest
// by itself.
func (d *Door) dress(ctx context.Context, w *wardrobe, now time.Time) (again time.Time) {
	d.mu.Lock()
	state, some := d.table.merged(), len(d.table) > 0
	d.mu.Unlock()
	open := d.robots()
	for id := range w.worn {
		if !slices.Contains(open, id) {
			delete(w.worn, id)
		}
	}
	for _, id := range open {
		if rests, from := w.rests(id, now); !rests {
			delete(w.worn, id) // its own talk changes its face
			if from.After(now) && (again.IsZero() || from.Before(again)) {
				again = from
			}
			continue
		}
		worn, dressed := w.worn[id]
		if worn == state && dressed || !some && !dressed {
			continue
		}
		w.worn[id] = state
		if err := d.o.Stage.Feel(ctx, id, state.face()); err != nil && ctx.Err() == nil {
			delete(w.worn, id)
			d.o.Log.Debug("a robot does not show what a coding session does", "robot", id, "err", err)
		}
	}
	return again
}

// robots are those that are here and have a part in this. What coding agents do
// is no stranger's business.
func (d *Door) robots() []device.ID {
	return slices.DeleteFunc(slices.Clone(d.o.Stage.Open()), func(id device.ID) bool {
		return len(d.o.Robots) > 0 && !slices.Contains(d.o.Robots, id) || d.o.Trusts != nil && !d.o.Trusts(id)
	})
}
