package robot

import (
	"context"
	"slices"
	"testing"
	"time"

	"perch/device/xiaozhi"
	"perch/event"
	"perch/voice"
)

// TestSilenceDependsOnTheSentence checks the length of the silence that ends an utterance.
func TestSilenceDependsOnTheSentence(t *testing.T) {
	always := func(text string) func(time.Duration) string { return func(time.Duration) string { return text } }
	changing := func(heard time.Duration) string {
		return []string{"what", "what time is it"}[heard/(120*time.Millisecond)%2]
	}
	ours := func(*Options) {}
	for name, c := range map[string]struct {
		mode     xiaozhi.Mode
		supposes func(time.Duration) string
		want     int64 // milliseconds
		change   func(*Options)
	}{
		"a whole sentence":            {xiaozhi.Auto, always("what time is it"), 500, ours},
		"in realtime":                 {xiaozhi.Realtime, always("what time is it"), 500, ours},
		"something may follow":        {xiaozhi.Auto, always("set the volume to twenty"), 600, ours},
		"something must follow":       {xiaozhi.Auto, always("set the volume to"), 1800, ours},
		"nothing is supposed":         {xiaozhi.Auto, nil, 600, ours},
		"nothing yet":                 {xiaozhi.Auto, always(""), 600, ours},
		"the recognizer is undecided": {xiaozhi.Auto, changing, 600, ours},
		// A stranger's utterance always needs the full silence.
		"a stranger":             {xiaozhi.Auto, always("what time is it"), 600, strangers},
		"a stranger in realtime": {xiaozhi.Realtime, always("what time is it"), 600, strangers},
	} {
		t.Run(name, func(t *testing.T) {
			talking(t, answer("Late."), func(k *talk) {
				k.recognizer.supposes = c.supposes
				k.hears(c.mode, "what time is it")
				k.quiet(time.Second)
				k.pass(3 * time.Second)
				for _, e := range k.envelopes() {
					if ended, is := e.Event.(event.TurnEnded); is {
						if got := ended.Stages[event.StageEndpoint]; got < c.want || got > c.want+60 {
							t.Errorf("quiet for %d ms, want %d and a packet at most", got, c.want)
						}
						return
					}
				}
				t.Error("no turn has ended")
			}, c.change, func(o *Options) {
				o.Ending = func(text, _ string, _ bool) voice.Ending {
					return map[string]voice.Ending{"what time is it": voice.Whole, "set the volume to": voice.Unfinished}[text]
				}
			})
		})
	}
	t.Run("what was heard so far", func(t *testing.T) {
		talking(t, answer("Late."), func(k *talk) {
			k.recognizer.supposes = func(heard time.Duration) string {
				if heard < time.Second {
					return "what"
				}
				return "what time"
			}
			for range 2 {
				k.hears(xiaozhi.Auto, "what time is it")
				k.pass(3 * time.Second)
			}
			var got []string
			for _, e := range k.envelopes() {
				switch e := e.Event.(type) {
				case event.Hearing:
					got = append(got, e.Text+"...")
				case event.Heard:
					got = append(got, e.Text)
				}
			}
			once := []string{"what...", "what time...", "what time is it"}
			if !slices.Equal(got, slices.Concat(once, once)) {
				t.Errorf("heard %q", got)
			}
		}, ours)
	})
	t.Run("push to talk", func(t *testing.T) {
		talking(t, answer("Late."), func(k *talk) {
			k.recognizer.supposes = always("what time is it")
			k.hears(xiaozhi.Manual, "what time is it")
			if len(k.recognizer.durations) != 0 {
				t.Errorf("recognized before the button was let go: %v", k.recognizer.durations)
			}
			k.say(xiaozhi.ListenStop{})
			k.pass(2 * time.Second)
			if len(k.recognizer.durations) != 1 {
				t.Errorf("recognized %v", k.recognizer.durations)
			}
		}, func(o *Options) { o.Ending = func(string, string, bool) voice.Ending { return voice.Answered } })
	})
}

// earlyRecognizer needs 300 ms after the end of an utterance, or after the pause that becomes its end.
type earlyRecognizer struct{}

func (earlyRecognizer) Name() string { return "early" }

func (earlyRecognizer) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	return voice.RecognizeEarly(ctx, u, o, func(ctx context.Context, u *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
		if err := u.Wait(ctx); err != nil {
			return voice.Transcript{}, err
		}
		time.Sleep(300 * time.Millisecond)
		return voice.Transcript{Text: "what time is it"}, ctx.Err()
	})
}

// TestRecognitionBeginsBeforeTheUtteranceEnds checks that an utterance is recognized in the silence that ends it. A stranger's
// is not.
func TestRecognitionBeginsBeforeTheUtteranceEnds(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   int64 // milliseconds
	}{"adopted": {func(*Options) {}, 0}, "a stranger": {strangers, 300}} {
		t.Run(name, func(t *testing.T) {
			talking(t, answer("Late."), func(k *talk) {
				k.hears(xiaozhi.Auto)
				k.pass(3 * time.Second)
				for _, e := range k.envelopes() {
					if ended, is := e.Event.(event.TurnEnded); is && ended.Stages[event.StageRecognize] == c.want {
						return
					}
				}
				t.Errorf("no turn took %d ms for recognition: %v", c.want, k.envelopes())
			}, c.change, func(o *Options) { o.Recognizer = earlyRecognizer{} })
		})
	}
}
