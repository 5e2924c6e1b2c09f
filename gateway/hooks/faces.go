package hooks

import (
	"context"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
)

// faces records which faces the robots show. It has a Follower, because the board may not have
// applied an event yet.
type faces struct {
	robots *agent.Follower
	given  map[device.ID]codingState // states whose faces the robots show
	spoken map[device.ID]time.Time   // when a robot last began to listen or recognized speech
}

// newFaces starts with the current robots, as if the listening ones had begun just now.
func newFaces(b *agent.Board, now time.Time) *faces {
	f := &faces{robots: b.NewFollower(now), given: map[device.ID]codingState{}, spoken: map[device.ID]time.Time{}}
	for _, s := range f.robots.States() {
		f.spoken[s.Robot] = now
	}
	return f
}

// silence is how long a robot listens without speech before it shows the coding sessions
// instead of the face of its last answer.
const silence = 4 * time.Second

// await waits until faces may have to change, and applies all events published until then.
// It returns false at the end.
func (f *faces) await(ctx context.Context, a *API, events <-chan event.Envelope, alarm <-chan time.Time) bool {
	for news := false; !news; {
		select {
		case e, open := <-events:
			if !open {
				return false
			}
			f.handleEvent(e)
			news = affects(e)
		case <-a.changed:
			news = true
		case <-alarm:
			news = true
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

// handleEvent applies an event.
func (f *faces) handleEvent(e event.Envelope) {
	f.robots.HandleEvent(e)
	if affects(e) {
		f.spoken[e.Robot] = e.At
	}
	if _, gone := e.Event.(event.RobotOffline); gone {
		delete(f.spoken, e.Robot)
	}
}

// rests reports whether a robot is idle or listens in silence, so that its conversation does not
// use the face. If it does not rest, from is when it may begin to rest without an event.
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

// affects reports whether an event may change whether a robot rests.
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

// updateFaces gives resting robots the face of the sessions. It returns when another robot
// may rest without an event.
func (a *API) updateFaces(ctx context.Context, f *faces, now time.Time) (again time.Time) {
	a.mu.Lock()
	state, some := a.table.merged(), len(a.table) > 0
	a.mu.Unlock()
	open := a.robots()
	for id := range f.given {
		if !slices.Contains(open, id) {
			delete(f.given, id)
		}
	}
	for _, id := range open {
		if rests, from := f.rests(id, now); !rests {
			delete(f.given, id) // its conversation changes the face
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
		if err := a.o.Talk.Feel(ctx, id, state.traits().face); err != nil && ctx.Err() == nil {
			delete(f.given, id)
			a.o.Log.Debug("a robot does not show what a coding session does", "robot", id, "err", err)
		}
	}
	return again
}

// robots returns the connected and adopted robots that show coding sessions.
func (a *API) robots() []device.ID {
	return slices.DeleteFunc(slices.Clone(a.o.Talk.Open()), func(id device.ID) bool {
		return len(a.o.Robots) > 0 && !slices.Contains(a.o.Robots, id) || !a.o.Trusts(id)
	})
}
