package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"perch/agent"
	"perch/agent/feed"
	"perch/event"
)

// Errors of Try.
var (
	ErrNoRelay = errors.New("there is no such relay")
	ErrAway    = errors.New("the program is not connected")

	errEnded   = errors.New("the connection to the program has ended")
	errAnother = errors.New("somebody else tries the same program")
)

// Try walks a program through everything that it can show, each for so long, and calls
// report before each. It returns when all was shown, or with the error that ended it.
func (r *Relays) Try(ctx context.Context, name string, each time.Duration, report func(what string) error) error {
	for _, one := range r.now() {
		if one.target.Name != name {
			continue
		}
		if is := one.shown(); !is.OK {
			return is.away()
		}
		t := &try{ctx: ctx, each: each, steps: one.steps(), report: report, done: make(chan error, 1), scene: restful()}
		select {
		case one.tries <- t:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case err := <-t.done:
			return err
		case <-ctx.Done():
			<-t.done // report is not called any more
			return ctx.Err()
		}
	}
	return fmt.Errorf("%w: %.40q", ErrNoRelay, name)
}

// try is a walk under way. Its methods are the relay's.
type try struct {
	ctx    context.Context
	each   time.Duration
	steps  []step
	report func(string) error
	done   chan error
	scene  Scene
	timer  *time.Timer
}

// step is one thing that is shown.
type step struct {
	what   string
	scene  Scene
	frames []*feed.Frame // what happens besides
	mouth  float64       // 0 is left alone
}

// trial is the session that is shown in a try.
const trial = "try"

func restful() Scene { return Scene{Session: trial, State: agent.Idle} }

// steps are all that this program can show.
func (r *relay) steps() (all []step) {
	id, now := "try-"+rand.Text(), time.Now().Unix() // a notification of a later try is another one
	add := func(show, what string, change func(*Scene), mouth float64, frames ...*feed.Frame) {
		if !r.kind.can(show) {
			return
		}
		s := restful()
		if change != nil {
			change(&s)
		}
		all = append(all, step{what, s, frames, mouth})
	}
	stateOf := func(state agent.Shown) *feed.Frame {
		return feed.NewFrame(feed.KindState, feed.State{Type: feed.KindState, Session: trial, State: state})
	}
	for _, state := range states() {
		add("states", "state "+string(state), func(s *Scene) {
			s.State = state
			if state == agent.Working || state == agent.Juggling {
				s.Tool = "look"
			}
		}, 0, stateOf(state))
	}
	for _, e := range agent.Emotions() {
		add("faces", "face "+e.Name, func(s *Scene) { s.State, s.Face = agent.Speaking, e.Name }, 0,
			feed.NewFrame(feed.KindFace, feed.Face{Type: feed.KindFace, Session: trial, Tag: e.Name, Intensity: 1}))
	}
	for _, feeling := range feelings()[1:] {
		add("moods", "feeling "+feeling, func(s *Scene) { s.Mood = moodOf(feeling) }, 0,
			feed.NewFrame(feed.KindMood, feed.Mood{Type: feed.KindMood, Session: trial, Mood: moodOf(feeling)}))
	}
	for _, name := range r.o.Gestures {
		add("gestures", "gesture "+name, nil, 0, feed.NewFrame(feed.KindGesture, feed.Gesture{Type: feed.KindGesture, Name: name, By: event.ByOwner}))
	}
	sentence := "This is " + r.o.Name + ", trying its words."
	add("speech", "sentence", func(s *Scene) { s.State, s.Said = agent.Speaking, sentence }, 0,
		feed.NewFrame(feed.KindSaid, feed.Said{Type: feed.KindSaid, Session: trial, Text: sentence}))
	for _, open := range []float64{0.3, 1, 0.6, 0.05} {
		add("mouth", fmt.Sprintf("mouth %.0f %%", 100*open), func(s *Scene) { s.State = agent.Speaking }, open)
	}
	add("notifications", "notification", nil, 0, feed.NewFrame(feed.KindNotice, feed.Notice{Type: feed.KindNotice, TS: now,
		ID: id, Text: "This is a notification.", Urgency: "normal"}))
	question := "May I open the window?"
	add("questions", "question", func(s *Scene) { s.State, s.Question = agent.Notification, question }, 0, stateOf(agent.Notification),
		feed.NewFrame(feed.KindNotice, feed.Notice{Type: feed.KindNotice, TS: now, Session: trial,
			Text: question, Urgency: "normal", Question: id}))
	return append(all, step{"rest", restful(), []*feed.Frame{stateOf(agent.Sleeping)}, 0}) // the session is over
}

// moodOf is a mood in which one feeling is all there is.
func moodOf(feeling string) event.Mood {
	m := event.Mood{Dominant: feeling, Face: "neutral"}
	switch feeling {
	case "concern":
		m.Face, m.Feelings.Concern, m.Morphs.BrowInnerUp, m.Morphs.MouthFrown = "sad", 1, .8, .6
	case "celebration":
		m.Face, m.Feelings.Celebration, m.Morphs.MouthSmile, m.Head.Lean = "happy", 1, 1, -5
	case "patience":
		m.Feelings.Patience, m.Head.Tilt = 1, 8
	case "curiosity":
		m.Face, m.Feelings.Curiosity, m.Morphs.BrowOuterUpLeft, m.Head.Tilt = "thinking", 1, .8, 12
	case "empathy":
		m.Face, m.Feelings.Empathy, m.Morphs.BrowInnerUp, m.Head.Tilt = "loving", 1, .5, -8
	case "uncertain":
		m.Face, m.Feelings.Uncertain, m.Morphs.BrowDownLeft, m.Head.Yaw = "confused", 1, .5, 10
	}
	return m
}

// next has an element when the next step is due; of no try it is nil.
func (t *try) next() <-chan time.Time {
	if t == nil {
		return nil
	}
	if t.timer == nil {
		t.timer = time.NewTimer(0)
	}
	return t.timer.C
}

// end ends a try. A try that has ended, or is none, stays so.
func (t *try) end(err error) {
	if t == nil {
		return
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	select {
	case t.done <- err:
	default: // it has ended
	}
}

// step shows the next, and after the last what there is to show.
func (c *connection) step(ctx context.Context) error {
	t := c.try
	if len(t.steps) == 0 || t.ctx.Err() != nil {
		c.try = nil
		err := c.show(ctx)
		t.end(t.ctx.Err())
		return err
	}
	next := t.steps[0]
	t.steps = t.steps[1:]
	if err := t.report(next.what); err != nil {
		t.steps = nil
	}
	t.timer.Reset(t.each)
	t.scene = next.scene
	for _, f := range next.frames {
		if err := c.frame(ctx, f, t.scene); err != nil && !errors.Is(err, errUntold) {
			return err
		}
	}
	if err := c.show(ctx); err != nil || !c.kind.can("mouth") {
		return err
	}
	return c.mouth(ctx, next.mouth)
}
