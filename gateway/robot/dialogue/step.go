// Package dialogue decides who speaks when: all of turn taking between a robot, the people near
// it, its agent and the appliance. It is pure. Step makes of a state, a time and an input the
// next state and a list of effects; a session carries them out.
package dialogue

import (
	"fmt"
	"slices"
	"time"
)

// Step returns the state after an input, and the effects in their order.
func Step(st State, now time.Time, in Input) (State, []Effect) {
	if p, ok := in.(*Packet); ok {
		st.mic.packet(now, p.Duration, p.Muted)
		if p.Muted || st.phase != quiet || !st.mic.streams(now) {
			return st, nil // seventeen times a second
		}
	}
	s := &stepper{State: st, now: now}
	switch {
	case s.phase == closing:
	case s.phase == greeting && waitsForHello(in):
		if _, quiet := in.(Abort); !quiet && len(s.queue.early) < mostEarly {
			s.queue.early = append(slices.Clip(s.queue.early), in)
		}
	default:
		in.step(s)
	}
	return s.State, s.effects
}

// Check returns an error if parts of the state contradict each other. No sequence of inputs
// leads to such a state; the tests of this package and of sessions call it after every step.
func (s State) Check() error {
	var broken []string
	must := func(ok bool, what string) {
		if !ok {
			broken = append(broken, what)
		}
	}
	must(s.turn.active || s.turn == turnState{}, "something is left of a turn")
	must(s.question.waits() || s.question == questionState{}, "something is left of a question")
	must(s.turn.active || !s.question.waits(), "a question waits without a turn")
	must(!s.turn.done || !s.turn.drained, "a turn that is over goes on")
	must(s.question.published || !s.question.audible, "a question is heard and not published")
	must(s.mic.everOpened || !s.mic.open && !s.mic.listening, "a microphone that was never opened is open")
	must(s.phase == greeting || len(s.queue.early) == 0, "early commands are left after hello")
	switch s.phase {
	case greeting:
		must(!s.turn.active && len(s.queue.waiting) == 0, "something waits to be spoken, or is, before hello")
		must(!s.mic.everOpened && !s.channel.settled && s.channel.greeted.IsZero(), "something has happened before hello")
	case quiet, ready:
		must(!s.turn.active || s.question.waits(), "the robot rests in a turn without a question")
		must(s.phase != ready || s.turn.active || s.mic.listening, "we are ready to listen to a closed microphone")
	case hearing, thinking, speaking:
		must(s.turn.active, "there is no turn")
		must(s.mic.resumeAwaited.IsZero(), "the robot is awaited to listen again in a turn")
	case closing:
		must(!s.turn.active, "a turn outlives the channel")
		must(!slices.ContainsFunc(s.queue.waiting, func(a Announcement) bool { return a.Question != nil }), "a question outlives the channel")
	}
	if broken == nil {
		return nil
	}
	return fmt.Errorf("%v in phase %d: %+v", broken, s.phase, s)
}
