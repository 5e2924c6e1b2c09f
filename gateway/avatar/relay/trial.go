package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"perch/agent"
	"perch/event"
	"perch/gateway/avatar/feed"
)

// Errors of RunTrial.
var (
	ErrNoRelay = errors.New("there is no such relay")
	ErrAway    = errors.New("the program is not connected")

	errEnded   = errors.New("the connection to the program has ended")
	errAnother = errors.New("another trial of the same program has begun")
)

// RunTrial makes a program show everything that it can show, so that the owner can watch whether the
// relay works. Every step of the trial shows one thing, and lasts for the duration each. RunTrial calls
// report before every step; an error of report ends the trial after that step. RunTrial returns an
// error that wraps ErrNoRelay or ErrAway if the trial cannot begin, and an error if ctx, the end of the
// connection or another trial ends the trial early.
func (r *Relays) RunTrial(ctx context.Context, name string, each time.Duration, report func(step string) error) error {
	for _, one := range r.current() {
		if one.target.Name != name {
			continue
		}
		if status := one.status(); !status.OK {
			return status.notConnected()
		}
		t := &trial{ctx: ctx, each: each, steps: one.steps(), report: report, done: make(chan error, 1), scene: restScene()}
		select {
		case one.trials <- t:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case err := <-t.done:
			return err
		case <-ctx.Done():
			<-t.done // RunTrial must not return while report may be called
			return ctx.Err()
		}
	}
	return fmt.Errorf("%w: %.40q", ErrNoRelay, name)
}

// trial is a running trial. Only the goroutine of relay.run calls its methods.
type trial struct {
	ctx    context.Context // context of RunTrial
	each   time.Duration   // duration of a step
	steps  []step          // remaining steps
	report func(string) error
	done   chan error  // receives the result
	scene  Scene       // scene of the current step
	timer  *time.Timer // fires when the next step is due; nil before the first call of next
}

type step struct {
	name   string
	scene  Scene
	frames []*feed.Frame // sent in addition to the scene
	mouth  float64       // how far the mouth is open, from 0 to 1
}

// trialSession is the session ID in scenes and frames of a trial.
const trialSession = "try"

// restScene returns the scene of an idle agent in a trial.
func restScene() Scene { return Scene{Session: trialSession, State: agent.Idle} }

// steps returns the steps of a trial: everything that this program can show.
func (r *relay) steps() (steps []step) {
	id, now := "try-"+rand.Text(), time.Now().Unix() // a program ignores a notification whose ID it has already seen
	add := func(show, name string, change func(*Scene), mouth float64, frames ...*feed.Frame) {
		if !r.kind.can(show) {
			return
		}
		s := restScene()
		if change != nil {
			change(&s)
		}
		steps = append(steps, step{name, s, frames, mouth})
	}
	stateOf := func(state agent.Shown) *feed.Frame {
		return feed.NewFrame(feed.KindState, feed.State{Type: feed.KindState, Session: trialSession, State: state})
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
			feed.NewFrame(feed.KindFace, feed.Face{Type: feed.KindFace, Session: trialSession, Tag: e.Name, Intensity: 1}))
	}
	for _, feeling := range feelings()[1:] {
		add("moods", "feeling "+feeling, func(s *Scene) { s.Mood = moodOf(feeling) }, 0,
			feed.NewFrame(feed.KindMood, feed.Mood{Type: feed.KindMood, Session: trialSession, Mood: moodOf(feeling)}))
	}
	for _, name := range r.o.Gestures {
		add("gestures", "gesture "+name, nil, 0, feed.NewFrame(feed.KindGesture, feed.Gesture{Type: feed.KindGesture, Name: name, By: event.ByOwner}))
	}
	sentence := "This is " + r.o.Name + ", trying its words."
	add("speech", "sentence", func(s *Scene) { s.State, s.Said = agent.Speaking, sentence }, 0,
		feed.NewFrame(feed.KindSaid, feed.Said{Type: feed.KindSaid, Session: trialSession, Text: sentence}))
	for _, open := range []float64{0.3, 1, 0.6, 0.05} {
		add("mouth", fmt.Sprintf("mouth %.0f %%", 100*open), func(s *Scene) { s.State = agent.Speaking }, open)
	}
	add("notifications", "notification", nil, 0, feed.NewFrame(feed.KindNotice, feed.Notice{Type: feed.KindNotice, TS: now,
		ID: id, Text: "This is a notification.", Urgency: "normal"}))
	question := "May I open the window?"
	add("questions", "question", func(s *Scene) { s.State, s.Question = agent.Notification, question }, 0, stateOf(agent.Notification),
		feed.NewFrame(feed.KindNotice, feed.Notice{Type: feed.KindNotice, TS: now, Session: trialSession,
			Text: question, Urgency: "normal", Question: id}))
	return append(steps, step{"rest", restScene(), []*feed.Frame{stateOf(agent.Sleeping)}, 0}) // the state sleeping ends the session
}

// moodOf returns a mood with a single feeling.
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

// next returns a channel that receives a value when the next step is due. It returns nil if t is nil.
func (t *trial) next() <-chan time.Time {
	if t == nil {
		return nil
	}
	if t.timer == nil {
		t.timer = time.NewTimer(0)
	}
	return t.timer.C
}

// finish ends a trial with the result err. It does nothing if t is nil or was already finished.
func (t *trial) finish(err error) {
	if t == nil {
		return
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	select {
	case t.done <- err:
	default: // already finished
	}
}

// showStep shows the next step. After the last step it ends the trial, and shows the scene of a
// session again.
func (c *connection) showStep(ctx context.Context) error {
	t := c.trial
	if len(t.steps) == 0 || t.ctx.Err() != nil {
		c.trial = nil
		err := c.update(ctx)
		t.finish(t.ctx.Err())
		return err
	}
	next := t.steps[0]
	t.steps = t.steps[1:]
	if err := t.report(next.name); err != nil {
		t.steps = nil
	}
	t.timer.Reset(t.each)
	t.scene = next.scene
	for _, f := range next.frames {
		if err := c.frame(ctx, f, t.scene); err != nil && !errors.Is(err, errNotShown) {
			return err
		}
	}
	if err := c.update(ctx); err != nil || !c.kind.can("mouth") {
		return err
	}
	return c.setMouth(ctx, next.mouth)
}
