package robot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime/multipart"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/door"
	"perch/limit"
	"perch/voice"
)

// dice turns a fuzzer's bytes into choices.
type dice struct {
	bytes []byte
	asked []*inquiry // by the appliance, as rolled
}

func (d *dice) left() bool { return len(d.bytes) > 0 }

// roll is a number below n.
func (d *dice) roll(n int) int {
	if len(d.bytes) == 0 {
		return 0
	}
	b := d.bytes[0]
	d.bytes = d.bytes[1:]
	return int(b) % n
}

func (d *dice) mode() xiaozhi.Mode {
	return []xiaozhi.Mode{xiaozhi.Auto, xiaozhi.Manual, xiaozhi.Realtime}[d.roll(3)]
}

// fromRobot is a message a robot may send.
func (d *dice) fromRobot() xiaozhi.FromRobot {
	switch d.roll(9) {
	case 0:
		return xiaozhi.Hello{Features: xiaozhi.Features{MCP: d.roll(2) == 1}}
	case 1, 2:
		return xiaozhi.ListenStart{Mode: d.mode()}
	case 3:
		return xiaozhi.ListenStop{}
	case 4:
		kind := d.roll(6)
		return xiaozhi.ListenDetect{Text: []string{"hi", "face", ""}[kind%3], Typed: kind > 2}
	case 5:
		return xiaozhi.Abort{}
	case 6:
		return xiaozhi.Event{Name: []string{"face_detected", "head_pet_started"}[d.roll(2)], Data: []byte("{}")}
	case 7:
		return xiaozhi.FromMCP{Payload: []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)}
	}
	return xiaozhi.UnknownFromRobot{Type: "x"}
}

// command is something the appliance may want.
func (d *dice) command(now time.Time) input {
	switch d.roll(13) {
	case 0:
		return announce{announcement{text: "a"}}
	case 1:
		return announce{announcement{text: "b", notice: "n", urgent: true}}
	case 2:
		return showAlert{notice: "s"}
	case 3:
		return injectText{"hello"}
	case 4:
		return abort{}
	case 5:
		return holdChannel{time.Unix(int64(d.roll(256)), 0)}
	case 6:
		return showEmotion{agent.Neutral}
	case 7:
		return decideQuestion{"q", d.roll(2) == 0}
	case 8:
		return playSound{&sound{"s", make([]int16, 3*voice.SpeakerFrame)}, make(chan error, 1)}
	case 9, 10:
		until := now.Add(time.Duration(d.roll(40)) * time.Second)
		d.asked = append(d.asked, &inquiry{agent.Question{ID: "q", Text: "may we?", Asked: now, Until: until}, make(chan ending, 1)})
		return ask{d.asked[len(d.asked)-1]}
	case 11:
		if len(d.asked) > 0 {
			return withdraw{d.asked[d.roll(len(d.asked))]}
		}
	}
	return reboot{}
}

// checker follows the effects of steps and holds what must always be true.
type checker struct {
	t      *testing.T
	turn   bool // one is under way
	asked  int
	sounds int // that play
	closed bool
	open   map[*inquiry]bool // asked by the appliance, and neither ended nor withdrawn
}

func (c *checker) take(in input, before state, effects []effect) {
	if c.closed && len(effects) > 0 {
		c.t.Fatalf("%T after the end has effects: %v", in, effects)
	}
	abort, _ := in.(fromRobot)
	_, isAbort := abort.message.(xiaozhi.Abort)
	answered := !isAbort || before.phase == greeting || c.closed
	switch in := in.(type) {
	case ask:
		c.open[in.about] = true
	case withdraw:
		delete(c.open, in.about)
	}
	for _, e := range effects {
		switch e := e.(type) {
		case beginTurn:
			if c.turn {
				c.t.Fatalf("%T begins a second turn", in)
			}
			c.turn = true
		case cancelTurn:
			if !c.turn {
				c.t.Fatalf("%T cancels a turn that is not there", in)
			}
			c.turn = false
			answered = answered || e.abort
		case endTurn:
			if !c.turn {
				c.t.Fatalf("%T ends a turn that is not there", in)
			}
			c.turn = false
		case startAnswer, answerQuestion, keepTranscript, restartSpeech:
			if !c.turn {
				c.t.Fatalf("%T gives %T to no turn", in, e)
			}
		case send:
			if _, stop := e.message.(xiaozhi.TTSStop); stop {
				answered = true
			}
		case publish:
			switch e.event.(type) {
			case event.Asked:
				c.asked++
			case event.Answered:
				c.asked--
			case event.SoundStarted:
				c.sounds++
			case event.SoundEnded:
				c.sounds--
			}
		case endInquiry:
			if !c.open[e.about] {
				c.t.Fatalf("%T ends a question of the appliance that has ended", in)
			}
			delete(c.open, e.about)
		case closeChannel:
			c.closed = true
		}
	}
	if !answered {
		c.t.Fatalf("an abort in phase %d has no tts stop: %v", before.phase, effects)
	}
	if c.asked < 0 || c.asked > 1 {
		c.t.Fatalf("%d questions are open", c.asked)
	}
	if c.sounds < 0 || c.sounds > 1 || c.sounds == 1 && !c.turn {
		c.t.Fatalf("%d sounds play, a turn is %v", c.sounds, c.turn)
	}
}

// FuzzStep gives the pure step every sequence of what can happen, and checks
// what must always be true: at most one turn, every abort answered, every
// question ended exactly once, and no time at which it turns in circles.
func FuzzStep(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0, 1, 3, 2, 6, 3, 7, 4, 2, 5, 5})
	f.Add([]byte{0, 0, 0, 0, 1, 2, 3, 1, 1, 4, 9, 9, 2, 2, 200, 5, 5, 5})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 1, 0, 2, 9, 20, 2, 9, 30, 5, 4, 5, 5, 0, 5, 2, 4, 10, 2, 11, 0, 5, 2, 5, 5, 1, 5, 2, 4, 60})
	f.Add([]byte("a robot that says anything at any time, and a house that does as well"))
	f.Fuzz(func(t *testing.T, script []byte) {
		d := &dice{bytes: script}
		now := time.Unix(1000, 0)
		st := state{channel: channelState{opened: now}, greets: d.roll(2) == 1, limits: limits{
			hello: helloWithin, idle: time.Duration(d.roll(3)) * time.Minute, stalled: stalledAfter, longest: voice.LongestUtterance}}
		c := &checker{t: t, open: map[*inquiry]bool{}}
		feed := func(in input) {
			before := st
			var effects []effect
			st, effects = step(st, now, in)
			c.take(in, before, effects)
			if err := st.check(); err != nil {
				t.Fatalf("after %T: %v", in, err)
			}
			if st.turn.active != c.turn {
				t.Fatalf("after %T the state says turn %v", in, st.turn.active)
			}
			if st.question.published != (c.asked == 1) {
				t.Fatalf("after %T the state has a published question: %v", in, st.question.published)
			}
			if len(st.queue.waiting) > 2*mostQueued+2 {
				t.Fatalf("%d things wait to be said", len(st.queue.waiting))
			}
		}
		for d.left() && !c.closed {
			switch d.roll(6) {
			case 0, 1:
				feed(fromRobot{d.fromRobot()})
			case 2:
				feed(d.command(now))
			case 3:
				feed([]input{speechBegan{}, speechEnded{}, streaming{}}[d.roll(3)])
			case 4:
				now = now.Add(time.Duration(d.roll(256)) * 500 * time.Millisecond)
				ticks := 0
				for due := st.due(); !due.IsZero() && !due.After(now); due = st.due() {
					if ticks++; ticks > 20 {
						t.Fatalf("it turns in circles at phase %d", st.phase)
					}
					feed(tick{})
				}
			case 5:
				if st.turn.active { // what only a turn that is under way can do
					feed(d.fromTurn(st))
				}
			}
		}
		feed(hangUp{"the end"})
		if c.turn || c.asked != 0 || !c.closed {
			t.Fatalf("at the end a turn is %v, %d questions are open", c.turn, c.asked)
		}
		if len(c.open) > 0 {
			t.Fatalf("at the end %d questions of the appliance have no answer", len(c.open))
		}
	})
}

// fromTurn is something a turn or its playback may report.
func (d *dice) fromTurn(st state) input {
	switch d.roll(7) {
	case 0:
		return transcript{"x"}
	case 1:
		return misheard{}
	case 2:
		if !st.question.waits() {
			return questionPut{&agent.Question{ID: "q", Text: "may I?"}}
		}
		return questionAnswered{agent.Answer{Outcome: agent.AnswerGiven}}
	case 3:
		return turnFinished{[]string{"", event.EndDone, event.EndHangUp, event.EndSleep, event.EndFailed}[d.roll(5)], ""}
	case 4:
		return playbackProgress{started: true}
	case 5:
		if st.turn.begun { // once
			return playbackProgress{spoken: []string{"y"}}
		}
		return playbackProgress{began: true, spoken: []string{"x"}, paused: d.roll(2) == 1, askFor: time.Second}
	}
	return playbackProgress{drained: true}
}

// FuzzSession drives a whole session, with its four goroutines and real Opus,
// in virtual time, and checks what a robot must be able to rely on: sound only
// between tts start and tts stop and after a sentence_start, every start
// stopped, every abort answered, every question ended once. The bubble fails
// where a goroutine is left.
func FuzzSession(f *testing.F) {
	f.Add([]byte{1, 0, 4, 20, 5, 1, 2, 3})
	f.Add([]byte{1, 2, 4, 20, 5, 10, 3, 0, 4, 30, 5, 40, 0, 5, 5, 3})
	f.Add([]byte{0, 0, 3, 0, 2, 9, 30, 5, 20, 2, 9, 15, 2, 9, 35, 3, 0, 4, 20, 5, 20, 2, 11, 0, 5, 40, 0, 6, 1})
	f.Add([]byte{2, 0, 5, 3, 2, 1, 1, 1, 4, 25, 5, 50, 2, 4, 0, 0, 0, 5, 9})
	// Nearly all of a run was Opus of what is always the same.
	phrases := map[string]phrase{}
	packets, err := synthesize(f.Context(), "Yes?", &beepSynthesizer{hurry: hurried}, voice.Options{})
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{phraseAwake, phraseMisheard, phraseFailed, phraseAway, phraseDeaf} {
		phrases[name] = phrase{happy, "Yes?", packets}
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 60 {
			script = script[:60] // a bubble of minutes is slow to run
		}
		synctest.Test(t, func(t *testing.T) { fuzzSession(t, &dice{bytes: script}, phrases) })
	})
}

// hurried is how much faster than in other tests is spoken: a sentence is a few
// packets, each of which can still be the one at which something happens.
const hurried = 12

func fuzzSession(t *testing.T, d *dice, phrases map[string]phrase) {
	asked, ended := 0, 0
	turns := 0
	mind := &scriptedMind{answer: func(ctx context.Context, _ agent.Turn, out func(agent.Reply) error) error {
		turns++
		if turns%4 == 3 {
			return agent.ErrAway
		}
		if turns%3 == 2 {
			asked++
			err := out(agent.Ask{ID: fmt.Sprint(turns), Text: "May I?", Within: 5 * time.Second, Answer: func(agent.Answer) { ended++ }})
			if err != nil {
				return err
			}
		}
		return errors.Join(out(agent.Felt{Emotion: happy}), out(agent.Say{Text: "A few words."}), out(agent.Say{Text: "And more."}),
			out(agent.Done{End: agent.Continue}))
	}}
	k := newTalkOn(t, mind, xiaozhi.Framing1, func(k *talk) { k.synthesizer.hurry, k.phrases = hurried, phrases },
		func(o *Options) { o.Greet = true; o.Phrases = func(_, _ string) string { return "😊 Yes?" } })
	k.recognizer.always = voice.Transcript{Text: "hello"}
	aborts, listens := 0, 0
	waiting := map[*inquiry]bool{} // taken, and not withdrawn
	k.say(xiaozhi.Hello{})
	for d.left() && !isClosed(k.channel) {
		switch d.roll(6) {
		case 0, 1:
			m := d.fromRobot()
			if _, isAbort := m.(xiaozhi.Abort); isAbort {
				aborts++
			}
			if _, listen := m.(xiaozhi.ListenStart); listen {
				listens++
			}
			k.say(m)
		case 2:
			in := d.command(time.Now())
			err := k.server.post(t.Context(), robotID, in)
			if err != nil && !errors.Is(err, ErrOffline) {
				t.Fatal(err)
			}
			switch in := in.(type) {
			case ask:
				waiting[in.about] = err == nil
			case withdraw:
				waiting[in.about] = waiting[in.about] && len(in.about.ended) > 0
			}
		case 3:
			listens++
			k.listen(d.mode())
		case 4:
			for range d.roll(12) { // it takes five to be speech
				k.put(frame{audio: xiaozhi.Audio{Opus: k.packets[d.roll(len(k.packets))]}})
				time.Sleep(voice.FrameDuration)
			}
		case 5:
			// It takes 900 ms to be the end of speech. More packets add nothing.
			long := time.Duration(d.roll(64)) * 100 * time.Millisecond
			k.quiet(min(long, 900*time.Millisecond))
			time.Sleep(max(0, long-900*time.Millisecond))
		}
	}
	k.close()
	checkWire(t, k.channel.all(), aborts, listens)
	if asked != ended {
		t.Errorf("%d questions, %d answers", asked, ended)
	}
	for about, waits := range waiting {
		if got := len(about.ended) == 1; got != waits {
			t.Errorf("a question of the appliance ended: %v, want %v", got, waits)
		}
	}
}

// checkWire holds what a robot relies on. It is sent tts start twice only where
// it has opened its microphone meanwhile.
func checkWire(t *testing.T, all []sent, aborts, listens int) {
	t.Helper()
	speaking, shown, stops := false, false, 0
	for i, s := range all {
		switch s.message.(type) {
		case nil:
			if !speaking || !shown {
				t.Errorf("message %d is sound outside tts start and stop, or before a sentence", i)
			}
		case xiaozhi.TTSStart:
			if speaking {
				listens--
			}
			if listens < 0 {
				t.Errorf("message %d is a second tts start", i)
			}
			speaking, shown = true, false
		case xiaozhi.SentenceStart:
			if !speaking {
				t.Errorf("message %d is a sentence outside tts start and stop", i)
			}
			shown = true
		case xiaozhi.TTSStop:
			speaking = false
			stops++
		}
	}
	if speaking {
		t.Error("the last tts start has no stop")
	}
	if stops < aborts {
		t.Errorf("%d aborts, %d tts stops", aborts, stops)
	}
}

// FuzzUpload gives the camera's door every form.
func FuzzUpload(f *testing.F) {
	jpeg := "\xff\xd8\xff\xe0\x00\x10JFIF\x00"
	f.Add([]byte(
		"--b\r\nContent-Disposition: form-data; name=\"question\"\r\n\r\nwhat?\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"camera.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n" + jpeg + "\r\n--b--\r\n"))
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=\"image\"\r\n\r\n<svg/>\r\n--b--\r\n"))
	f.Add([]byte("--b--"))
	f.Fuzz(func(t *testing.T, form []byte) {
		u, err := readUpload(multipart.NewReader(bytes.NewReader(form), "b"))
		var fault *door.Fault
		if err != nil && !errors.As(err, &fault) {
			t.Errorf("an error that does not say how it is shown: %v", err)
		}
		if err == nil && (len(u.picture.Data) == 0 || len(u.question) > limit.Text) {
			t.Errorf("taken: %d bytes, %q", len(u.picture.Data), u.question)
		}
	})
}
