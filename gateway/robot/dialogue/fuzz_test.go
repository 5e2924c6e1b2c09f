package dialogue_test

import (
	"testing"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/dialogue/dialoguetest"
	"perch/voice"
)

// checker checks invariants of the effects of a sequence of steps.
type checker struct {
	t      *testing.T
	turn   bool // whether a turn is under way
	asked  int  // number of published questions without an answer
	sounds int  // number of sounds that play
	closed bool
	open   map[*dialogue.Question]bool // the appliance's questions that were neither ended nor withdrawn
}

// check checks the effects of one step. before is the state before the input in.
func (c *checker) check(in dialogue.Input, before dialogue.State, effects []dialogue.Effect) {
	if c.closed && len(effects) > 0 {
		c.t.Fatalf("%T after the end has effects: %v", in, effects)
	}
	abort, _ := in.(dialogue.FromRobot)
	_, isAbort := abort.Message.(xiaozhi.Abort)
	answered := !isAbort || before.Greeting() || c.closed
	switch in := in.(type) {
	case dialogue.Ask:
		c.open[in.Question] = true
	case dialogue.Withdraw:
		delete(c.open, in.Question)
	}
	for _, e := range effects {
		switch e := e.(type) {
		case dialogue.BeginTurn:
			if c.turn {
				c.t.Fatalf("%T begins a second turn", in)
			}
			c.turn = true
		case dialogue.CancelTurn:
			if !c.turn {
				c.t.Fatalf("%T cancels a turn that is not there", in)
			}
			c.turn = false
			answered = answered || e.Abort
		case dialogue.EndTurn:
			if !c.turn {
				c.t.Fatalf("%T ends a turn that is not there", in)
			}
			c.turn = false
		case dialogue.StartAnswer, dialogue.AnswerQuestion, dialogue.KeepTranscript, dialogue.RestartSpeech:
			if !c.turn {
				c.t.Fatalf("%T gives %T to no turn", in, e)
			}
		case dialogue.Send:
			if _, stop := e.Message.(xiaozhi.TTSStop); stop {
				answered = true
			}
		case dialogue.Publish:
			switch e.Event.(type) {
			case event.Asked:
				c.asked++
			case event.Answered:
				c.asked--
			case event.SoundStarted:
				c.sounds++
			case event.SoundEnded:
				c.sounds--
			}
		case dialogue.EndInquiry:
			if !c.open[e.Question] {
				c.t.Fatalf("%T ends a question of the appliance that has ended", in)
			}
			delete(c.open, e.Question)
		case dialogue.CloseChannel:
			c.closed = true
		}
	}
	if !answered {
		c.t.Fatalf("an abort in phase %d has no tts stop: %v", before.Phase(), effects)
	}
	if c.asked < 0 || c.asked > 1 {
		c.t.Fatalf("%d questions are open", c.asked)
	}
	if c.sounds < 0 || c.sounds > 1 || c.sounds == 1 && !c.turn {
		c.t.Fatalf("%d sounds play, a turn is %v", c.sounds, c.turn)
	}
}

// FuzzStep passes any sequence of possible inputs to Step, and checks that there is at most one turn, that every
// abort is answered, that every question ends exactly once, and that Deadline does not require ticks forever.
func FuzzStep(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 1, 3, 2, 6, 3, 7, 4, 2, 5, 5})
	f.Add([]byte{0, 0, 0, 0, 1, 2, 3, 1, 1, 4, 9, 9, 2, 2, 200, 5, 5, 5})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 1, 0, 2, 9, 20, 2, 9, 30, 5, 4, 5, 5, 0, 5, 2, 4, 10, 2, 11, 0, 5, 2, 5, 5, 1, 5, 2, 4, 60})
	f.Add([]byte("a robot that says anything at any time, and a house that does as well"))
	f.Fuzz(func(t *testing.T, script []byte) {
		d := &dialoguetest.Dice{Bytes: script}
		now := time.Unix(1000, 0)
		greet := d.Roll(2) == 1
		st := dialogue.New(now, voice.MaxUtterance, dialogue.Settings{Greet: greet, Idle: time.Duration(d.Roll(3)) * time.Minute})
		c := &checker{t: t, open: map[*dialogue.Question]bool{}}
		feed := func(in dialogue.Input) {
			before := st
			var effects []dialogue.Effect
			st, effects = dialogue.Step(st, now, in)
			c.check(in, before, effects)
			if err := st.Check(); err != nil {
				t.Fatalf("after %T: %v", in, err)
			}
			if st.TurnActive() != c.turn {
				t.Fatalf("after %T the state says turn %v", in, st.TurnActive())
			}
			if st.Published() != (c.asked == 1) {
				t.Fatalf("after %T the state has a published question: %v", in, st.Published())
			}
			if st.Waiting() > 2*dialogue.MaxQueued+2 {
				t.Fatalf("%d things wait to be said", st.Waiting())
			}
		}
		pass := func(long time.Duration) {
			now = now.Add(long)
			ticks := 0
			for due := st.Deadline(); !due.IsZero() && !due.After(now); due = st.Deadline() {
				if ticks++; ticks > 20 {
					t.Fatalf("it turns in circles at phase %d", st.Phase())
				}
				feed(dialogue.Tick{})
			}
		}
		for d.Left() && !c.closed {
			switch d.Roll(6) {
			case 0, 1:
				feed(dialogue.FromRobot{Message: d.FromRobot()})
			case 2:
				feed(d.Command(now))
			case 3:
				switch d.Roll(3) {
				case 0:
					feed(dialogue.SpeechBegan{})
				case 1:
					feed(dialogue.SpeechEnded{})
				case 2: // a stream of sound; see Packet
					for range 20 {
						pass(voice.FrameDuration)
						feed(&dialogue.Packet{Duration: voice.FrameDuration})
					}
				}
			case 4:
				pass(time.Duration(d.Roll(256)) * 500 * time.Millisecond)
			case 5:
				if st.TurnActive() { // only a turn under way reports these inputs
					feed(fromTurn(d, st))
				}
			}
		}
		feed(dialogue.HangUp{Why: "the end"})
		if c.turn || c.asked != 0 || !c.closed {
			t.Fatalf("at the end a turn is %v, %d questions are open", c.turn, c.asked)
		}
		if len(c.open) > 0 {
			t.Fatalf("at the end %d questions of the appliance have no answer", len(c.open))
		}
	})
}

// fromTurn returns an input that a turn or its playback may report.
func fromTurn(d *dialoguetest.Dice, st dialogue.State) dialogue.Input {
	switch d.Roll(7) {
	case 0:
		return dialogue.Transcript{Text: "x"}
	case 1:
		return dialogue.Misheard{Silence: d.Roll(2) == 0}
	case 2:
		if !st.Asking() {
			return dialogue.QuestionPut{Question: &agent.Question{ID: "q", Text: "may I?"}}
		}
		return dialogue.QuestionAnswered{Answer: agent.Answer{Outcome: agent.AnswerGiven}}
	case 3:
		return dialogue.TurnFinished{End: []string{"", event.EndDone, event.EndHangUp, event.EndSleep, event.EndFailed}[d.Roll(5)], Reason: ""}
	case 4:
		return dialogue.Progress{Started: true}
	case 5:
		if st.TurnBegun() { // Began is reported once
			return dialogue.Progress{Spoken: []string{"y"}}
		}
		return dialogue.Progress{Began: true, Spoken: []string{"x"}, Paused: d.Roll(2) == 1, AskFor: time.Second}
	}
	return dialogue.Progress{Drained: true}
}
