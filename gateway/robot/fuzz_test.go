package robot

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/dialogue/dialoguetest"
	"perch/must"
	"perch/voice"
)

// FuzzSession runs whole sessions, with four goroutines and real Opus, in virtual time. It checks that sound is sent only
// between tts start and tts stop and after a sentence_start, that every tts start is followed by a tts stop, that every
// abort is answered, and that every question ends once. The test fails if a goroutine remains in the bubble.
func FuzzSession(f *testing.F) {
	f.Add([]byte{1, 0, 4, 20, 5, 1, 2, 3})
	f.Add([]byte{1, 2, 4, 20, 5, 10, 3, 0, 4, 30, 5, 40, 0, 5, 5, 3})
	f.Add([]byte{0, 0, 3, 0, 2, 9, 30, 5, 20, 2, 9, 15, 2, 9, 35, 3, 0, 4, 20, 5, 20, 2, 11, 0, 5, 40, 0, 6, 1})
	f.Add([]byte{2, 0, 5, 3, 2, 1, 1, 1, 4, 25, 5, 50, 2, 4, 0, 0, 0, 5, 9})
	// The phrases are encoded once, because encoding them in each run would take most of the time.
	phrases := map[string]phrase{}
	packets := must.Value(synthesize(f.Context(), "Yes?", &beepSynthesizer{hurry: hurried}, voice.Options{}))(f)
	for _, name := range []string{dialogue.PhraseAwake, phraseMisheard, phraseFailed, phraseAway, phraseDeaf, phraseMoment} {
		phrases[name] = phrase{happy, "Yes?", packets}
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 60 {
			script = script[:60] // longer sessions take too long to run
		}
		synctest.Test(t, func(t *testing.T) { fuzzSession(t, &dialoguetest.Dice{Bytes: script}, phrases) })
	})
}

// hurried is how many times faster than in other tests the synthesizer speaks, so that a sentence has only a few packets.
const hurried = 12

func fuzzSession(t *testing.T, d *dialoguetest.Dice, phrases map[string]phrase) {
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
	waiting := map[*dialogue.Question]bool{} // the appliance's questions that were accepted and not withdrawn
	k.say(xiaozhi.Hello{})
	for d.Left() && !isClosed(k.channel) {
		switch d.Roll(6) {
		case 0, 1:
			m := d.FromRobot()
			if _, isAbort := m.(xiaozhi.Abort); isAbort {
				aborts++
			}
			if _, listen := m.(xiaozhi.ListenStart); listen {
				listens++
			}
			k.say(m)
		case 2:
			in := d.Command(time.Now())
			err := k.server.post(t.Context(), robotID, in)
			if err != nil && !errors.Is(err, dialogue.ErrOffline) {
				t.Fatal(err)
			}
			switch in := in.(type) {
			case dialogue.Ask:
				waiting[in.Question] = err == nil
			case dialogue.Withdraw:
				waiting[in.Question] = waiting[in.Question] && len(in.Question.Ended) > 0
			}
		case 3:
			listens++
			k.listen(d.Mode())
		case 4:
			for range d.Roll(12) { // five packets are enough to be detected as speech
				k.put(frame{audio: xiaozhi.Audio{Opus: k.packets[d.Roll(len(k.packets))]}})
				time.Sleep(voice.FrameDuration)
			}
		case 5:
			// 900 ms of silence end the speech. Further packets of silence would only make the test slower.
			long := time.Duration(d.Roll(64)) * 100 * time.Millisecond
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
		if got := len(about.Ended) == 1; got != waits {
			t.Errorf("a question of the appliance ended: %v, want %v", got, waits)
		}
	}
}

// checkWire checks the messages to the robot. A second tts start without a tts stop is allowed only if the robot has
// opened its microphone.
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
