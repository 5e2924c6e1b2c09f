package robot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
)

// The tests of this file are for rare cases that once failed.

// TestATouchInTheMiddleOfTheQuestion checks that a touch while the question is spoken answers it, and that the turn
// continues.
func TestATouchInTheMiddleOfTheQuestion(t *testing.T) {
	var answers []agent.Answer
	talking(t, asking(&answers, 1), func(k *talk) {
		k.hears(xiaozhi.Auto, "delete it")
		time.Sleep(300 * time.Millisecond) // the question is being spoken
		k.touch()
		for !strings.Contains(k.channel.story(), "tts stop") {
			k.pass(10 * time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		k.listen(xiaozhi.Auto)
		k.pass(3 * time.Second)
		if k.turns.Last.End != event.EndDone || len(answers) != 1 || answers[0].Outcome != agent.AnswerTouch {
			t.Errorf("the turn was %s, answered %+v: %s", k.turns.Last.End, answers, k.channel.story())
		}
	})
}

// TestSayWhileTheSessionEnds checks that a sentence that comes while the session ends is stored for the next session.
func TestSayWhileTheSessionEnds(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		k.recognizer.delay = 3 * time.Second // like a C function that cannot be cancelled
		k.hears(xiaozhi.Auto, "x")
		k.channel.Close(0, "") // the robot closes its channel
		synctest.Wait()
		queued, err := k.server.Speak(k.t.Context(), robotID, "The house is on fire")
		<-k.ended
		kept, _, _ := k.waiting.Get(string(robotID))
		if len(kept) == 0 {
			t.Errorf("queued %v, %v; kept nothing, sent %s", queued, err, k.channel.story())
		}
	})
}

// TestPushToTalkInTheMiddleOfTheQuestion checks a client that opens its microphone during a question without an abort:
// the question stops, and the whole answer is recognized.
func TestPushToTalkInTheMiddleOfTheQuestion(t *testing.T) {
	var answers []agent.Answer
	talking(t, asking(&answers, 1), func(k *talk) {
		k.hears(xiaozhi.Manual, "delete it", "yes please")
		k.say(xiaozhi.ListenStop{})
		time.Sleep(300 * time.Millisecond)
		k.channel.forget()
		k.listen(xiaozhi.Manual)
		k.speak()
		k.speak()
		k.say(xiaozhi.ListenStop{})
		k.pass(2 * time.Second)
		if !strings.Contains(k.channel.story(), "tts stop, stt yes please") || k.recognizer.durations[1] < 3*time.Second {
			t.Errorf("%v heard %v: %s", answers, k.recognizer.durations, k.channel.story())
		}
	})
}

// TestSpeechDuringRecognition checks that in realtime mode speech during the recognition of an utterance becomes the next
// utterance.
func TestSpeechDuringRecognition(t *testing.T) {
	talking(t, &scriptedMind{answer: func(ctx context.Context, _ agent.Turn, out func(agent.Reply) error) error {
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		return errors.Join(out(agent.Say{Text: "Done."}), out(agent.Done{End: agent.Continue}))
	}}, func(k *talk) {
		k.recognizer.delay = 800 * time.Millisecond
		k.hears(xiaozhi.Realtime, "turn on the light", "no wait")
		k.recognizer.delay = 0
		for range 2 {
			k.someWords()
		}
		k.quiet(9 * time.Second)
		synctest.Wait()
		if len(k.recognizer.durations) != 2 {
			t.Errorf("heard %v: %s", k.recognizer.durations, k.channel.story())
		}
	})
}

// TestMute checks that a robot stays muted in its next session.
func TestMute(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		k.server.Mute(robotID, true)
		k.hears(xiaozhi.Auto, "secret", "secret")
		k.wantStory("hello")
		k.leave()
		k.reconnect()
		k.say(xiaozhi.Hello{})
		k.answers()
		k.wantStory("hello")
	})
}

// TestABrainThatHangs checks that a turn fails if the brain hangs, and that the robot then listens again, or its channel
// is closed.
func TestABrainThatHangs(t *testing.T) {
	mind := &scriptedMind{answer: func(ctx context.Context, _ agent.Turn, _ func(agent.Reply) error) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	talking(t, mind, func(k *talk) {
		k.hears(xiaozhi.Auto, "x")
		time.Sleep(4 * time.Minute)
		k.answers()
		synctest.Wait()
		if !isClosed(k.channel) && len(k.recognizer.durations) == 1 {
			t.Errorf("it neither listens nor hangs up: %d messages", len(k.channel.all()))
		}
	})
}

func TestBadMessagesDoNotFloodTheLog(t *testing.T) {
	var log bytes.Buffer
	talking(t, answer("Yes."), func(k *talk) {
		for range 500 {
			k.send(uplink{raw: []byte("{")})
			k.send(uplink{raw: []byte(`{"type":"mcp","payload":{}}`)})
		}
		if n := strings.Count(log.String(), "\n"); n > 20 {
			t.Errorf("%d lines of log for 1000 bad messages", n)
		}
	}, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
}

// TestNewChannelWaitsForNoEngine checks that a new session begins although a turn of the replaced session is still inside
// an engine.
func TestNewChannelWaitsForNoEngine(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		k.recognizer.delay = 11 * time.Second
		k.hears(xiaozhi.Auto, "x")
		first := k.ended
		k.reconnect()
		go func() { k.channel.up <- uplink{frame: frame{message: xiaozhi.Hello{}}} }()
		k.pass(9900 * time.Millisecond)
		if k.channel.story() != "hello" {
			t.Errorf("after 9.9 s the new channel was sent %q", k.channel.story())
		}
		<-first
		k.pass(time.Second)
	})
}

func TestPhrasesAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTalkOn(t, answer("Yes."), xiaozhi.Framing1, func(k *talk) { k.synthesizer.err = errors.New("away") }, func(o *Options) {
			o.Phrases = func(_, n string) string { return "😊 " + n }
		})
		k.say(xiaozhi.Hello{})
		k.synthesizer.err = nil
		time.Sleep(time.Hour)
		k.leave()
		k.reconnect()
		k.say(xiaozhi.Hello{})
		time.Sleep(time.Minute)
		if p, _ := k.server.phrases.defaultVoice.lookup(phraseFailed); len(p.packets) == 0 {
			t.Error("an hour after the synthesizer came back the phrases are still mute")
		}
		k.close()
	})
}

// TestSpokenOnceInARace checks that an announcement that is interrupted at the moment of its first packet is not spoken
// twice.
func TestSpokenOnceInARace(t *testing.T) {
	bad := 0
	const n = 50
	for range n {
		talking(t, answer("Yes."), func(k *talk) {
			var once atomic.Bool
			react(k, func(l *fakeChannel, m xiaozhi.ToRobot) {
				if m == nil && !once.Swap(true) {
					up(l, xiaozhi.ListenStart{Mode: xiaozhi.Manual})
				}
			})
			k.listen(xiaozhi.Auto)
			k.notify("n", "Post", false)
			k.pass(6 * time.Second)
			if strings.Count(k.channel.story(), "sentence Post") > 1 {
				bad++
			}
		})
	}
	if bad > 0 {
		t.Errorf("%d of %d spoken twice", bad, n)
	}
}

// reacting is a channel that calls on for each message to the robot, and with nil for each packet of sound.
type reacting struct {
	*fakeChannel
	on func(m xiaozhi.ToRobot)
}

func (r *reacting) SendText(b []byte) error {
	err := r.fakeChannel.SendText(b)
	m, _ := xiaozhi.ParseToRobot(b)
	r.on(m)
	return err
}
func (r *reacting) SendAudio(a xiaozhi.Audio) error {
	err := r.fakeChannel.SendAudio(a)
	r.on(nil)
	return err
}

func react(k *talk, on func(*fakeChannel, xiaozhi.ToRobot)) {
	k.leave()
	l := newFakeChannel()
	k.channel = l
	k.ended = k.connect(&reacting{l, func(m xiaozhi.ToRobot) { on(l, m) }}, robotID)
	k.say(xiaozhi.Hello{})
}

func up(l *fakeChannel, m xiaozhi.FromRobot) {
	go func() {
		select {
		case l.up <- uplink{frame: frame{message: m}}:
		case <-l.closed:
		}
	}()
}

// TestTokensOfOneChannel checks that at most the two latest camera tokens of a channel are valid, however often the robot
// sends hello.
func TestTokensOfOneChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTalkOn(t, answer("Yes."), xiaozhi.Framing1, func(k *talk) { k.robot.BaseURL = "http://a:1" })
		for range 5 {
			k.say(xiaozhi.Hello{Features: xiaozhi.Features{MCP: true}})
		}
		var tokens []string
		for _, s := range k.channel.sent {
			if found := regexp.MustCompile(`"token":"([^"]+)"`).FindStringSubmatch(fmt.Sprintf("%s", s.message)); found != nil {
				tokens = append(tokens, found[1])
			}
		}
		if len(tokens) != 5 {
			t.Fatalf("the robot got %d tokens", len(tokens))
		}
		engine := routesOf(t, k.server)
		for i, token := range tokens {
			r := httptest.NewRequest(http.MethodPost, "/xiaozhi/vision/explain", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			engine.ServeHTTP(w, r)
			if good := w.Code != http.StatusUnauthorized; good != (i >= 3) {
				t.Errorf("token %d of 5: %d %s", i, w.Code, w.Body)
			}
		}
		k.close()
	})
}
