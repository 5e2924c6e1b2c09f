// Package dialogue decides who speaks when: a robot, the people near it, its agent or the appliance.
// It is a pure state machine: Step takes a state, a time and an input, and returns the next state and a
// list of effects, which a session carries out.
//
// The comments name messages of package xiaozhi. The robot sends hello when the channel opens, listen start
// and listen stop when its microphone opens and closes, listen detect to say what woke it, and abort when
// somebody interrupts its speech. The appliance sends tts start and tts stop, which begin and end the robot's
// speaking state. The end-pointer is the part of a session that finds the beginning and the end of speech in
// the robot's sound.
package dialogue

import (
	"fmt"
	"slices"
	"time"
)

// Step applies an input to a state. It returns the next state, and the effects in the order of
// their execution.
func Step(st State, now time.Time, in Input) (State, []Effect) {
	if p, ok := in.(*Packet); ok {
		st.mic.recordPacket(now, p.Duration, p.Muted)
		if p.Muted || st.phase != quiet || !st.mic.isStreaming(now) {
			return st, nil // the usual case, 17 times a second: allocates nothing
		}
	}
	s := &stepper{State: st, now: now}
	switch {
	case s.phase == closing:
	case s.phase == greeting && waitsForHello(in):
		if _, isAbort := in.(Abort); !isAbort && len(s.queue.early) < maxEarly {
			s.queue.early = append(slices.Clip(s.queue.early), in)
		}
	default:
		in.step(s)
	}
	return s.State, s.effects
}

// Check returns an error if the state breaks an invariant. No sequence of inputs leads to such a state;
// tests call Check after every step.
func (s State) Check() error {
	var violations []string
	require := func(ok bool, violation string) {
		if !ok {
			violations = append(violations, violation)
		}
	}
	require(s.turn.active || s.turn == turnState{}, "turnState is not zero without a turn")
	require(s.question.isWaiting() || s.question == questionState{}, "questionState is not zero without a question")
	require(s.turn.active || !s.question.isWaiting(), "a question waits without a turn")
	require(!s.turn.done || !s.turn.drained, "a turn continues although it is done and drained")
	require(s.question.published || !s.question.audible, "a question is audible but not published")
	require(s.mic.everOpened || !s.mic.open && !s.mic.listening, "a microphone that was never opened is open")
	require(s.phase == greeting || len(s.queue.early) == 0, "early commands are left after hello")
	switch s.phase {
	case greeting:
		require(!s.turn.active && len(s.queue.waiting) == 0, "there is a turn or a waiting announcement before hello")
		require(!s.mic.everOpened && !s.channel.settled && s.channel.greeted.IsZero(), "the microphone was opened, or the channel greeted, before hello")
	case quiet, ready:
		require(!s.turn.active || s.question.isWaiting(), "the robot is at rest during a turn without a question")
		require(s.phase != ready || s.turn.active || s.mic.listening, "phase ready with a closed microphone")
	case hearing, thinking, speaking:
		require(s.turn.active, "there is no turn")
		require(s.mic.resumeAwaited.IsZero(), "a listen start is awaited during a turn")
	case closing:
		require(!s.turn.active && s.music == musicState{}, "a turn or music outlives the channel")
		require(!slices.ContainsFunc(s.queue.waiting, func(a Announcement) bool { return a.Question != nil }), "a question outlives the channel")
	}
	if violations == nil {
		return nil
	}
	return fmt.Errorf("%v in phase %d: %+v", violations, s.phase, s)
}
