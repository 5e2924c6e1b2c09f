package robot

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/device/xiaozhi"
)

// TestAMicrophoneThatOpensWhileWeBegin does not interrupt what we tell by
// ourselves, be it begun to sound or not.
func TestAMicrophoneThatOpensWhileWeBegin(t *testing.T) {
	const text = "A word or two." // 1.4 s
	for name, c := range map[string]struct {
		slow  time.Duration // the synthesizer
		after time.Duration
		mode  xiaozhi.Mode
		abort bool
		want  string // sent from then on
	}{
		"at once":               {0, 0, xiaozhi.Auto, false, "tts start, sentence " + text + ", tts stop"},
		"in realtime":           {0, time.Second, xiaozhi.Realtime, false, "tts start, sentence " + text + ", tts stop"},
		"before it sounds":      {time.Second, 500 * time.Millisecond, xiaozhi.Auto, false, "tts start, sentence " + text + ", tts stop"},
		"late":                  {900 * time.Millisecond, 2100 * time.Millisecond, xiaozhi.Auto, false, "tts stop"},
		"a button":              {0, 500 * time.Millisecond, xiaozhi.Manual, false, "tts stop"},
		"who has aborted first": {0, 500 * time.Millisecond, xiaozhi.Auto, true, "tts stop"},
	} {
		t.Run(name, func(t *testing.T) {
			talking(t, answer(), func(k *talk) {
				k.mouth.delay = c.slow
				k.say(xiaozhi.Event{Name: "face_detected", Data: []byte("{}")})
				if _, err := k.server.Say(k.t.Context(), robotID, text); err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.after)
				synctest.Wait()
				k.line.forget()
				k.happened()
				if c.abort {
					k.say(xiaozhi.Abort{})
				}
				k.say(xiaozhi.ListenDetect{Text: "face"})
				k.listen(c.mode)
				time.Sleep(4 * time.Second)
				synctest.Wait()
				var sent []string
				for _, s := range k.line.all() {
					if s.message != nil {
						sent = append(sent, inWords(s.message))
					}
				}
				if got := strings.Join(sent, ", "); got != c.want {
					t.Errorf("sent %s, want %s", got, c.want)
				}
				happened := k.happened()
				if heard := slices.Contains(happened, "listening_started"); heard != (c.mode != xiaozhi.Auto || c.want == "tts stop") {
					t.Errorf("happened %v", happened)
				}
			})
		})
	}
}

// TestAnAnswerIsInterrupted at any time.
func TestAnAnswerIsInterrupted(t *testing.T) {
	talking(t, answer(strings.Repeat("word ", 20)), func(k *talk) {
		k.ears.transcripts = understood("x")
		k.listen(xiaozhi.Auto)
		k.speak()
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		k.line.forget()
		k.listen(xiaozhi.Auto)
		time.Sleep(time.Second)
		k.wantStory("tts stop")
	})
}

// TestAnAbortBeforeWeBegin: who then opens the microphone wants to speak.
func TestAnAbortBeforeWeBegin(t *testing.T) {
	talking(t, answer(), func(k *talk) {
		k.say(xiaozhi.Event{Name: "face_detected", Data: []byte("{}")})
		k.line.forget()
		k.say(xiaozhi.Abort{Reason: xiaozhi.WakeWord})
		if err := k.play("song"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		k.listen(xiaozhi.Auto)
		time.Sleep(time.Second)
		k.wantStory("tts stop, tts start, sentence , tts stop")
	})
}
