package robot

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/voice"
)

// given collects answers.
type given struct {
	mu  sync.Mutex
	all []agent.Answer
}

func (g *given) add(a agent.Answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, a)
}

func (g *given) outcomes() (all []agent.Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.all {
		all = append(all, a.Outcome)
	}
	return all
}

// explaining is a mind that speaks for 5 s before it asks.
func explaining(answers *given) *scriptedMind {
	return &scriptedMind{answer: func(_ context.Context, _ agent.Turn, out func(agent.Reply) error) error {
		err := out(agent.Say{Text: strings.Repeat("long ", 10)})
		if err == nil {
			err = out(agent.Ask{ID: "q", Text: "May I delete it?", Within: 10 * time.Second, Answer: answers.add})
		}
		if err != nil {
			return err
		}
		return errors.Join(out(agent.Say{Text: "Good."}), out(agent.Done{End: agent.Continue}))
	}}
}

// TestNobodyConsentsToWhatWasNotAsked: until the question can be heard a touch
// is a touch, and who opens the microphone interrupts.
func TestNobodyConsentsToWhatWasNotAsked(t *testing.T) {
	for name, do := range map[string]func(*talk){
		"a touch": func(k *talk) {
			k.say(xiaozhi.Event{Name: "head_pet_started", Data: []byte("{}")})
			time.Sleep(time.Second)
			synctest.Wait()
		},
		"an okay": func(k *talk) {
			k.listen(xiaozhi.Auto)
			k.speak()
			time.Sleep(3 * time.Second)
			synctest.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			var answers given
			talking(t, explaining(&answers), func(k *talk) {
				k.recognizer.transcripts = understood("clean up", "okay")
				k.listen(xiaozhi.Auto)
				k.speak()
				time.Sleep(2 * time.Second)
				if strings.Contains(k.channel.story(), "May I") {
					t.Fatalf("it has asked already: %s", k.channel.story())
				}
				do(k)
				for _, o := range answers.outcomes() {
					if o == agent.AnswerTouch || o == agent.AnswerGiven {
						t.Errorf("consent to a question that nobody has heard: %s", o)
					}
				}
				time.Sleep(20 * time.Second)
			})
		})
	}
}

// TestTheOwnersNoIsNotLost while what was spoken near the robot is recognized; and
// what is cut off by the end of the time is no answer.
func TestTheOwnersNoIsNotLost(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*talk)
		want agent.Outcome
	}{
		"a no from elsewhere": {func(k *talk) {
			k.recognizer.delay = 3 * time.Second
			k.speak()
			if err := k.server.Reply("q", false); err != nil {
				k.t.Error(err)
			}
			if err := k.server.Reply("q", true); !errors.Is(err, agent.ErrNoQuestion) {
				k.t.Errorf("a second word of the owner's: %v", err)
			}
		}, agent.AnswerDenied},
		"time is over": {func(k *talk) {
			k.quiet(9 * time.Second)
			for range 3 {
				for _, p := range k.packets {
					k.put(frame{audio: xiaozhi.Audio{Opus: p}})
					time.Sleep(60 * time.Millisecond)
				}
			}
		}, agent.AnswerExpired},
	} {
		t.Run(name, func(t *testing.T) {
			var answers given
			talking(t, explaining(&answers), func(k *talk) {
				k.recognizer.transcripts = understood("clean up", "yes", "yes", "yes")
				k.listen(xiaozhi.Auto)
				k.speak()
				for !strings.HasSuffix(k.channel.story(), "tts stop") {
					time.Sleep(100 * time.Millisecond)
				}
				k.listen(xiaozhi.Auto)
				c.do(k)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if got := answers.outcomes(); !slices.Equal(got, []agent.Outcome{c.want}) {
					t.Errorf("answered %v, want %s", got, c.want)
				}
				time.Sleep(20 * time.Second)
			})
		})
	}
}

// TestASynthesizerThatFailsInASentence costs the rest of that sentence, not the turn.
func TestASynthesizerThatFailsInASentence(t *testing.T) {
	mind := answer("It is late.", "Go to bed.")
	talking(t, mind, func(k *talk) {
		k.recognizer.transcripts = understood("x")
		k.channel.forget()
		k.listen(xiaozhi.Auto)
		k.speak()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if story := k.channel.story(); !strings.Contains(story, "sentence Go to bed.") || strings.Contains(story, "failed") {
			t.Errorf("sent %s", story)
		}
		if k.turns.Last.End != event.EndDone {
			t.Errorf("the turn ended %s", k.turns.Last.End)
		}
	}, func(o *Options) { o.Synthesizer = voice.Synthesizers{&halfway{}, o.Synthesizer} })
}

// halfway dies in the middle of its first sentence.
type halfway struct{ dead bool }

func (*halfway) Name() string { return "halfway" }

func (h *halfway) Synthesize(_ context.Context, _ string, _ voice.Options, out func([]int16) error) error {
	if h.dead {
		return voice.ErrUnavailable
	}
	h.dead = true
	return errors.Join(out(make([]int16, voice.SpeakerRate/2)), voice.ErrUnavailable)
}

// stumbling makes a quarter of a second of sound, and fails a few times.
type stumbling struct{ calls int }

func (*stumbling) Name() string { return "stumbling" }

func (s *stumbling) Synthesize(_ context.Context, _ string, _ voice.Options, out func([]int16) error) error {
	if err := out(make([]int16, voice.SpeakerRate/4)); err != nil {
		return err
	}
	if s.calls++; s.calls <= 5 {
		return voice.ErrUnavailable
	}
	return out(make([]int16, voice.SpeakerRate*2))
}

// TestHalfAPhraseIsNone: one that could not be made whole is made anew.
func TestHalfAPhraseIsNone(t *testing.T) {
	var b phrasebook
	m := &stumbling{}
	texts := func(string) string { return "I cannot think right now." }
	for range 3 {
		if b.begin() {
			b.prepare(t.Context(), texts, m, voice.Options{}, slog.New(slog.DiscardHandler))
		}
	}
	if p, _ := b.get(phraseAway); len(p.packets) != 38 {
		t.Errorf("%d packets are kept of 38", len(p.packets))
	}
}
