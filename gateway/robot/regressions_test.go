package robot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/must"
	"perch/store/storetest"
)

// TestListenStartAfterOurStop checks that the listen start that a robot in auto mode sends after each tts stop does not
// interrupt a turn that has begun since.
func TestListenStartAfterOurStop(t *testing.T) {
	talking(t, answer("It is late."), func(k *talk) {
		k.hears(xiaozhi.Auto, "x")
		time.Sleep(500 * time.Millisecond) // the robot is speaking
		synctest.Wait()
		k.channel.forget()
		must.Succeed(t, k.server.InjectText(k.t.Context(), robotID, "hello"))
		synctest.Wait()
		k.listen(xiaozhi.Auto) // the robot's reaction to the tts stop
		time.Sleep(3 * time.Second)
		k.wantStory("tts stop, stt hello, face happy, tts start, sentence It is late., 19 packets, tts stop")
	})
}

// TestCancelledTurnKeepsNoEncoder checks that a cancelled turn that is still inside an engine does not disturb the speech
// of the next turn.
func TestCancelledTurnKeepsNoEncoder(t *testing.T) {
	talking(t, answer(strings.Repeat("word ", 20)), func(k *talk) {
		k.recognizer.delay = 4 * time.Second // a cancelled recognition takes as long
		k.hears(xiaozhi.Auto, "first", "second")
		k.say(xiaozhi.Abort{})
		k.channel.forget()
		k.recognizer.delay = 0
		k.answers()
		time.Sleep(20 * time.Second)
		if story := k.channel.story(); !strings.HasSuffix(story, "167 packets, tts stop") || strings.Contains(story, "failed") {
			t.Errorf("sent %s", story)
		}
	})
}

// asking returns a mind that says the texts of before, asks questions one after the other, and appends the answers to
// answers.
func asking(answers *[]agent.Answer, questions int, before ...string) *scriptedMind {
	return &scriptedMind{answer: func(_ context.Context, _ agent.Turn, out func(agent.Reply) error) error {
		for _, text := range before {
			if err := out(agent.Say{Text: text}); err != nil {
				return err
			}
		}
		for i := range questions {
			err := out(agent.Ask{ID: fmt.Sprint("q", i), Text: "May I?", Within: 10 * time.Second,
				Answer: func(a agent.Answer) { *answers = append(*answers, a) }})
			if err != nil {
				return err
			}
		}
		return errors.Join(out(agent.Say{Text: "Good."}), out(agent.Done{End: agent.Continue}))
	}}
}

// TestATouchAnswersOneQuestion checks that a touch during the recognition of an answer does not answer the next question.
func TestATouchAnswersOneQuestion(t *testing.T) {
	var answers []agent.Answer
	talking(t, asking(&answers, 2), func(k *talk) {
		k.hears(xiaozhi.Auto, "delete it", "no")
		time.Sleep(2 * time.Second)
		k.listen(xiaozhi.Auto)
		k.recognizer.delay = time.Second
		k.speak()
		k.touch()
		time.Sleep(3 * time.Second)
		k.listen(xiaozhi.Auto)
		k.quiet(12 * time.Second)
		want := []agent.Answer{{Outcome: agent.AnswerGiven, Text: "no"}, {Outcome: agent.AnswerExpired}}
		if !reflect.DeepEqual(answers, want) {
			t.Errorf("answered %+v, want %+v", answers, want)
		}
	})
}

func TestRebootComesAfterTheAnswer(t *testing.T) {
	mind := &scriptedMind{answer: func(ctx context.Context, turn agent.Turn, out func(agent.Reply) error) error {
		return errors.Join(turn.Body.Reboot(ctx), out(agent.Say{Text: "Bye."}), out(agent.Done{End: agent.Continue}))
	}}
	talking(t, mind, func(k *talk) {
		k.hears(xiaozhi.Auto, "reboot yourself")
		time.Sleep(2 * time.Second)
		k.wantStory("hello, stt reboot yourself, tts start, sentence Bye., 7 packets, tts stop, reboot")
	})
}

func TestAnAbortedRebootIsForgotten(t *testing.T) {
	mind := &scriptedMind{answer: func(ctx context.Context, turn agent.Turn, out func(agent.Reply) error) error {
		if turn.Text == "reboot yourself" {
			return errors.Join(turn.Body.Reboot(ctx), out(agent.Say{Text: strings.Repeat("bye ", 20)}))
		}
		return errors.Join(out(agent.Say{Text: "Yes."}), out(agent.Done{End: agent.Continue}))
	}}
	talking(t, mind, func(k *talk) {
		k.hears(xiaozhi.Auto, "reboot yourself", "hello")
		time.Sleep(time.Second)
		k.say(xiaozhi.Abort{})
		k.channel.forget()
		k.answers()
		time.Sleep(2 * time.Second)
		k.wantStory("stt hello, tts start, sentence Yes., 7 packets, tts stop")
	})
}

// TestLastWords checks that messages that are queued when the session ends are still sent.
func TestLastWords(t *testing.T) {
	talking(t, answer(strings.Repeat("word ", 20)), func(k *talk) {
		k.hears(xiaozhi.Auto, "x")
		time.Sleep(time.Second)
		must.Succeed(t, k.server.Hangup(k.t.Context(), robotID, "forgotten"))
		k.pass(time.Second)
		if story := k.channel.story(); !isClosed(k.channel) || !strings.HasSuffix(story, "tts stop") {
			t.Errorf("sent %s", story)
		}
	})
}

// TestRecordsAreBounded checks that only the latest records are stored, and that NewRecords with a lower limit deletes the
// oldest records at once.
func TestRecordsAreBounded(t *testing.T) {
	for _, bounds := range [][]int{{0}, {3}, {10, 3, 0}} { // limits that are applied one after the other
		sessions, turns := &storetest.Table[SessionRecord]{}, &storetest.Table[TurnRecord]{}
		r := NewRecords(sessions, turns, bounds[0])
		at := time.Now()
		for i := range 10 { // all sessions are open at the same time
			r.addSession(SessionRecord{ID: fmt.Sprint(i), Opened: at.Add(time.Duration(i))})
			r.addTurn(TurnRecord{At: at.Add(time.Duration(i)), Heard: fmt.Sprint(i)})
		}
		for i := range 10 {
			r.closeSession(fmt.Sprint(i), "", "", 0, at)
		}
		for n, most := range bounds {
			if n > 0 {
				NewRecords(sessions, turns, most)
			}
			if len(sessions.Kept) != most || len(turns.Kept) != most {
				t.Errorf("of at most %d, %d sessions and %d turns are kept", most, len(sessions.Kept), len(turns.Kept))
			}
			for _, turn := range turns.All() {
				if turn.Heard < fmt.Sprint(10-most) {
					t.Errorf("of the latest %d one is %+v", most, turn)
				}
			}
		}
	}
}

// TestRecordsAndClockSetBack checks that the record that was added last counts as the newest, even if the clock was set
// back.
func TestRecordsAndClockSetBack(t *testing.T) {
	sessions, turns := &storetest.Table[SessionRecord]{}, &storetest.Table[TurnRecord]{}
	at := time.Date(2031, 7, 27, 12, 0, 0, 0, time.UTC)
	for run, jump := range []time.Duration{0, -5 * 365 * 24 * time.Hour, -24 * time.Hour, time.Hour} {
		r := NewRecords(sessions, turns, 3)
		at = at.Add(jump)
		for i := range 2 {
			name := fmt.Sprint(run, i)
			r.addSession(SessionRecord{ID: name, Opened: at})
			r.addTurn(TurnRecord{Session: name, At: at})
			r.closeSession(name, "", "", 1, at)
		}
		want := fmt.Sprint(run, 1)
		if got := r.Turns(10); len(got) != min(3, 2+2*run) || got[0].Session != want || !got[0].At.Equal(at) {
			t.Errorf("run %d: turns %+v", run, got)
		}
		if got := r.Sessions(10); len(got) != min(3, 2+2*run) || got[0].ID != want || got[0].Closed.IsZero() {
			t.Errorf("run %d: sessions %+v", run, got)
		}
	}
}

// TestATurnOfManyWordsIsKept checks that the record of a turn with a very long answer is cut to a size that the store
// accepts.
func TestATurnOfManyWordsIsKept(t *testing.T) {
	turns := &storetest.Table[TurnRecord]{}
	r := NewRecords(&storetest.Table[SessionRecord]{}, turns, 10)
	r.addTurn(TurnRecord{Heard: "tell me a story", Said: strings.Repeat("ö\n\"", 1<<20), At: time.Now()})
	text, err := json.Marshal(r.Turns(1))
	if err != nil || len(text) > 256<<10 || !utf8.ValidString(r.Turns(1)[0].Said) || r.Turns(1)[0].Heard != "tell me a story" {
		t.Errorf("it has %d bytes, %v", len(text), err)
	}
}
