package robot

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/voice"
)

// TestAsk checks the ways to answer the agent's question, and that an answer does not cancel the turn.
func TestAsk(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*talk)
		want agent.Answer
	}{
		"words that are not understood, then a touch": {func(k *talk) {
			k.recognizer.transcripts = []voice.Transcript{{Refused: true}}
			k.answers()
			k.touch()
		}, agent.Answer{Outcome: agent.AnswerTouch}},
		"its owner, elsewhere": {func(k *talk) {
			k.replies("another", true, agent.ErrNoQuestion) // an answer to no question
			open := k.server.Questions()
			if len(open) != 1 || open[0].Text != "May I?" || open[0].Robot != robotID || open[0].Until.Sub(open[0].Asked) != 10*time.Second {
				k.t.Fatalf("what waits: %+v", open)
			}
			k.replies(open[0].ID, false, nil)
			synctest.Wait()
			k.replies("q0", true, agent.ErrNoQuestion) // a second answer
		}, agent.Answer{Outcome: agent.AnswerDenied}},
		"an abort, before the words are recognized": {func(k *talk) {
			k.recognizer.delay = 2 * time.Second // like a C function that cannot be cancelled
			k.answers()
			k.say(xiaozhi.Abort{})
		}, agent.Answer{Outcome: agent.AnswerClosed}},
		"a button that is pressed twice and released never": {func(k *talk) {
			k.recognizer.transcripts = []voice.Transcript{{Refused: true}, {Refused: true}}
			k.listen(xiaozhi.Manual)
			k.speak()
			k.listen(xiaozhi.Manual)
			k.speak()
			time.Sleep(10 * time.Second)
		}, agent.Answer{Outcome: agent.AnswerExpired}},
		"a closed channel": {func(k *talk) {
			k.channel.Close(1000, "")
			synctest.Wait()
		}, agent.Answer{Outcome: agent.AnswerClosed}},
	} {
		t.Run(name, func(t *testing.T) {
			var answers []agent.Answer
			talking(t, asking(&answers, 1), func(k *talk) {
				k.hears(xiaozhi.Auto, "delete it", "yes please")
				time.Sleep(2 * time.Second)
				k.wantStory("hello, stt delete it, tts start, sentence May I?, 10 packets, tts stop")
				c.do(k)
				k.pass(3 * time.Second)
				if !reflect.DeepEqual(answers, []agent.Answer{c.want}) {
					t.Errorf("answered %+v, want %+v", answers, c.want)
				}
				if c.want.Outcome != agent.AnswerClosed && !strings.HasSuffix(k.channel.story(), "tts start, sentence Good., 9 packets, tts stop") {
					t.Errorf("sent %s", k.channel.story())
				}
			})
		})
	}
}

// longWinded is a sentence of 5 s that a mind says before its question.
const longWinded = "long long long long long long long long long long "

// TestNoConsentBeforeTheQuestion checks that a touch or spoken words before the question can be heard do not answer it.
func TestNoConsentBeforeTheQuestion(t *testing.T) {
	for name, do := range map[string]func(*talk){
		"a touch": func(k *talk) {
			k.touch()
			k.pass(time.Second)
		},
		"an okay": func(k *talk) {
			k.answers()
			k.pass(3 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var answers []agent.Answer
			talking(t, asking(&answers, 1, longWinded), func(k *talk) {
				k.hears(xiaozhi.Auto, "clean up", "okay")
				time.Sleep(2 * time.Second)
				if strings.Contains(k.channel.story(), "May I") {
					t.Fatalf("it has asked already: %s", k.channel.story())
				}
				do(k)
				for _, a := range answers {
					if a.Outcome == agent.AnswerTouch || a.Outcome == agent.AnswerGiven {
						t.Errorf("consent to a question that nobody has heard: %s", a.Outcome)
					}
				}
			})
		})
	}
}

// TestOwnersDenialIsNotLost checks that the owner's answer counts even while an utterance is being recognized, and that
// an utterance that the expiry of the question cuts off is no answer.
func TestOwnersDenialIsNotLost(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*talk)
		want agent.Outcome
	}{
		"a no from elsewhere": {func(k *talk) {
			k.recognizer.delay = 3 * time.Second
			k.speak()
			k.replies("q0", false, nil)
			k.replies("q0", true, agent.ErrNoQuestion) // a second answer of the owner
		}, agent.AnswerDenied},
		"time is over": {func(k *talk) {
			k.quiet(9 * time.Second)
			for range 3 {
				k.someWords()
			}
		}, agent.AnswerExpired},
	} {
		t.Run(name, func(t *testing.T) {
			var answers []agent.Answer
			talking(t, asking(&answers, 1, longWinded), func(k *talk) {
				k.hears(xiaozhi.Auto, "clean up", "yes", "yes", "yes")
				for !strings.HasSuffix(k.channel.story(), "tts stop") {
					time.Sleep(100 * time.Millisecond)
				}
				k.listen(xiaozhi.Auto)
				c.do(k)
				k.pass(5 * time.Second)
				if len(answers) != 1 || answers[0].Outcome != c.want {
					t.Errorf("answered %v, want %s", answers, c.want)
				}
			})
		})
	}
}

// TestASynthesizerThatFailsInASentence checks that a synthesizer that fails in a sentence cuts off that sentence, and
// that the turn continues.
func TestASynthesizerThatFailsInASentence(t *testing.T) {
	talking(t, answer("It is late.", "Go to bed."), func(k *talk) {
		k.hears(xiaozhi.Auto, "x")
		k.pass(10 * time.Second)
		if story := k.channel.story(); !strings.Contains(story, "sentence Go to bed.") || strings.Contains(story, "failed") {
			t.Errorf("sent %s", story)
		}
		if k.turns.Last.End != event.EndDone {
			t.Errorf("the turn ended %s", k.turns.Last.End)
		}
	}, func(o *Options) { o.Synthesizer = voice.Synthesizers{&failing{1000}, o.Synthesizer} })
}

// failing is a synthesizer that makes a quarter of a second of sound. It then fails, but not more often than times.
type failing struct{ times int }

func (*failing) Name() string { return "failing" }

func (s *failing) Synthesize(_ context.Context, _ string, _ voice.Options, out func([]int16) error) error {
	if err := out(make([]int16, voice.SpeakerRate/4)); err != nil {
		return err
	}
	if s.times--; s.times >= 0 {
		return voice.ErrUnavailable
	}
	return out(make([]int16, voice.SpeakerRate*2))
}

func TestPartialPhraseIsMadeAgain(t *testing.T) {
	var b phrasebook
	m := &failing{5}
	texts := func(string, string) string { return "I cannot think right now." }
	for range 3 {
		if b.claim() {
			b.prepare(t.Context(), texts, m, voice.Options{}, slog.New(slog.DiscardHandler))
		}
	}
	if p, _ := b.lookup(phraseAway); len(p.packets) != 38 {
		t.Errorf("%d packets are kept of 38", len(p.packets))
	}
}
