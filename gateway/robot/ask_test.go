package robot

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/voice"
)

// TestAsk: the question is spoken, the robot listens, and what is said then
// answers it and cancels nothing.
func TestAsk(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*talk)
		want agent.Answer
	}{
		"words": {func(k *talk) {
			k.listen(xiaozhi.Auto)
			if shown := k.shows(); shown != agent.Notification {
				k.t.Errorf("shows %s", shown)
			}
			k.speak()
		}, agent.Answer{Outcome: agent.AnswerGiven, Text: "yes please"}},
		"a touch": {(*talk).touch, agent.Answer{Outcome: agent.AnswerTouch}},
		"nothing in time": {func(k *talk) {
			k.listen(xiaozhi.Auto)
			k.quiet(11 * time.Second)
		}, agent.Answer{Outcome: agent.AnswerExpired}},
		"words that are not understood, then a touch": {func(k *talk) {
			k.recognizer.transcripts = []voice.Transcript{{Refused: true}}
			k.answers()
			k.touch()
		}, agent.Answer{Outcome: agent.AnswerTouch}},
		"its owner, elsewhere": {func(k *talk) {
			if err := k.server.Reply("another", true); !errors.Is(err, agent.ErrNoQuestion) {
				k.t.Errorf("an answer to no question: %v", err)
			}
			open := k.server.Questions()
			if len(open) != 1 || open[0].Text != "May I?" || open[0].Robot != robotID || open[0].Until.Sub(open[0].Asked) != 10*time.Second {
				k.t.Fatalf("what waits: %+v", open)
			}
			if err := k.server.Reply(open[0].ID, false); err != nil {
				k.t.Error(err)
			}
			synctest.Wait()
			if err := k.server.Reply("q0", true); !errors.Is(err, agent.ErrNoQuestion) {
				k.t.Errorf("a second answer: %v", err)
			}
		}, agent.Answer{Outcome: agent.AnswerDenied}},
		"an abort": {func(k *talk) { k.say(xiaozhi.Abort{}) }, agent.Answer{Outcome: agent.AnswerClosed}},
		"an abort, before the words are recognized": {func(k *talk) {
			k.recognizer.delay = 2 * time.Second // a C call
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
