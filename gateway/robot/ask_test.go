package robot

import (
	"context"
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

// TestTooMuchToAsk: beyond what may wait to be said, a question is refused at once.
func TestTooMuchToAsk(t *testing.T) {
	talking(t, answer("It is late."), func(k *talk) {
		for range mostQueued + 1 { // before the robot has settled
			if _, err := k.server.Say(k.t.Context(), robotID, "Hello."); err != nil {
				t.Fatal(err)
			}
		}
		k.wantEnd(k.inquires(), agent.Answer{}, ErrBusy)
	})
}

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
		"a touch": {func(k *talk) {
			k.say(xiaozhi.Event{Name: "head_pet_started", Data: []byte("{}")})
		}, agent.Answer{Outcome: agent.AnswerTouch}},
		"nothing in time": {func(k *talk) {
			k.listen(xiaozhi.Auto)
			k.quiet(11 * time.Second)
		}, agent.Answer{Outcome: agent.AnswerExpired}},
		"words that are not understood, then a touch": {func(k *talk) {
			k.recognizer.transcripts = []voice.Transcript{{Refused: true}}
			k.listen(xiaozhi.Auto)
			k.speak()
			k.say(xiaozhi.Event{Name: "head_pet_started", Data: []byte("{}")})
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
			if err := k.server.Reply("q", true); !errors.Is(err, agent.ErrNoQuestion) {
				k.t.Errorf("a second answer: %v", err)
			}
		}, agent.Answer{Outcome: agent.AnswerDenied}},
		"an abort": {func(k *talk) { k.say(xiaozhi.Abort{}) }, agent.Answer{Outcome: agent.AnswerClosed}},
		"a closed channel": {func(k *talk) {
			k.channel.Close(1000, "")
			synctest.Wait()
		}, agent.Answer{Outcome: agent.AnswerClosed}},
	} {
		t.Run(name, func(t *testing.T) {
			var answers []agent.Answer
			mind := &scriptedMind{answer: func(_ context.Context, _ agent.Turn, out func(agent.Reply) error) error {
				err := out(agent.Ask{ID: "q", Text: "May I?", Within: 10 * time.Second,
					Answer: func(a agent.Answer) { answers = append(answers, a) }})
				if err != nil {
					return err
				}
				return errors.Join(out(agent.Say{Text: "Good."}), out(agent.Done{End: agent.Continue}))
			}}
			talking(t, mind, func(k *talk) {
				k.recognizer.transcripts = understood("delete it", "yes please")
				k.listen(xiaozhi.Auto)
				k.speak()
				time.Sleep(2 * time.Second)
				k.wantStory("hello, stt delete it, tts start, sentence May I?, 10 packets, tts stop")
				c.do(k)
				time.Sleep(3 * time.Second)
				synctest.Wait()
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
