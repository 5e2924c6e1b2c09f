package robot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/voice"
)

// sound is d of speech.
func sound(d time.Duration) agent.Sound {
	pcm := make([]int16, int(d.Seconds()*voice.SpeakerRate))
	for i := range pcm {
		pcm[i] = int16(i % 100 * 50)
	}
	return agent.Sound{PCM: pcm}
}

// hearing returns a mind whose brain hears an utterance to its end and then makes the replies. It answers texts with
// "By text.".
func hearing(replies ...agent.Reply) *scriptedMind {
	m := answer("By text.")
	m.hear = func(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
		if err := t.Speech.Wait(ctx); err != nil {
			return err
		}
		for _, r := range replies {
			if err := out(r); err != nil {
				return err
			}
		}
		return nil
	}
	return m
}

// TestConversation: a brain that hears and speaks itself has a turn like any other: transcript, sentences with their
// sound, record and exchange. No recognizer and no synthesizer is used.
func TestConversation(t *testing.T) {
	mind := hearing(agent.Heard{Text: "Look left."}, agent.Felt{Emotion: happy}, agent.Used{Tokens: 70}, agent.Say{Text: "I look left.", Sounds: true},
		sound(1500*time.Millisecond), agent.Used{Tokens: 30}, agent.Done{End: agent.Continue})
	talking(t, mind, func(k *talk) {
		k.synthesizer.err = errors.New("the synthesizer was used")
		k.channel.forget()
		k.listen(xiaozhi.Auto)
		k.speak()
		k.pass(5 * time.Second)
		k.wantStory("stt Look left., face happy, tts start, sentence I look left., 25 packets, tts stop")
		if len(k.recognizer.durations) > 0 {
			t.Error("the recognizer was used")
		}
		if e := k.mind.remembered; len(e) != 1 || e[0] != (agent.Exchange{Heard: "Look left.", Said: "I look left."}) {
			t.Errorf("remembered %+v", e)
		}
		if turn := k.turns.Last; turn.End != event.EndDone || turn.Details.Tokens != 100 || turn.Stages[event.StageFirstAudio] == 0 && turn.Stages["first_packet"] == 0 {
			t.Errorf("kept %+v", turn)
		}
		var kinds []string
		for _, kind := range k.happened() {
			if slices.Contains([]string{"heard", "speaking_started", "said", "turn_ended"}, kind) {
				kinds = append(kinds, kind)
			}
		}
		if got := strings.Join(kinds, " "); got != "heard speaking_started said turn_ended" && got != "heard said speaking_started turn_ended" {
			t.Errorf("events: %s", got)
		}
	})
}

// TestConversationGoesOnWithTheList: if the brain fails before it speaks, the recognizer gets the whole sound and
// another brain the words; if the words are known already, they are not recognized, and not shown twice.
func TestConversationGoesOnWithTheList(t *testing.T) {
	away := fmt.Errorf("%w: realtime: it was cut off", agent.ErrUnheard)
	for name, c := range map[string]struct {
		heard      []agent.Reply
		atOnce     bool // fails while the person still speaks
		recognized int
		shown      string // before the words
	}{
		"at once":          {atOnce: true, recognized: 1},
		"without words":    {recognized: 1},
		"not written down": {heard: []agent.Reply{agent.Heard{Text: agent.Unwritten}}, recognized: 1, shown: "stt …, "},
		"after the words":  {heard: []agent.Reply{agent.Heard{Text: "what time is it"}}},
		"cut after a tool": {heard: []agent.Reply{agent.Heard{Text: "what time is it"}, agent.Used{Tokens: 5}}},
	} {
		t.Run(name, func(t *testing.T) {
			mind := hearing(c.heard...)
			listen := mind.hear
			mind.hear = func(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
				if c.atOnce {
					return away
				}
				return errors.Join(listen(ctx, t, out), away)
			}
			talking(t, mind, func(k *talk) {
				k.channel.forget()
				k.hears(xiaozhi.Auto, "what time is it")
				k.pass(5 * time.Second)
				k.wantStory(c.shown + "stt what time is it, face happy, tts start, sentence By text., 14 packets, tts stop")
				if n := len(k.recognizer.durations); n != c.recognized || n > 0 && k.recognizer.durations[0] < time.Second {
					t.Errorf("recognized %v", k.recognizer.durations)
				}
				if e := k.mind.remembered; len(e) != 1 || e[0].Heard != "what time is it" {
					t.Errorf("remembered %+v", e)
				}
			})
		})
	}
}

// TestConversationInterrupted: an interruption cancels the brain, and sound that it sends later is dropped. Only what was
// heard of the answer is remembered.
func TestConversationInterrupted(t *testing.T) {
	ended := make(chan error, 1)
	mind := hearing()
	mind.hear = func(ctx context.Context, turn agent.Turn, out func(agent.Reply) error) error {
		err := turn.Speech.Wait(ctx)
		for _, r := range []agent.Reply{agent.Heard{Text: "Tell me a story."}, agent.Say{Text: "Once upon a time there was a small robot.", Sounds: true}} {
			err = errors.Join(err, out(r))
		}
		for err == nil {
			err = out(sound(time.Second))
		}
		ended <- errors.Join(out(sound(time.Second)), err)
		return err
	}
	talking(t, mind, func(k *talk) {
		k.listen(xiaozhi.Auto)
		k.speak()
		k.pass(time.Second)
		k.say(xiaozhi.Abort{Reason: xiaozhi.WakeWord})
		k.channel.forget()
		k.pass(20 * time.Second)
		if len(k.channel.packets()) > 0 {
			t.Error("there is sound after the interruption")
		}
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		default:
			t.Error("the brain goes on")
		}
		if e := k.mind.remembered; len(e) != 1 || !strings.HasSuffix(e[0].Said, "…") {
			t.Errorf("remembered %+v", e)
		}
	})
}

// TestConversationInterruptedBeforeItsWords: a person who interrupts an answer before his words are known has talked all
// the same: what he has heard of the answer is remembered.
func TestConversationInterruptedBeforeItsWords(t *testing.T) {
	mind := hearing(agent.Say{Text: "Once upon a time there was a robot.", Sounds: true}, sound(20*time.Second))
	talking(t, mind, func(k *talk) {
		k.listen(xiaozhi.Auto)
		k.speak()
		k.pass(time.Second)
		k.say(xiaozhi.Abort{Reason: xiaozhi.WakeWord})
		k.pass(time.Second)
		if e := k.mind.remembered; len(e) != 1 || e[0].Heard != agent.Unwritten || !strings.HasPrefix(e[0].Said, "Once upon") {
			t.Errorf("remembered %+v", e)
		}
		if turn := k.turns.Last; turn.End != event.EndCancelled || turn.Heard != agent.Unwritten {
			t.Errorf("kept %+v", turn)
		}
	})
}

// TestConversationFails: a brain that is cut off after it has begun to speak fails the turn. What it has said is played.
func TestConversationFails(t *testing.T) {
	mind := hearing(agent.Heard{Text: "Hello."}, agent.Say{Text: "It is", Sounds: true}, sound(time.Second))
	hear := mind.hear
	mind.hear = func(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
		return errors.Join(hear(ctx, t, out), agent.ErrNoBrain)
	}
	talking(t, mind, func(k *talk) {
		k.channel.forget()
		k.listen(xiaozhi.Auto)
		k.speak()
		k.pass(5 * time.Second)
		k.wantStory("stt Hello., tts start, sentence It is, 17 packets, tts stop")
		if turn := k.turns.Last; turn.End != event.EndFailed {
			t.Errorf("kept %+v", turn)
		}
	})
}

// TestConversationWithoutWords: nothing is answered or remembered if the brain has heard no words.
func TestConversationWithoutWords(t *testing.T) {
	mind := hearing(agent.Heard{Text: "(coughs)"}, agent.Say{Text: "Bless you.", Sounds: true}, sound(time.Second), agent.Done{End: agent.Continue})
	talking(t, mind, func(k *talk) {
		k.channel.forget()
		k.listen(xiaozhi.Auto)
		k.speak()
		k.pass(5 * time.Second)
		k.wantStory("stt …")
		if len(k.mind.remembered) > 0 {
			t.Errorf("remembered %+v", k.mind.remembered)
		}
	})
}

// TestStrangersAreRecognized: the words of a stranger never reach a brain that hears itself.
func TestStrangersAreRecognized(t *testing.T) {
	mind := hearing(agent.Heard{Text: "no"})
	talking(t, mind, func(k *talk) {
		k.robots.stranger.Store(true)
		k.channel.forget()
		k.hears(xiaozhi.Auto, "what time is it")
		k.pass(5 * time.Second)
		k.wantStory("stt what time is it, face happy, tts start, sentence By text., 14 packets, tts stop")
	})
}

// TestCaptions: sentences whose texts come long before their sound are shown one after the other, and all of them count as
// spoken; so does a text that comes after its sound.
func TestCaptions(t *testing.T) {
	for name, c := range map[string]struct {
		replies []agent.Reply
		want    string
	}{
		"before": {[]agent.Reply{agent.Say{Text: "The first sentence is here.", Sounds: true}, agent.Say{Text: "And the second is there.", Sounds: true},
			sound(600 * time.Millisecond), sound(600 * time.Millisecond), sound(600 * time.Millisecond), sound(600 * time.Millisecond)},
			"stt Hello., tts start, sentence The first sentence is here., 30 packets, sentence And the second is there., 10 packets, tts stop"},
		"after": {[]agent.Reply{sound(600 * time.Millisecond), agent.Say{Text: "Late.", Sounds: true}},
			"stt Hello., tts start, sentence , 10 packets, sentence Late., 1 packets, tts stop"},
	} {
		t.Run(name, func(t *testing.T) {
			mind := hearing(append(append([]agent.Reply{agent.Heard{Text: "Hello."}}, c.replies...), agent.Done{End: agent.Continue})...)
			talking(t, mind, func(k *talk) {
				k.channel.forget()
				k.listen(xiaozhi.Auto)
				k.speak()
				k.pass(6 * time.Second)
				k.wantStory(c.want)
				said := ""
				for _, r := range c.replies {
					if s, is := r.(agent.Say); is {
						said = strings.TrimSpace(said + " " + s.Text)
					}
				}
				if e := k.mind.remembered; len(e) != 1 || e[0].Said != said {
					t.Errorf("remembered %+v, want %q", e, said)
				}
			})
		})
	}
}
