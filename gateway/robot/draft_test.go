package robot

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/store/storetest"
	"perch/voice"
)

// thoughtful is a brain that drafts. It thinks for a while, says "Well." and then runs a tool of the robot.
type thoughtful struct {
	thinks time.Duration
	billed bool // does not draft
	asks   bool // asks a question first

	mu    sync.Mutex
	texts []string
	left  atomic.Int32 // turns that were cancelled
	acted atomic.Int32
}

func (*thoughtful) Name() string { return "thoughtful" }

func (b *thoughtful) Drafts() bool { return !b.billed }

// asked returns the texts of the turns so far.
func (b *thoughtful) asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.texts)
}

func (b *thoughtful) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) (err error) {
	b.mu.Lock()
	b.texts = append(b.texts, t.Text)
	b.mu.Unlock()
	defer func() {
		if ctx.Err() != nil {
			b.left.Add(1)
		}
	}()
	select {
	case <-time.After(b.thinks):
	case <-ctx.Done():
		return ctx.Err()
	}
	if b.asks {
		if err := out(agent.Ask{ID: "q", Text: "May I?", Within: 10 * time.Second, Answer: func(agent.Answer) {}}); err != nil {
			return err
		}
	}
	if err := out(agent.Say{Text: "Well."}); err != nil {
		return err
	}
	if err := t.Settle(ctx); err != nil {
		return err
	}
	b.acted.Add(1)
	return out(agent.Done{End: agent.Continue})
}

// drafted runs a test with a robot whose recognizer supposes the text "what time is it", and from 1.5 s on the text
// later. The synthesizer needs 200 ms for each sentence.
func drafted(t *testing.T, b *thoughtful, later string, do func(*talk), change ...func(*Options)) {
	mind := &scriptedMind{}
	talking(t, mind, func(k *talk) {
		k.synthesizer.delay = 200 * time.Millisecond
		k.recognizer.supposes = func(heard time.Duration) string {
			if heard < 2200*time.Millisecond {
				return "what time is it"
			}
			return later
		}
		k.channel.forget()
		k.happened()
		do(k)
	}, append([]func(*Options){func(o *Options) {
		o.SpeaksAhead = true
		mind.drafts = agent.NewMind(agent.Always(b), agent.NewMemory(&storetest.Table[agent.Entry]{}), o.Bus, slog.New(slog.DiscardHandler))
	}}, change...)...)
}

const wellSaid = "stt what time is it, tts start, sentence Well., 9 packets, tts stop"

// firstPacket returns the stage first_packet of the only turn, and reports an error if there was another number of turns.
func firstPacket(k *talk) (ms int64) {
	turns := 0
	for _, e := range k.envelopes() {
		if ended, is := e.Event.(event.TurnEnded); is {
			turns++
			ms = ended.Stages[event.StageFirstPacket]
		}
	}
	if turns != 1 {
		k.t.Errorf("%d turns", turns)
	}
	return ms
}

// TestAnAnswerBeginsInThePause checks how long people wait for the first sound: with a draft, the brain and the
// synthesizer work while the silence passes that ends the utterance.
func TestAnAnswerBeginsInThePause(t *testing.T) {
	silent := func(o *Options) { o.SpeaksAhead = false }
	unfinished := func(o *Options) { o.Ending = func(string, string, bool) voice.Ending { return voice.Unfinished } }
	for name, c := range map[string]struct {
		brain       *thoughtful
		change      func(*Options)
		least, most int64 // milliseconds from the end of the speech to the first sound
	}{
		"both are done in the pause":         {&thoughtful{thinks: 100 * time.Millisecond}, nil, 600, 690},
		"the synthesizer is not":             {&thoughtful{thinks: 300 * time.Millisecond}, nil, 740, 830},
		"the brain is not":                   {&thoughtful{thinks: 500 * time.Millisecond}, nil, 940, 1030},
		"the synthesizer may be billed":      {&thoughtful{thinks: 300 * time.Millisecond}, silent, 800, 890},
		"the brain may be billed":            {&thoughtful{thinks: 300 * time.Millisecond, billed: true}, nil, 1100, 1190},
		"a stranger":                         {&thoughtful{thinks: 300 * time.Millisecond}, strangers, 1100, 1190},
		"the sentence needs more words":      {&thoughtful{thinks: 300 * time.Millisecond}, unfinished, 2300, 2390},
		"the brain is slower than the pause": {&thoughtful{thinks: 2 * time.Second}, nil, 2440, 2530},
	} {
		t.Run(name, func(t *testing.T) {
			drafted(t, c.brain, "what time is it", func(k *talk) {
				k.hears(xiaozhi.Auto, "what time is it")
				k.quiet(1500 * time.Millisecond)
				k.pass(5 * time.Second)
				k.wantStory(wellSaid)
				if ms := firstPacket(k); ms < c.least || ms > c.most {
					t.Errorf("first sound after %d ms, want %d to %d", ms, c.least, c.most)
				}
				if len(c.brain.asked()) != 1 || c.brain.acted.Load() != 1 {
					t.Errorf("asked %q, acted %d times", c.brain.asked(), c.brain.acted.Load())
				}
				if m := k.mind.remembered; len(m) != 1 || m[0].Said != "Well." {
					t.Errorf("remembered %v", m)
				}
			}, func(o *Options) {
				if c.change != nil {
					c.change(o)
				}
			})
		})
	}
}

// TestNothingHappensBeforeTheEnd checks that a draft is not seen: nothing is sent or published, and no tool runs, until
// the silence is long enough.
func TestNothingHappensBeforeTheEnd(t *testing.T) {
	b := &thoughtful{thinks: 50 * time.Millisecond}
	drafted(t, b, "what time is it", func(k *talk) {
		k.listen(xiaozhi.Auto)
		k.someWords()
		k.quiet(540 * time.Millisecond)
		if len(b.asked()) != 1 {
			t.Errorf("asked %q in the pause", b.asked())
		}
		k.wantStory("")
		if kinds := k.happened(); b.acted.Load() > 0 || slices.Contains(kinds, "thinking_started") {
			t.Errorf("before the end: %q, acted %d times", kinds, b.acted.Load())
		}
	})
}

// TestADraftIsTakenBack checks that nothing is left of a draft if the person goes on, or if the words turn out to be
// others: one turn, one exchange, and what the brain does it does once, for the whole sentence.
func TestADraftIsTakenBack(t *testing.T) {
	const whole = "what time is it in Tokyo"
	for name, speak := range map[string]func(*talk){
		"the person goes on": func(k *talk) {
			k.listen(xiaozhi.Auto)
			k.someWords()
			k.quiet(420 * time.Millisecond)
			k.someWords()
		},
		"the words change at the end": func(k *talk) {
			k.recognizer.supposes = func(time.Duration) string { return "what time is it" }
			k.listen(xiaozhi.Auto)
			k.someWords()
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &thoughtful{thinks: 50 * time.Millisecond}
			drafted(t, b, whole, func(k *talk) {
				k.recognizer.transcripts = understood(whole)
				speak(k)
				k.quiet(900 * time.Millisecond)
				k.pass(5 * time.Second)
				k.wantStory(strings.Replace(wellSaid, "what time is it", whole, 1))
				if b.asked()[0] != "what time is it" || b.asked()[len(b.asked())-1] != whole || b.acted.Load() != 1 || b.left.Load() != 1 {
					t.Errorf("asked %q, acted %d times, left %d times", b.asked(), b.acted.Load(), b.left.Load())
				}
				if m := k.mind.remembered; len(m) != 1 || m[0] != (agent.Exchange{Heard: whole, Said: "Well."}) {
					t.Errorf("remembered %v", m)
				}
				thought := 0
				for _, e := range k.envelopes() {
					if _, is := e.Event.(event.ThinkingStarted); is {
						thought++
					}
				}
				if turn := k.turns.Last; thought != 1 || turn.Heard != whole {
					t.Errorf("thought %d times, kept %+v", thought, turn)
				}
			})
		})
	}
}

// TestADraftEndsWithItsTurn checks that a draft ends without effects if the utterance is not answered.
func TestADraftEndsWithItsTurn(t *testing.T) {
	for name, end := range map[string]func(*talk){
		"nothing was understood": func(k *talk) {
			k.recognizer.always = voice.Transcript{Refused: true}
			k.quiet(900 * time.Millisecond)
		},
		"the recognizer fails":  func(k *talk) { k.recognizer.err = voice.ErrUnavailable; k.quiet(900 * time.Millisecond) },
		"the robot goes away":   func(k *talk) { k.leave() },
		"the person goes on":    func(k *talk) { k.someWords() },
		"the turn is cancelled": func(k *talk) { k.say(xiaozhi.Abort{}) },
		"the server stops":      func(k *talk) { k.server.Close() },
	} {
		for _, thinks := range []time.Duration{0, time.Hour} {
			t.Run(name+" after "+thinks.String(), func(t *testing.T) {
				b := &thoughtful{thinks: thinks}
				drafted(t, b, "what time is it", func(k *talk) {
					k.listen(xiaozhi.Auto)
					k.someWords()
					k.quiet(420 * time.Millisecond)
					end(k)
					k.pass(time.Millisecond)
					if len(b.asked()) != 1 || b.left.Load() != 1 || b.acted.Load() > 0 || len(k.mind.remembered) > 0 || slices.Contains(k.happened(), "thinking_started") {
						t.Errorf("asked %q, left %d times, acted %d times, remembered %v", b.asked(), b.left.Load(), b.acted.Load(), k.mind.remembered)
					}
				})
			})
		}
	}
}

// TestADraftUsesItsOwnEngines checks that no answer is drafted if the options have changed since the turn began.
func TestADraftUsesItsOwnEngines(t *testing.T) {
	b := &thoughtful{}
	drafted(t, b, "what time is it", func(k *talk) {
		k.recognizer.transcripts = understood("what time is it")
		k.listen(xiaozhi.Auto)
		k.someWords()
		k.server.Apply(testOptions(k.robots, k.bus, k.mind))
		k.quiet(420 * time.Millisecond)
		if len(b.asked()) > 0 {
			t.Errorf("asked %q", b.asked())
		}
		k.quiet(900 * time.Millisecond)
		k.pass(5 * time.Second)
		k.wantStory(wellSaid)
	})
}

// TestTheAnswerToAQuestionIsNotDrafted checks that the brain that has asked gets the answer, and no other turn begins.
func TestTheAnswerToAQuestionIsNotDrafted(t *testing.T) {
	b := &thoughtful{asks: true}
	drafted(t, b, "what time is it", func(k *talk) {
		k.hears(xiaozhi.Auto, "what time is it", "yes")
		k.pass(time.Second)
		k.answers()
		k.pass(5 * time.Second)
		if len(b.asked()) != 1 || b.acted.Load() != 1 || len(k.recognizer.durations) != 2 {
			t.Errorf("asked %q, acted %d times, recognized %v", b.asked(), b.acted.Load(), k.recognizer.durations)
		}
	})
}

// TestTheNextPauseHasItsOwnDraft checks that the pause at the end has a draft, although an earlier draft was taken back.
func TestTheNextPauseHasItsOwnDraft(t *testing.T) {
	b := &thoughtful{thinks: 300 * time.Millisecond}
	drafted(t, b, "what time is it in Tokyo", func(k *talk) {
		k.recognizer.transcripts = understood("what time is it in Tokyo")
		k.listen(xiaozhi.Auto)
		k.someWords()
		k.quiet(420 * time.Millisecond)
		k.speak()
		k.pass(5 * time.Second)
		if ms := firstPacket(k); ms > 830 || len(b.asked()) != 2 {
			t.Errorf("first sound after %d ms, asked %q", ms, b.asked())
		}
	})
}
