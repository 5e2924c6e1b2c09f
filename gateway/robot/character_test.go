package robot

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/agent"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/must"
	"perch/voice"
)

// asked is a recognizer and a synthesizer that records the options of its calls.
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

// with returns the options of the calls that synthesize a text.
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

// TestCharacterOfARobot checks that a robot's character sets the language of recognition, the voice, also of the
// phrases, and the name for the agent, and that a change applies from the next turn on.
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
		ownGreeting, usualGreeting := own.Speech, usual
		ownGreeting.Emotion, usualGreeting.Emotion = "neutral", "neutral"
		if got := engines.with("Yes?"); !slices.Contains(got, ownGreeting) || !slices.Contains(got, usualGreeting) || len(got) != 2 {
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

// TestSentencesAreSpokenWithTheFace checks that each sentence is synthesized with the face that it is shown with, in a
// reply, in a text with an emoji and in a phrase, and that a sentence is heard before the next is synthesized.
func TestSentencesAreSpokenWithTheFace(t *testing.T) {
	engines := &asked{beepSynthesizer: &beepSynthesizer{hurry: 10}}
	face := func(text string) string {
		options := engines.with(text)
		if len(options) != 1 {
			return "not once"
		}
		return options[0].Emotion
	}
	mind := &scriptedMind{answer: func(ctx context.Context, _ agent.Turn, out func(agent.Reply) error) error {
		_ = out(agent.Say{Text: "Hm."})
		_ = out(agent.Felt{Emotion: agent.Emotion{Name: "happy", Emoji: "😊"}})
		_ = out(agent.Say{Text: "I have won."})
		time.Sleep(5 * time.Second) // the model goes on slowly
		_ = out(agent.Say{Text: "And you too."})
		_ = out(agent.Felt{Emotion: agent.Emotion{Name: "sad", Emoji: "😢"}})
		_ = out(agent.Say{Text: "She has not."})
		return out(agent.Done{End: agent.Continue})
	}}
	talking(t, mind, func(k *talk) {
		k.hears(xiaozhi.Auto, "who has won")
		k.pass(2 * time.Second)
		if story := k.channel.story(); !strings.Contains(story, "sentence I have won., 2") || len(engines.with("And you too.")) > 0 {
			t.Errorf("before the second sentence: %s", story)
		}
		k.pass(10 * time.Second)
		for text, want := range map[string]string{"Hm.": "", "I have won.": "happy", "And you too.": "happy", "She has not.": "sad"} {
			if got := face(text); got != want {
				t.Errorf("%q is spoken with the face %q, not %q", text, got, want)
			}
		}
		k.queueText("😠 Go away. Now.")
		k.pass(5 * time.Second)
		if face("Go away.") != "angry" || face("Now.") != "angry" || face("I am here.") != "laughing" {
			t.Errorf("%q, %q, %q", face("Go away."), face("Now."), face("I am here."))
		}
	}, func(o *Options) {
		o.Synthesizer = engines
		o.Phrases = func(_, name string) string {
			if name == dialogue.PhraseAwake {
				return "😆 I am here."
			}
			return ""
		}
	})
}

// TestACharacterThatNeitherSpeaksNorHears checks a character that is mute and deaf: no engine is used, and all of its
// texts are only shown. It says once in a session that it does not hear, and it answers texts.
func TestACharacterThatNeitherSpeaksNorHears(t *testing.T) {
	engines := &asked{scriptedRecognizer: &scriptedRecognizer{always: voice.Transcript{Text: "hallo"}}, beepSynthesizer: &beepSynthesizer{}}
	silent := voice.Options{Language: "en", Mute: true, Deaf: true}
	talking(t, mindSaying(agent.Say{Text: "I can read."}, agent.Done{End: agent.Continue}), func(k *talk) {
		for range 2 {
			k.answers()
			k.pass(10 * time.Second)
		}
		must.Succeed(k.t, k.server.InjectText(k.t.Context(), robotID, "hello"))
		k.pass(10 * time.Second)
		k.queueText("Tea is ready.")
		k.pass(10 * time.Second)
		var shown []string
		for _, e := range k.envelopes() {
			switch e := e.Event.(type) {
			case event.Said:
				shown = append(shown, e.Text)
			case event.Heard:
				shown = append(shown, "heard "+e.Text)
			}
		}
		if got, want := strings.Join(shown, "|"), "I do not hear.|heard hello|I can read.|Tea is ready."; got != want {
			t.Errorf("there is %q, not %q", got, want)
		}
		if with := append(engines.with("I do not hear."), engines.with("I can read.")...); len(engines.heard)+len(with)+len(engines.with("Tea is ready.")) > 0 {
			t.Errorf("engines are asked to hear %v and to say %v", engines.heard, engines.texts)
		}
	}, func(o *Options) {
		o.Recognizer, o.Synthesizer = voice.Recognizers{engines}, voice.Synthesizers{engines}
		o.Phrases = func(_, name string) string {
			if name == phraseUnhearing {
				return "I do not hear."
			}
			return ""
		}
		o.Character = func(device.ID) Character { return Character{Speech: silent} }
	})
}

// TestAMuteCharacterIsNotHeard checks that a mute character plays no sound, not even a phrase that was synthesized ahead
// in the default voice, which is used if there are too many voices.
func TestAMuteCharacterIsNotHeard(t *testing.T) {
	for _, mute := range []bool{false, true} {
		character := Character{Speech: voice.Options{Language: "en"}}
		talking(t, mindSaying(agent.Done{}), func(k *talk) {
			for i := range maxVoices {
				k.server.phrases.forVoice(voice.Options{Voice: string(rune('a' + i))})
			}
			k.server.phrases.Prepare()
			k.pass(5 * time.Second)
			character.Speech.Mute = mute
			k.answers()
			k.pass(20 * time.Second)
			decoder := must.Value(voice.NewDecoder(voice.SpeakerRate))(k.t)
			level, words := 0.0, ""
			for _, s := range k.channel.all() {
				if m, is := s.message.(xiaozhi.SentenceStart); is {
					words += m.Text
				}
				if s.message == nil {
					level = max(level, voice.Level(must.Value(decoder.Decode(s.audio.Opus))(k.t)))
				}
			}
			if words != "Pardon?" || (level > 0) == mute {
				t.Errorf("mute %t: %q is shown, and the level of the sound is %f", mute, words, level)
			}
		}, func(o *Options) {
			o.Recognizer = &scriptedRecognizer{always: voice.Transcript{Refused: true}}
			o.Synthesizer = voice.Synthesizers{&beepSynthesizer{}}
			o.Phrases = func(_, name string) string { return map[string]string{phraseMisheard: "Pardon?"}[name] }
			o.Character = func(device.ID) Character { return character }
		})
	}
}

// TestVoicesAreBounded checks that at most maxVoices voices get a phrasebook, and that others use that of the default
// voice.
func TestVoicesAreBounded(t *testing.T) {
	talking(t, mindSaying(agent.Done{}), func(k *talk) {
		for i := range 10 * maxVoices {
			k.server.phrases.forVoice(voice.Options{Voice: string(rune('a' + i))})
		}
		if n := len(k.server.phrases.others); n != maxVoices {
			t.Errorf("%d voices", n)
		}
		if b := k.server.phrases.forVoice(voice.Options{Voice: "another"}); b != k.server.phrases.defaultVoice {
			t.Error("one more has a book of its own")
		}
	})
}
