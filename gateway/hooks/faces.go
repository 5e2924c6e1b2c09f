package hooks

import (
	"context"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
)

// faces are the faces that robots were last given. They follow the board: after
// an event the board itself may have yet to fold it.
type faces struct {
	robots *agent.Follower
	given  map[device.ID]coding
	spoken map[device.ID]time.Time // when a robot last began to listen, or recognized speech
}

// newFaces begins with the robots as they are. When those that listen began to is
// not known; they are taken to have begun now.
func newFaces(b *agent.Board, now time.Time) *faces {
	f := &faces{robots: b.NewFollower(now), given: map[device.ID]coding{}, spoken: map[device.ID]time.Time{}}
	for _, s := range f.robots.States() {
		f.spoken[s.Robot] = now
	}
	return f
}

// silence is how long a robot listens without speech until it shows the coding
// sessions. Before that it keeps the face of its last answer.
const silence = 4 * time.Second

// await returns when there is something to look at, and all that was published
// until then is known. It reports false at the end.
func (f *faces) await(ctx context.Context, d *API, events <-chan event.Envelope, alarm <-chan time.Time) bool {
	for news := false; !news; {
		select {
		case e, open := <-events:
			if !open {
				return false
			}
			f.handleEvent(e)
			news = stirs(e)
		case <-d.changed:
			news = true
		case <-alarm:
			news = true
		case <-ctx.Done():
			return false
		}
	}
	for until := d.o.Bus.Seq(); f.robots.Seq() < until; {
		e, open := <-events
		if !open {
			return false
		}
		f.handleEvent(e)
	}
	return true
}

func (f *faces) handleEvent(e event.Envelope) {
	f.robots.HandleEvent(e)
	if stirs(e) {
		f.spoken[e.Robot] = e.At
	}
	if _, gone := e.Event.(event.RobotOffline); gone {
		delete(f.spoken, e.Robot)
	}
}

// rests reports whether a robot's own talk shows nothing on its face: it is idle,
// or listens in silence. If it does not rest, from is when it may by itself.
func (f *faces) rests(id device.ID, now time.Time) (rests bool, from time.Time) {
	robot := f.robots.Robot(id)
	from = robot.ExpiresAt()
	switch robot.At(now) {
	case agent.Idle:
		return true, from
	case agent.Listening:
		from = f.spoken[id].Add(silence)
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
	case event.RobotOnline, event.RobotOffline, event.ListeningStarted, event.Heard, event.Misheard, event.ThinkingStarted,
		event.SpeakingStarted, event.TurnEnded, event.Answered:
		return true
	}
	return false
}

// updateFaces gives robots that rest the face of the sessions. It returns when one will
// rest by itself.
func (d *API) updateFaces(ctx context.Context, f *faces, now time.Time) (again time.Time) {
	d.mu.Lock()
	state, some := d.table.merged(), len(d.table) > 0
	d.mu.Unlock()
	open := d.robots()
	for id := range f.given {
		if !slices.Contains(open, id) {
			delete(f.given, id)
		}
	}
	for _, id := range open {
		if rests, from := f.rests(id, now); !rests {
			delete(f.given, id) // its own talk changes its face
			if from.After(now) && (again.IsZero() || from.Before(again)) {
				again = from
			}
			continue
		}
		shown, given := f.given[id]
		if shown == state && given || !some && !given {
			continue
		}
		f.given[id] = state
		if err := d.o.Talk.Feel(ctx, id, state.traits().face); err != nil && ctx.Err() == nil {
			delete(f.given, id)
			d.o.Log.Debug("a robot does not show what a coding session does", "robot", id, "err", err)
		}
	}
	return again
}

// robots are the connected ones that show coding sessions. Robots that the owner
// has not adopted do not.
func (d *API) robots() []device.ID {
	return slices.DeleteFunc(slices.Clone(d.o.Talk.Open()), func(id device.ID) bool {
		return len(d.o.Robots) > 0 && !slices.Contains(d.o.Robots, id) || !d.o.Trusts(id)
	})
}
