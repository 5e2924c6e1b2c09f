package robot

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/must"
	"perch/store/storetest"
	"perch/voice"
)

func TestCommandQueueIsBounded(t *testing.T) {
	kept := &storetest.Table[[]Command]{}
	w := NewCommandQueue(kept)
	now := time.Now()
	gone := 0
	for i := range 45 {
		givenUp, err := w.add(robotID, now, Command{Thing: dialogue.CommandSay, Text: fmt.Sprint(i)}, Command{Thing: commandAlert, Text: fmt.Sprint(i)})
		must.Succeed(t, err)
		gone += len(givenUp)
	}
	w = NewCommandQueue(kept) // after a restart
	var got []string
	list := w.list(robotID)
	for _, c := range list {
		got = append(got, c.Thing+c.Text)
	}
	// The latest 40 of 45 sentences and the latest alert are stored.
	if len(got) != 41 || got[0] != "say5" || got[39] != "say44" || got[40] != "alert44" || gone != 5 {
		t.Errorf("waits %v, %d were given up", got, gone)
	}
	for _, c := range list {
		w.drop(robotID, c.ID)
	}
	if left := w.list(robotID); len(left) != 0 || len(kept.Kept) != 0 {
		t.Errorf("left are %v", left)
	}
}

// TestCommandQueueAndClockJump checks that a jump of the clock moves the expiry of the commands that were added since
// the start, and of no others.
func TestCommandQueueAndClockJump(t *testing.T) {
	now := time.Now().Round(0)
	for name, by := range map[string]time.Duration{"five years on": 5 * 365 * 24 * time.Hour, "a day back": -24 * time.Hour} {
		kept := &storetest.Table[[]Command]{}
		must.Value(NewCommandQueue(kept).add(robotID, now, Command{Thing: dialogue.CommandSay, Text: "earlier"}))(t)
		w := NewCommandQueue(kept) // after a restart
		must.Value(w.add(robotID, now, Command{Thing: dialogue.CommandSay, Text: "here"}))(t)
		w.ClockJumped(by)
		got := map[string]time.Duration{}
		for _, c := range w.list(robotID) {
			got[c.Text] = c.Expires.Sub(now)
		}
		if want := map[string]time.Duration{"earlier": commandTTL, "here": commandTTL + by}; !maps.Equal(got, want) {
			t.Errorf("%s: it waits %v, want %v", name, got, want)
		}
		for _, c := range w.list(robotID) {
			w.drop(robotID, c.ID)
		}
		if w.ClockJumped(by); len(w.added) != 0 || len(kept.Kept) != 0 {
			t.Errorf("%s: left are %v, %v", name, w.added, kept.Kept)
		}
	}
}

// TestSayToAClosedRobot checks that a sentence for a robot with a closed channel is queued, which is published, and is
// spoken after the next hello.
func TestSayToAClosedRobot(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		const other = device.ID("a0b1c2d3e4f6")
		for _, text := range []string{"One", "Two"} {
			if queued, err := k.server.Speak(k.t.Context(), other, text); !queued || err != nil {
				t.Fatalf("%v, %v", queued, err)
			}
		}
		if kinds := k.happened(); !slices.Contains(kinds, "command") {
			t.Errorf("happened %v", kinds)
		}
		l := newFakeChannel()
		ended := k.connect(l, other)
		l.up <- uplink{frame: frame{message: xiaozhi.Hello{}}}
		l.up <- uplink{frame: frame{message: xiaozhi.ListenStart{Mode: xiaozhi.Auto}}}
		k.pass(5 * time.Second)
		want := "hello, tts start, sentence One, 5 packets, tts stop, tts start, sentence Two, 5 packets, tts stop"
		if got := l.story(); got != want {
			t.Errorf("sent %s", got)
		}
		l.Close(0, "")
		<-ended
		if len(k.waiting.Kept) != 0 {
			t.Errorf("still waits: %v", k.waiting.Kept)
		}
	})
}

// TestUnreadableSentencesEnd checks that a sentence that no voice can read is shown once, and that the rest of the text
// and the next text are spoken. A text of which nothing could be spoken, and one in which the engine failed, are
// rejected and not repeated.
func TestUnreadableSentencesEnd(t *testing.T) {
	unread := fmt.Errorf("%w: no voice has kana", voice.ErrText)
	talking(t, answer("Yes."), func(k *talk) {
		k.synthesizer.errs = map[string]error{"オーブン": unread, "Broken.": voice.ErrUnavailable}
		k.leave()
		k.happened()
		for _, text := range []string{"Hot! オーブン", "オーブン", "Half. Broken.", "Two."} {
			must.Value(k.server.Speak(k.t.Context(), robotID, text))(k.t)
		}
		k.reconnect()
		k.say(xiaozhi.Hello{})
		k.listen(xiaozhi.Auto)
		k.pass(time.Minute)
		want := "hello, tts start, sentence Hot!, 6 packets, sentence オーブン, 17 packets, tts stop, tts start, sentence オーブン, 16 packets, tts stop, " +
			"tts start, sentence Half., 8 packets, sentence Broken., 1 packets, tts stop, tts start, sentence Two., 7 packets, tts stop"
		k.wantStory(want)
		var ends []string
		for _, e := range k.envelopes() {
			if c, ok := e.Event.(event.Command); ok && c.State != event.CommandQueued {
				ends = append(ends, c.State)
			}
		}
		if !slices.Equal(ends, []string{event.CommandDone, event.CommandRejected, event.CommandRejected, event.CommandDone}) || len(k.waiting.Kept) != 0 {
			t.Errorf("ended as %v, still waits: %v", ends, k.waiting.Kept)
		}
	})
}

// TestAskAClosedRobot checks that the agent answers for a robot with a closed channel, which speaks the answer after its
// next hello, and that a robot with an open channel answers in its session.
func TestAskAClosedRobot(t *testing.T) {
	talking(t, answer("It is late."), func(k *talk) {
		const other = device.ID("a0b1c2d3e4f6")
		text, queued, err := k.server.AskAgent(k.t.Context(), other, "what time is it")
		if text != "It is late." || !queued || err != nil {
			t.Fatalf("%q, %v, %v", text, queued, err)
		}
		if len(k.mind.remembered) != 1 || k.mind.remembered[0] != (agent.Exchange{Heard: "what time is it", Said: "It is late."}) {
			t.Errorf("remembered %+v", k.mind.remembered)
		}
		turns := slices.Collect(maps.Values(k.turns.Kept))
		if len(turns) != 1 || turns[0].Robot != other || turns[0].Heard != "what time is it" || turns[0].Said != text {
			t.Errorf("turns %+v", turns)
		}
		l := newFakeChannel()
		ended := k.connect(l, other)
		l.up <- uplink{frame: frame{message: xiaozhi.Hello{}}}
		l.up <- uplink{frame: frame{message: xiaozhi.ListenStart{Mode: xiaozhi.Auto}}}
		k.pass(5 * time.Second)
		if got := l.story(); !strings.Contains(got, "sentence It is late.") {
			t.Errorf("sent %s", got)
		}
		l.Close(0, "")
		<-ended
		text, queued, err = k.server.AskAgent(k.t.Context(), robotID, "and now")
		k.pass(5 * time.Second)
		if got := k.channel.story(); text != "" || queued || err != nil || !strings.Contains(got, "sentence It is late.") {
			t.Errorf("the open one: %q, %v, %v, sent %s", text, queued, err, got)
		}
		k.robots.stranger.Store(true)
		if _, _, err := k.server.AskAgent(k.t.Context(), other, "x"); !errors.Is(err, errNotAdopted) {
			t.Errorf("a stranger: %v", err)
		}
	})
}

// TestUnspokenSentencesAreStored checks that sentences that were not spoken are stored when the channel closes.
func TestUnspokenSentencesAreStored(t *testing.T) {
	talking(t, answer(strings.Repeat("word ", 20)), func(k *talk) {
		k.hears(xiaozhi.Auto, "x")
		for _, text := range []string{"One", "Two"} {
			if queued, err := k.server.Speak(k.t.Context(), robotID, text); queued || err != nil {
				t.Fatalf("%v, %v", queued, err)
			}
		}
		k.notify("n", "Three", false)
		synctest.Wait()
		k.leave()
		kept, _, _ := k.waiting.Get(string(robotID))
		if len(kept) != 2 || kept[0].Text != "One" || kept[1].Text != "Two" {
			t.Errorf("kept %+v; a notification is kept elsewhere", kept)
		}
		if err := k.server.Announce(k.t.Context(), robotID, notice.Announcement{ID: "n", Text: "Three"}); !errors.Is(err, dialogue.ErrOffline) {
			t.Errorf("an announcement to a closed robot: %v", err)
		}
	})
}

func TestANotificationThatIsOnlyShown(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		k.happened()
		must.Succeed(t, k.server.Announce(k.t.Context(), robotID, notice.Announcement{ID: "n", Text: "Post."}))
		synctest.Wait()
		all := k.channel.all()
		if last := all[len(all)-1].message; last != (xiaozhi.Alert{Status: "Perch", Message: "Post.", Emotion: "neutral"}) {
			t.Errorf("sent %+v", last)
		}
		if kinds := k.happened(); !slices.Equal(kinds, []string{"notification_changed"}) {
			t.Errorf("happened %v", kinds)
		}
	})
}

func TestHoldingAChannel(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		k.server.KeepOpen(robotID, time.Now().Add(10*time.Minute))
		time.Sleep(9 * time.Minute)
		if isClosed(k.channel) {
			t.Fatal("the channel was not held")
		}
		k.server.KeepOpen(robotID, time.Time{})
		k.pass(time.Second)
		if !isClosed(k.channel) {
			t.Error("the channel was not let go")
		}
	})
}

// TestHistoryHasWhatWasPlayed checks that the history contains the words of an interrupted sentence that were played,
// and none of the sentences after it.
func TestHistoryHasWhatWasPlayed(t *testing.T) {
	const sentence = "one two three four five six seven eight nine ten" // 4.9 s
	talking(t, answer("Zero.", sentence, "Eleven."), func(k *talk) {
		k.hears(xiaozhi.Auto, "count")
		time.Sleep(2600 * time.Millisecond)
		k.say(xiaozhi.Abort{})
		if e := k.mind.remembered; len(e) != 1 || e[0].Said != "Zero. one two three four five …" {
			t.Errorf("remembered %+v", e)
		}
		if turn := k.turns.Last; turn.End != event.EndCancelled {
			t.Errorf("kept %+v", turn)
		}
	})
	for _, c := range []struct {
		said  []string
		heard float64
		want  []string
	}{
		{nil, 0.5, nil},
		{[]string{"a b", "c d"}, 1, []string{"a b", "c d"}},
		{[]string{"a b", "c d"}, 0, []string{"a b"}},
		{[]string{"a b", "c d"}, 0.1, []string{"a b", "c …"}},
	} {
		if got := cutShort(slices.Clone(c.said), c.heard); !slices.Equal(got, c.want) {
			t.Errorf("%v to %v: %v", c.said, c.heard, got)
		}
	}
}
