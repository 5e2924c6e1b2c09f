package hooks

import (
	"context"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
)

// faces records which robots show the face of the coding sessions. It follows the robots' states with its own
// Follower, because the board may not have applied an event yet when faces handles that event.
type faces struct {
	robots *agent.Follower
	given  map[device.ID]codingState // coding states whose faces the robots show
	active map[device.ID]time.Time   // time of the latest event of a robot's conversation
}

// newFaces returns the faces of the robots on a board. It takes now as the time of each conversation's latest
// event.
func newFaces(b *agent.Board, now time.Time) *faces {
	f := &faces{robots: b.NewFollower(now), given: map[device.ID]codingState{}, active: map[device.ID]time.Time{}}
	for _, s := range f.robots.States() {
		f.active[s.Robot] = now
	}
	return f
}

// silence is how long a listening robot must have had no event of its conversation (see affects) before
// it shows the face of the coding sessions instead of the face of its latest reply.
const silence = 4 * time.Second

// await waits until a face may have to change, and applies all events published until then.
// It returns false if ctx has ended or events is closed.
func (f *faces) await(ctx context.Context, a *API, events <-chan event.Envelope, alarm <-chan time.Time) bool {
	for changed := false; !changed; {
		select {
		case e, open := <-events:
			if !open {
				return false
			}
			f.handleEvent(e)
			changed = affects(e)
		case <-a.changed:
			changed = true
		case <-alarm:
			changed = true
		case <-ctx.Done():
			return false
		}
	}
	for until := a.o.Bus.Seq(); f.robots.Seq() < until; {
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
	if affects(e) {
		f.active[e.Robot] = e.At
	}
	if _, offline := e.Event.(event.RobotOffline); offline {
		delete(f.active, e.Robot)
	}
}

// rests reports whether a robot is idle, or has listened in silence. The conversation of such a
// robot does not need the face. If rests is false, from is the time at which it may become true
// without a further event, or the zero time.
func (f *faces) rests(id device.ID, now time.Time) (rests bool, from time.Time) {
	robot := f.robots.Robot(id)
	from = robot.ExpiresAt()
	switch robot.At(now) {
	case agent.Idle:
		return true, from
	case agent.Listening:
		from = f.active[id].Add(silence)
		return !now.Before(from), from
	}
	return false, from
}

// affects reports whether an event may change the result of rests for its robot.
func affects(e event.Envelope) bool {
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

// updateFaces shows the face of the coding sessions on the robots that rests accepts. It returns
// the earliest time at which rests may become true for another robot without a further event, or the
// zero time.
func (a *API) updateFaces(ctx context.Context, f *faces, now time.Time) (again time.Time) {
	a.mu.Lock()
	state, hasSessions := a.table.merged(), len(a.table) > 0
	a.mu.Unlock()
	open := a.robots()
	for id := range f.given {
		if !slices.Contains(open, id) {
			delete(f.given, id)
		}
	}
	for _, id := range open {
		if rests, from := f.rests(id, now); !rests {
			delete(f.given, id) // the conversation replaces the face
			if from.After(now) && (again.IsZero() || from.Before(again)) {
				again = from
			}
			continue
		}
		shown, given := f.given[id]
		if shown == state && given || !hasSessions && !given {
			continue
		}
		f.given[id] = state
		if err := a.o.Talk.ShowEmotion(ctx, id, state.traits().face); err != nil && ctx.Err() == nil {
			delete(f.given, id)
			a.o.Log.Debug("a robot cannot show the state of a coding session", "robot", id, "err", err)
		}
	}
	return again
}

// robots returns the reachable and adopted robots that show coding sessions and ask questions.
func (a *API) robots() []device.ID {
	return slices.DeleteFunc(slices.Clone(a.o.Talk.Reachable()), func(id device.ID) bool {
		return len(a.o.Robots) > 0 && !slices.Contains(a.o.Robots, id) || !a.o.Trusts(id)
	})
}
