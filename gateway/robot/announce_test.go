package robot

import (
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent/notice"
	"perch/device/xiaozhi"
)

// TestAMicrophoneThatOpensWhileWeBegin does not interrupt what we say by
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
		"late, and aborted":     {900 * time.Millisecond, 2100 * time.Millisecond, xiaozhi.Auto, true, "tts stop"},
		"a button":              {0, 500 * time.Millisecond, xiaozhi.Manual, false, "tts stop"},
		"who has aborted first": {0, 500 * time.Millisecond, xiaozhi.Auto, true, "tts stop"},
	} {
		t.Run(name, func(t *testing.T) {
			talking(t, answer(), func(k *talk) {
				k.synthesizer.delay = c.slow
				k.say(xiaozhi.Event{Name: "face_detected", Data: []byte("{}")})
				k.queueText(text)
				k.pass(c.after)
				k.channel.forget()
				k.happened()
				if c.abort {
					k.say(xiaozhi.Abort{})
				}
				k.say(xiaozhi.ListenDetect{Text: "face"})
				k.listen(c.mode)
				k.pass(4 * time.Second)
				var sent []string
				for _, s := range k.channel.all() {
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

// TestAnAnswerIsInterrupted at any time by an abort or a button. A microphone
// alone says nothing of the kind: there are clients that open it with each
// sentence they speak.
func TestAnAnswerIsInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		abort bool
		mode  xiaozhi.Mode
		stops bool
	}{
		"abort":    {true, xiaozhi.Auto, true},
		"button":   {false, xiaozhi.Manual, true},
		"auto":     {false, xiaozhi.Auto, false},
		"realtime": {false, xiaozhi.Realtime, false},
	} {
		t.Run(name, func(t *testing.T) {
			talking(t, answer(strings.Repeat("word ", 20)), func(k *talk) {
				k.hears(xiaozhi.Auto, "x")
				k.pass(500 * time.Millisecond)
				k.channel.forget()
				if c.abort {
					k.say(xiaozhi.Abort{})
				}
				k.listen(c.mode)
				k.pass(time.Second)
				if stopped := strings.Contains(k.channel.story(), "tts stop"); stopped != c.stops {
					t.Errorf("sent %s", k.channel.story())
				}
			})
		})
	}
}

// TestTheTimeIsFromTheSound: what a robot still plays of something cut off comes
// before the begin of what is spoken next.
func TestTheTimeIsFromTheSound(t *testing.T) {
	talking(t, answer(), func(k *talk) {
		k.listen(xiaozhi.Auto)
		if err := k.play("song"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		err := k.server.Announce(k.t.Context(), robotID, notice.Announcement{ID: "n", Text: strings.Repeat("fire ", 10), Speak: true, Urgent: true})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(unsolicitedFor + 200*time.Millisecond)
		k.listen(xiaozhi.Auto)
		time.Sleep(5 * time.Second)
		want := []string{"robot_online", "listening_started", "sound_started", "sound_ended", "speaking_started", "notification_changed", "said",
			"turn_ended", "notification_changed"}
		if happened := k.happened(); !slices.Equal(happened, want) {
			t.Errorf("happened %v, want %v", happened, want)
		}
	})
}

// TestStartAgain: only a robot that is to speak is sent tts start once more, or nothing
// would stop it.
func TestStartAgain(t *testing.T) {
	p := newPlayback(make(chan struct{}, 1))
	again := func(want bool) {
		t.Helper()
		p.restartSpeech()
		if got := p.restart(); got != want || p.restart() {
			t.Errorf("sent %v, want %v, and once", got, want)
		}
	}
	again(false)
	p.speak()
	again(true)
	p.silent()
	again(false)
}
