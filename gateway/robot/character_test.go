package robot

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/robot/dialogue"
	"perch/voice"
)

// asked notes with which options engines are asked.
type asked struct {
	*scriptedRecognizer
	*beepSynthesizer
	mu          sync.Mutex
	heard, said []voice.Options
	texts       []string
}

func (*asked) Name() string { return "asked" }

func (a *asked) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	a.mu.Lock()
	a.heard = append(a.heard, o)
	a.mu.Unlock()
	return a.scriptedRecognizer.Recognize(ctx, u, o)
}

func (a *asked) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	a.mu.Lock()
	a.said, a.texts = append(a.said, o), append(a.texts, text)
	a.mu.Unlock()
	return a.beepSynthesizer.Synthesize(ctx, text, o, out)
}

// with are the options with which a text was to be said.
func (a *asked) with(text string) (all []voice.Options) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, t := range a.texts {
		if t == text {
			all = append(all, a.said[i])
		}
	}
	return all
}

// TestCharacterOfARobot: it is heard in its language and speaks with its voice,
// the appliance's own sentences too, and its agent gets its name. What is changed
// holds from its next turn on.
func TestCharacterOfARobot(t *testing.T) {
	engines := &asked{scriptedRecognizer: &scriptedRecognizer{always: voice.Transcript{Text: "hallo"}}, beepSynthesizer: &beepSynthesizer{hurry: 10}}
	var turns []agent.Turn
	mind := &scriptedMind{answer: func(_ context.Context, turn agent.Turn, out func(agent.Reply) error) error {
		turns = append(turns, turn)
		_ = out(agent.Say{Text: "Ja."})
		return out(agent.Done{End: agent.Continue})
	}}
	cook := agent.Persona{Name: "Cook"}
	own := Character{Speech: voice.Options{Language: "de", Voice: "thorsten"}, Persona: &cook, Name: "kitchen", Brain: "openai 2"}
	var mu sync.Mutex
	usual := voice.Options{Language: "en"}
	talking(t, mind, func(k *talk) {
		k.answers()
		k.pass(3 * time.Second)
		if len(turns) != 1 || turns[0].Language != "de" || turns[0].Name != "kitchen" || turns[0].Brain != "openai 2" || turns[0].Persona != &cook {
			t.Errorf("the mind was given %+v", turns)
		}
		if len(engines.heard) != 1 || engines.heard[0] != (voice.Options{Language: "de", Voice: "thorsten"}) {
			t.Errorf("heard with %+v", engines.heard)
		}
		if got := engines.with("Ja."); len(got) != 1 || got[0] != own.Speech {
			t.Errorf("said with %+v", got)
		}
		if got := engines.with("Yes?"); !slices.Contains(got, own.Speech) || !slices.Contains(got, usual) || len(got) != 2 {
			t.Errorf("the greeting is made with %+v", got)
		}
		mu.Lock()
		own = Character{Speech: voice.Options{Language: "fr"}}
		mu.Unlock()
		k.answers()
		k.pass(3 * time.Second)
		if len(turns) != 2 || turns[1].Language != "fr" || turns[1].Persona != nil || turns[1].Name != "" {
			t.Errorf("after a change: %+v", turns)
		}
		if got := engines.with("Ja."); len(got) != 2 || got[1] != own.Speech {
			t.Errorf("after a change said with %+v", got)
		}
	}, func(o *Options) {
		o.Recognizer, o.Synthesizer, o.Speech = engines, engines, usual
		o.Phrases = func(_, name string) string {
			if name == dialogue.PhraseAwake {
				return "Yes?"
			}
			return ""
		}
		o.Character = func(id device.ID) Character {
			mu.Lock()
			defer mu.Unlock()
			if id != robotID {
				t.Errorf("asked for %s", id)
			}
			return own
		}
	})
}

// TestVoicesAreBounded: the appliance's own sentences are made for so many voices,
// and in the configured one for others.
func TestVoicesAreBounded(t *testing.T) {
	talking(t, mindSaying(agent.Done{}), func(k *talk) {
		for i := range 10 * maxVoices {
			k.server.phrases.forVoice(voice.Options{Voice: string(rune('a' + i))})
		}
		if n := len(k.server.phrases.others); n != maxVoices {
			t.Errorf("%d voices", n)
		}
		if b := k.server.phrases.forVoice(voice.Options{Voice: "another"}); b != k.server.phrases.usual {
			t.Error("one more has a book of its own")
		}
	})
}
