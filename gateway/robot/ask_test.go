package robot

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/voice"
)

// asks has the robot put a question of the appliance, and returns how that ends.
func (k *talk) asks(ctx context.Context, id string, within time.Duration) <-chan string {
	ended := make(chan string, 1)
	now := time.Now()
	go func() {
		a, err := k.server.Ask(ctx, robotID, agent.Question{ID: id, Text: "May I " + id + "?", Asked: now, Until: now.Add(within)})
		switch {
		case errors.Is(err, ErrOffline):
			ended <- "offline"
		case err != nil:
			ended <- err.Error()
		default:
			ended <- strings.TrimSpace(fmt.Sprint(a.Outcome, " ", a.Text))
		}
	}()
	synctest.Wait()
	return ended
}

// until lets time pass until the robot was sent something.
func (k *talk) until(what string) {
	k.t.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(k.channel.story(), what); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			k.t.Fatalf("it never was sent %s: %s", what, k.channel.story())
		}
	}
}

// TestAskedByTheAppliance: how a question ends that no brain has put.
func TestAskedByTheAppliance(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(k *talk, withdraw func())
		want string
		put  bool // it could be heard, and so answered
	}{
		"words": {func(k *talk, _ func()) {
			k.until("tts stop")
			k.listen(xiaozhi.Auto)
			k.speak()
		}, "answered yes please", true},
		"words, in a talk that opens as it sounds": {func(k *talk, _ func()) {
			k.until("May I")
			k.listen(xiaozhi.Realtime)
			time.Sleep(3 * time.Second)
			k.speak()
		}, "answered yes please", true},
		"a touch": {func(k *talk, _ func()) {
			k.until("tts stop")
			k.say(xiaozhi.Event{Name: "head_pet_started", Data: []byte("{}")})
		}, "touched", true},
		"the owner": {func(k *talk, _ func()) {
			k.until("tts stop")
			if all := k.server.Questions(); len(all) != 1 || all[0].Text != "May I build?" {
				k.t.Errorf("questions are %+v", all)
			}
			if err := k.server.Reply("build", false); err != nil {
				k.t.Error(err)
			}
		}, "denied", true},
		"nobody":    {func(*talk, func()) { time.Sleep(40 * time.Second) }, "expired", true},
		"withdrawn": {func(k *talk, withdraw func()) { k.until("tts stop"); withdraw() }, "context canceled", true},
		"withdrawn as it sounds": {func(k *talk, withdraw func()) {
			k.until("May I")
			withdraw()
			time.Sleep(50 * time.Millisecond)
			if !strings.HasSuffix(k.channel.story(), "tts stop") {
				k.t.Errorf("it speaks on: %s", k.channel.story())
			}
		}, "context canceled", false},
		"hushed": {func(k *talk, _ func()) {
			k.until("May I")
			time.Sleep(100 * time.Millisecond) // before there is any sound it is put off
			k.say(xiaozhi.Abort{})
		}, "closed", true},
		"hung up": {func(k *talk, _ func()) {
			k.until("May I")
			if err := k.server.Hangup(k.t.Context(), robotID, "test"); err != nil {
				k.t.Error(err)
			}
		}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			talking(t, answer("Yes."), func(k *talk) {
				k.recognizer.transcripts = understood("yes please")
				k.listen(xiaozhi.Auto)
				ctx, withdraw := context.WithCancel(k.t.Context())
				defer withdraw()
				ended := k.asks(ctx, "build", 30*time.Second)
				c.do(k, withdraw)
				time.Sleep(5 * time.Second)
				got := <-ended
				if got != c.want && (c.want != "" || got != "offline" && got != "closed") {
					t.Errorf("it ended with %s, want %s", got, c.want)
				}
				times := 1
				if strings.Contains(name, "opens") {
					times = 2 // what we begin to say is begun anew
				}
				if n := strings.Count(k.channel.story(), "May I build?"); n != times {
					t.Errorf("it was put %d times: %s", n, k.channel.story())
				}
				for _, kept := range k.waiting.All() {
					t.Errorf("what is kept is %v", kept)
				}
				if happened := strings.Join(k.happened(), " "); c.put &&
					(!strings.Contains(happened, " asked ") || !strings.Contains(happened, " answered ")) {
					t.Errorf("happened is %s", happened)
				}
				if len(k.server.Questions()) > 0 {
					t.Error("it still waits")
				}
			})
		})
	}
}

// TestAskedInItsTurn: a question of the appliance waits for the turn under way; one
// that is withdrawn before is not put; a robot that is not there cannot.
func TestAskedInItsTurn(t *testing.T) {
	talking(t, answer("It is late.", "Go to bed."), func(k *talk) {
		k.recognizer.transcripts = understood("what time is it", "yes")
		k.listen(xiaozhi.Auto)
		k.speak()
		k.until("It is late.")
		ctx, withdraw := context.WithCancel(k.t.Context())
		first, second := k.asks(ctx, "go", time.Minute), k.asks(k.t.Context(), "stay", time.Minute)
		withdraw()
		if got := <-first; got != "context canceled" {
			t.Error(got)
		}
		k.until("May I stay?")
		if story := k.channel.story(); strings.Contains(story, "May I go?") || strings.Index(story, "Go to bed.") > strings.Index(story,
			"May I stay?") {
			t.Errorf("sent %s", story)
		}
		time.Sleep(3 * time.Second)
		k.say(xiaozhi.Event{Name: "head_pet_started", Data: []byte("{}")})
		if got := <-second; got != "touched" {
			t.Error(got)
		}
		if _, err := k.server.Ask(k.t.Context(), "a0b1c2d3e4ff", agent.Question{}); !errors.Is(err, ErrOffline) {
			t.Errorf("a robot that is not there: %v", err)
		}
		time.Sleep(3 * time.Second)
	})
}

// TestNotPutLater: a question that was not put when the robot hung up is not said
// at its next hello.
func TestNotPutLater(t *testing.T) {
	talking(t, answer("It is late.", "Go to bed."), func(k *talk) {
		k.recognizer.transcripts = understood("what time is it")
		k.listen(xiaozhi.Auto)
		k.speak()
		k.until("It is late.")
		ended := k.asks(k.t.Context(), "build", time.Minute)
		if err := k.server.Hangup(k.t.Context(), robotID, "test"); err != nil {
			t.Fatal(err)
		}
		if got := <-ended; got != "offline" {
			t.Errorf("it ended with %s", got)
		}
		time.Sleep(3 * time.Second)
		for _, kept := range k.waiting.All() {
			t.Errorf("what is kept is %v", kept)
		}
	})
}

// TestTooMuchToAsk: beyond what may wait to be said, a question is refused at once.
func TestTooMuchToAsk(t *testing.T) {
	talking(t, answer("It is late."), func(k *talk) {
		for range mostQueued + 1 { // before the robot has settled
			if _, err := k.server.Say(k.t.Context(), robotID, "Hello."); err != nil {
				t.Fatal(err)
			}
		}
		if got := <-k.asks(k.t.Context(), "build", time.Minute); got != ErrBusy.Error() {
			t.Errorf("it ended with %s", got)
		}
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
