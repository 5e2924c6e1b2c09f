package robot

import (
	"slices"
	"strings"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device/xiaozhi"
	"perch/must"
	"perch/voice"
)

// TestGraceCountsFromTheSound checks that unsolicitedFor begins when the announcement is sent, not while the robot still
// plays the end of the sound that was cut off.
func TestGraceCountsFromTheSound(t *testing.T) {
	talking(t, answer(), func(k *talk) {
		k.listen(xiaozhi.Auto)
		must.Succeed(t, k.play("song"))
		time.Sleep(3 * time.Second)
		err := k.server.Announce(k.t.Context(), robotID, notice.Announcement{ID: "n", Text: strings.Repeat("fire ", 10), Speak: true, Urgent: true})
		must.Succeed(t, err)
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

// sentences returns the sentences sent so far, and the time from since to the beginning of each.
func (l *fakeChannel) sentences(since time.Time) (texts []string, at []time.Duration) {
	for _, s := range l.all() {
		if m, ok := s.message.(xiaozhi.SentenceStart); ok {
			texts, at = append(texts, m.Text), append(at, s.at.Sub(since).Round(100*time.Millisecond))
		}
	}
	return texts, at
}

// TestOpenerSpeaksBeforeNews checks that a waiting notification is spoken after the first turn of the person who has woken
// the robot, or after yieldFor if nobody speaks. An urgent one, and one for a detected face, is spoken at once.
func TestOpenerSpeaksBeforeNews(t *testing.T) {
	wake := func(k *talk) { k.say(xiaozhi.ListenDetect{Text: "Hi, Stack Chan"}); k.listen(xiaozhi.Auto) }
	touch := func(k *talk) { k.listen(xiaozhi.Auto) }
	speaks := func(k *talk) {
		time.Sleep(time.Second)
		k.recognizer.transcripts = understood("what time is it")
		k.speak()
	}
	for name, c := range map[string]struct {
		opens, then func(*talk)
		urgent      bool
		first       string        // first sentence that is spoken
		from, to    time.Duration // when the notification is spoken
	}{
		"a wake word":         {wake, speaks, false, "It is late.", 3 * time.Second, 9 * time.Second},
		"a touch":             {touch, speaks, false, "It is late.", 3 * time.Second, 9 * time.Second},
		"a touch and no word": {touch, func(*talk) {}, false, "News.", yieldFor, yieldFor},
		"a wake word, urgent": {wake, speaks, true, "News.", 0, 0},
		"a face": {func(k *talk) { k.say(xiaozhi.ListenDetect{Text: "face"}); k.listen(xiaozhi.Auto) }, func(*talk) {},
			false, "News.", 0, 0},
		"nobody": {func(*talk) {}, func(*talk) {}, false, "News.", settleAfter, settleAfter},
		"an event before a wake word": {func(k *talk) { k.say(xiaozhi.Event{Name: "state_changed", Data: []byte("{}")}); wake(k) }, speaks, false,
			"It is late.", 3 * time.Second, 9 * time.Second},
		"what is typed": {func(k *talk) { k.say(xiaozhi.ListenDetect{Text: "what time is it", Typed: true}) }, func(*talk) {},
			false, "It is late.", 0, 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			talking(t, answer("It is late."), func(k *talk) {
				began := time.Now()
				k.notify("n", "News.", c.urgent)
				c.opens(k)
				c.then(k)
				k.pass(12 * time.Second)
				texts, at := k.channel.sentences(began)
				if len(texts) == 0 || texts[0] != c.first {
					t.Fatalf("said %q at %v", texts, at)
				}
				for i, text := range texts {
					if text == "News." && at[i] >= c.from && at[i] <= c.to {
						return
					}
				}
				t.Errorf("said %q at %v; the news belong between %v and %v", texts, at, c.from, c.to)
			})
		})
	}
}

// TestGreetedPersonSpeaksBeforeNews checks that neither the answer to a wake word nor a turn that was not understood counts
// as the first turn, after which a notification is spoken.
func TestGreetedPersonSpeaksBeforeNews(t *testing.T) {
	talking(t, answer("It is late."), func(k *talk) {
		k.recognizer.transcripts = append([]voice.Transcript{{Refused: true}}, understood("what time is it")...)
		k.notify("n", "News.", false)
		k.say(xiaozhi.ListenDetect{Text: "Hi, Stack Chan"})
		k.listen(xiaozhi.Auto)
		k.pass(2 * time.Second)
		k.listen(xiaozhi.Auto)
		k.speak() // this utterance is not understood
		k.pass(2 * time.Second)
		k.answers()
		k.pass(5 * time.Second)
		texts, _ := k.channel.sentences(time.Now())
		if got := strings.Join(texts, "; "); got != "awake; misheard; It is late.; News." {
			t.Errorf("said %s", got)
		}
	}, func(o *Options) { o.Greet, o.Phrases = true, func(_, name string) string { return name } })
}

// TestNewsBeforeWeHangUp checks that a waiting notification is spoken before the channel closes after a turn that hangs
// up. A robot that is sent to sleep does not speak it, and a person who interrupts keeps the channel open.
func TestNewsBeforeWeHangUp(t *testing.T) {
	const news = "There is much news today, and to tell it takes a while."
	for name, c := range map[string]struct {
		end    agent.End
		then   func(*talk)
		want   string
		closed bool
	}{
		"a goodbye":  {agent.HangUp, func(*talk) {}, "Goodbye.; " + news, true},
		"good night": {agent.Sleep, func(*talk) {}, "Goodbye.", true},
		"who has more to say": {agent.HangUp, func(k *talk) { time.Sleep(1500 * time.Millisecond); k.say(xiaozhi.Abort{}) }, "Goodbye.; " + news,
			false},
	} {
		t.Run(name, func(t *testing.T) {
			talking(t, mindSaying(agent.Say{Text: "Goodbye."}, agent.Done{End: c.end}), func(k *talk) {
				k.recognizer.transcripts = understood("bye")
				k.notify("n", news, false)
				k.answers()
				for texts, _ := k.channel.sentences(time.Now()); len(texts) < 1; texts, _ = k.channel.sentences(time.Now()) {
					time.Sleep(100 * time.Millisecond)
				}
				c.then(k)
				k.pass(10 * time.Second)
				texts, _ := k.channel.sentences(time.Now())
				if got := strings.Join(texts, "; "); got != c.want || isClosed(k.channel) != c.closed {
					t.Errorf("said %s; hung up: %t", got, isClosed(k.channel))
				}
			})
		})
	}
}

// TestNoiseDoesNotKeepNewsAway checks that repeated noise, such as a television, does not delay a notification forever.
func TestNoiseDoesNotKeepNewsAway(t *testing.T) {
	talking(t, answer(), func(k *talk) {
		k.recognizer.always = voice.Transcript{Refused: true}
		began := time.Now()
		k.notify("n", "News.", false)
		k.listen(xiaozhi.Auto)
		for range 8 {
			k.speak()
			k.pass(time.Second)
			k.listen(xiaozhi.Auto)
		}
		k.pass(5 * time.Second)
		texts, at := k.channel.sentences(began)
		for i, text := range texts {
			if text == "News." && at[i] < 20*time.Second {
				return
			}
		}
		t.Errorf("said %q at %v", texts, at)
	})
}

// TestAfterAnAbort checks how long announcements wait for the person who has sent the abort: for yieldFor if the microphone
// is open, and for resumeWithin if it stays closed.
func TestAfterAnAbort(t *testing.T) {
	for name, c := range map[string]struct {
		mode  xiaozhi.Mode
		opens time.Duration // when the microphone opens; 0 means never
		want  time.Duration
	}{
		"nobody speaks":                {xiaozhi.Auto, 600 * time.Millisecond, 600*time.Millisecond + yieldFor},
		"the microphone stays closed":  {xiaozhi.Auto, 0, resumeWithin},
		"the microphone is never shut": {xiaozhi.Realtime, 0, yieldFor},
	} {
		t.Run(name, func(t *testing.T) {
			talking(t, answer(strings.Repeat("word ", 20)), func(k *talk) {
				k.hears(c.mode, "x")
				time.Sleep(500 * time.Millisecond)
				k.say(xiaozhi.Abort{})
				k.channel.forget()
				aborted := time.Now()
				k.queueText("Dinner.")
				if c.opens > 0 {
					time.Sleep(c.opens)
					k.listen(c.mode)
				}
				k.pass(8 * time.Second)
				if texts, at := k.channel.sentences(aborted); len(texts) != 1 || at[0] != c.want {
					t.Errorf("said %q after %v, want it after %v", texts, at, c.want)
				}
			})
		})
	}
}
