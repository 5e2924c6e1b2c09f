package robot

import (
	"fmt"
	"reflect"
)

// check holds the table of phases in state's comment. The transcripts, the fuzz
// tests and the table of steps call it after every step.
func (s state) check() error {
	var broken []string
	must := func(ok bool, what string) {
		if !ok {
			broken = append(broken, what)
		}
	}
	if !s.turn.active {
		must(reflect.DeepEqual(s.turn, turnState{}), "something is left of a turn")
	}
	if !s.question.waits() {
		must(s.question == questionState{}, "something is left of a question")
	}
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
		for _, a := range s.queue.waiting {
			must(a.question == nil, "a question outlives the channel")
		}
	}
	if broken == nil {
		return nil
	}
	return fmt.Errorf("%v in phase %d: %+v", broken, s.phase, s)
}
