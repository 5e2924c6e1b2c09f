package robot

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/must"
	"perch/voice"
)

// inquired is a question that the appliance makes a robot ask (Server.Ask).
type inquired struct {
	withdraw context.CancelFunc
	done     chan dialogue.Ending
}

// inquires calls Server.Ask in a goroutine with the question "May we?", which the changes may modify.
func (k *talk) inquires(change ...func(*agent.Question)) *inquired {
	ctx, cancel := context.WithCancel(k.t.Context())
	q := agent.Question{ID: "h", Text: "May we?", Asked: time.Now(), Until: time.Now().Add(20 * time.Second)}
	for _, c := range change {
		c(&q)
	}
	i := &inquired{cancel, make(chan dialogue.Ending, 1)}
	go func() {
		defer cancel()
		a, err := k.server.Ask(ctx, robotID, q)
		i.done <- dialogue.Ending{Answer: a, Err: err}
	}()
	synctest.Wait()
	return i
}

// ended returns how a question has ended, or false if it has not ended.
func (i *inquired) ended() (e dialogue.Ending, yes bool) {
	synctest.Wait()
	select {
	case e = <-i.done:
		i.done <- e
		return e, true
	default:
		return e, false
	}
}

// wantEnd checks how a question has ended.
func (k *talk) wantEnd(i *inquired, want agent.Answer, err error) {
	k.t.Helper()
	e, yes := i.ended()
	if !yes || e.Answer != want || !errors.Is(e.Err, err) || err == nil && e.Err != nil {
		k.t.Errorf("ended %v: %+v, want %+v, %v; sent %s", yes, e, want, err, k.channel.story())
	}
}

func (k *talk) waits(i *inquired) {
	k.t.Helper()
	if e, yes := i.ended(); yes {
		k.t.Errorf("it has ended: %+v; sent %s", e, k.channel.story())
	}
}

// inquiries returns the questions that were published, and their ends.
func (k *talk) inquiries() (published []string) {
	for _, e := range k.envelopes() {
		switch e := e.Event.(type) {
		case event.Asked:
			published = append(published, e.ID+" asked")
		case event.Answered:
			published = append(published, e.ID+" "+e.Answer)
		}
	}
	return published
}

func (k *talk) wantInquiries(want ...string) {
	k.t.Helper()
	if got := k.inquiries(); !slices.Equal(got, want) {
		k.t.Errorf("published %q, want %q", got, want)
	}
}

// TestServerAsk checks all outcomes of a question, and that the owner sees the question only while it waits for an answer.
func TestServerAsk(t *testing.T) {
	for name, c := range map[string]struct {
		mode      xiaozhi.Mode
		do        func(*talk)
		want      agent.Answer
		err       error
		published string
		next      agent.Shown
	}{
		"words": {xiaozhi.Auto, (*talk).answers, agent.Answer{Outcome: agent.AnswerGiven, Text: "go on"}, nil, "answered", agent.Listening},
		"words in realtime": {xiaozhi.Realtime, (*talk).speak, agent.Answer{Outcome: agent.AnswerGiven, Text: "go on"}, nil, "answered",
			agent.Listening},
		"with a button": {"", func(k *talk) {
			k.listen(xiaozhi.Manual)
			k.speak()
			k.say(xiaozhi.ListenStop{})
		}, agent.Answer{Outcome: agent.AnswerGiven, Text: "go on"}, nil, "answered", agent.Attention},
		"a touch":                       {xiaozhi.Auto, (*talk).touch, agent.Answer{Outcome: agent.AnswerTouch}, nil, "touched", agent.Attention},
		"a robot that only ever sensed": {"", (*talk).touch, agent.Answer{Outcome: agent.AnswerTouch}, nil, "touched", agent.Attention},
		"a muted one": {xiaozhi.Auto, func(k *talk) {
			k.server.Mute(robotID, true)
			k.answers()
			k.touch()
		}, agent.Answer{Outcome: agent.AnswerTouch}, nil, "touched", agent.Listening},
		"nothing that is understood": {xiaozhi.Auto, func(k *talk) {
			k.recognizer.transcripts = []voice.Transcript{{Refused: true}}
			k.answers()
			k.quiet(18 * time.Second)
		}, agent.Answer{Outcome: agent.AnswerExpired}, nil, "expired", agent.Listening},
		"the owner": {xiaozhi.Auto, func(k *talk) {
			k.replies("h", true, nil)
			k.replies("h", false, agent.ErrNoQuestion) // a second word of the owner's
		}, agent.Answer{Outcome: agent.AnswerAllowed}, nil, "allowed", agent.Attention},
		"an abort": {xiaozhi.Auto, func(k *talk) { k.say(xiaozhi.Abort{}) }, agent.Answer{Outcome: agent.AnswerClosed}, nil, "closed",
			agent.Idle},
		"be quiet": {xiaozhi.Auto, func(k *talk) { _ = k.server.Abort(k.t.Context(), robotID) },
			agent.Answer{Outcome: agent.AnswerClosed}, nil, "closed", agent.Idle},
		"the channel closes": {xiaozhi.Auto, func(k *talk) { k.channel.Close(0, "") }, agent.Answer{}, dialogue.ErrOffline, "closed", agent.Idle},
		"deaf": {xiaozhi.Auto, func(k *talk) { k.recognizer.err = voice.ErrUnavailable; k.answers() }, agent.Answer{}, errAny,
			"closed", agent.Listening},
		"the appliance stops": {xiaozhi.Auto, func(k *talk) { k.server.Close() }, agent.Answer{}, dialogue.ErrOffline, "closed", agent.Idle},
	} {
		t.Run(name, func(t *testing.T) {
			talking(t, answer(), func(k *talk) {
				k.recognizer.transcripts = understood("go on")
				if c.mode != "" {
					k.listen(c.mode)
				}
				time.Sleep(settleAfter)
				began := time.Now()
				i := k.inquires()
				time.Sleep(1500 * time.Millisecond)
				k.wantStory("hello, tts start, sentence May we?, 12 packets, tts stop")
				if shown := k.shows(); shown != agent.Notification {
					t.Errorf("shows %s", shown)
				}
				open := k.server.Questions()
				if len(open) != 1 || open[0].ID != "h" || open[0].Text != "May we?" || open[0].Robot != robotID ||
					!open[0].Asked.Equal(began) || !open[0].Until.Equal(began.Add(20*time.Second)) || open[0].Session == "" {
					t.Fatalf("what waits: %+v", open)
				}
				k.waits(i)
				k.events = k.bus.ReadFrom(1)
				c.do(k)
				e, yes := i.ended()
				if c.err == errAny && e.Err != nil && !errors.Is(e.Err, dialogue.ErrOffline) {
					e.Err = errAny
				}
				if !yes || e.Answer != c.want || !errors.Is(e.Err, c.err) {
					t.Errorf("ended %v %+v", yes, e)
				}
				if open := k.server.Questions(); len(open) > 0 {
					t.Errorf("still waits: %+v", open)
				}
				if shown := k.shows(); shown != c.next {
					t.Errorf("shows %s afterwards", shown)
				}
				k.events = k.bus.ReadFrom(1)
				k.wantInquiries("h asked", "h "+c.published)
				if len(k.mind.remembered) > 0 {
					t.Errorf("the agent was given %+v", k.mind.remembered)
				}
			})
		})
	}
}

var errAny = errors.New("any")

// answers opens the robot's microphone and speaks.
func (k *talk) answers() {
	k.listen(xiaozhi.Auto)
	k.speak()
}

// TestServerAskErrors checks the errors of questions that cannot be asked, and that such a question is not stored for the
// next hello.
func TestServerAskErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTalk(t, answer())
		synctest.Wait()
		k.wantEnd(k.inquires(), agent.Answer{}, dialogue.ErrOffline) // before the hello
		k.say(xiaozhi.Hello{})
		k.listen(xiaozhi.Auto)
		expired := agent.Answer{Outcome: agent.AnswerExpired}
		k.wantEnd(k.inquires(func(q *agent.Question) { q.Until = time.Now() }), expired, nil)
		k.wantEnd(k.inquires(func(q *agent.Question) { q.Until = time.Time{} }), expired, nil)
		if e, _ := k.inquires(func(q *agent.Question) { q.Text = "\n😊 " }).ended(); e.Err == nil {
			t.Error("a question without words")
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := k.server.Ask(gone, robotID, agent.Question{Text: "May we?", Until: time.Now().Add(time.Minute)}); !errors.Is(err,
			context.Canceled) {
			t.Errorf("an asker who has left: %v", err)
		}
		if _, err := k.server.Ask(t.Context(), device.ID("a0b1c2d3e4f6"), agent.Question{Text: "May we?"}); !errors.Is(err, dialogue.ErrOffline) {
			t.Errorf("a robot that is not here: %v", err)
		}
		var all []*inquired
		for range maxQueued + 1 {
			all = append(all, k.inquires())
		}
		for _, i := range all {
			k.waits(i)
		}
		k.wantEnd(k.inquires(), agent.Answer{}, dialogue.ErrBusy)
		k.leave()
		for _, i := range all {
			k.wantEnd(i, agent.Answer{}, dialogue.ErrOffline)
		}
		for _, kept := range k.waiting.All() {
			t.Errorf("kept for the next hello: %v", kept)
		}
		k.wantEnd(k.inquires(), agent.Answer{}, dialogue.ErrOffline)
		k.server.Close()
		k.bus.Close()
	})
}

// TestAQuestionIsWithdrawn checks that the end of the context of Ask withdraws the question at any stage, and that an
// answer before that counts.
func TestAQuestionIsWithdrawn(t *testing.T) {
	for name, c := range map[string]struct {
		until     func(*talk)
		sent      string
		published []string
		next      agent.Shown
	}{
		"while it is synthesized": {func(k *talk) { k.synthesizer.delay = time.Second; k.listen(xiaozhi.Auto) },
			"hello, tts start, sentence May we?, tts stop", nil, agent.Idle},
		"in realtime": {func(k *talk) { k.listen(xiaozhi.Realtime); time.Sleep(1500 * time.Millisecond) },
			"hello, tts start, sentence May we?, 12 packets, tts stop", []string{"h asked", "h closed"}, agent.Listening},
		"while somebody answers": {func(k *talk) { k.waitsForWords(); k.someWords() },
			"hello, tts start, sentence May we?, 12 packets, tts stop", []string{"h asked", "h closed"}, agent.Listening},
		"while his words are recognized": {func(k *talk) { k.waitsForWords(); k.recognizer.delay = time.Second; k.speak() },
			"hello, tts start, sentence May we?, 12 packets, tts stop", []string{"h asked", "h closed"}, agent.Listening},
		"after its answer": {func(k *talk) { k.waitsForWords(); k.touch() },
			"hello, tts start, sentence May we?, 12 packets, tts stop", []string{"h asked", "h touched"}, agent.Listening},
	} {
		t.Run(name, func(t *testing.T) {
			talking(t, answer(), func(k *talk) {
				i := k.inquires()
				c.until(k)
				i.withdraw()
				if name == "after its answer" {
					k.wantEnd(i, agent.Answer{Outcome: agent.AnswerTouch}, nil)
				} else {
					k.wantEnd(i, agent.Answer{}, context.Canceled)
				}
				if shown := k.shows(); shown != c.next {
					t.Errorf("shows %s", shown)
				}
				k.wantStory(c.sent)
				if open := k.server.Questions(); len(open) > 0 {
					t.Errorf("it still waits: %+v", open)
				}
				k.pass(20 * time.Second)
				if n := strings.Count(k.channel.story(), "May we?"); n > 1 || c.published == nil && n > 0 && k.synthesizer.delay == 0 {
					t.Errorf("asked later: %s", k.channel.story())
				}
				k.events = k.bus.ReadFrom(1)
				k.wantInquiries(c.published...)
				if isClosed(k.channel) {
					t.Errorf("closed: %s", k.channel.reason)
				}
			})
		})
	}
}

// waitsForWords waits until the question was asked, and opens the robot's microphone for the answer.
func (k *talk) waitsForWords() {
	k.listen(xiaozhi.Auto)
	k.pass(1500 * time.Millisecond)
	k.listen(xiaozhi.Auto)
}

// TestAnswerBeforeWithdrawal checks that an answer that comes before the withdrawal is handled is not lost.
func TestAnswerBeforeWithdrawal(t *testing.T) {
	server := NewServer(Options{Log: slog.New(slog.DiscardHandler)})
	defer server.Close()
	inputs := make(chan posted)
	server.sessions.open[robotID] = &session{inputs: inputs, done: make(chan struct{})}
	ctx, withdraw := context.WithCancel(t.Context())
	i := &inquired{withdraw, make(chan dialogue.Ending, 1)}
	go func() {
		a, err := server.Ask(ctx, robotID, agent.Question{Text: "May we?", Until: time.Now().Add(time.Hour)})
		i.done <- dialogue.Ending{Answer: a, Err: err}
	}()
	asked := <-inputs
	close(asked.handled)
	i.withdraw()
	withdrawn := <-inputs
	want := dialogue.Ending{Answer: agent.Answer{Outcome: agent.AnswerTouch}}
	asked.Input.(dialogue.Ask).Question.Ended <- want
	close(withdrawn.handled)
	if got := <-i.done; got != want {
		t.Errorf("ended %+v, want %+v", got, want)
	}
}

// TestASecondQuestion checks that a second question waits for the first one, and that an answer belongs to one question
// only.
func TestASecondQuestion(t *testing.T) {
	second := func(q *agent.Question) { q.ID, q.Text = "second", "And they?" }
	t.Run("lets somebody speak who has begun to", func(t *testing.T) {
		talking(t, answer(), func(k *talk) {
			first := k.inquires()
			i := k.inquires(second)
			k.waitsForWords()
			k.someWords()
			k.channel.forget()
			first.withdraw()
			time.Sleep(yieldFor - time.Second)
			k.wantStory("")
			k.pass(2 * time.Second)
			k.touch()
			k.wantEnd(i, agent.Answer{Outcome: agent.AnswerTouch}, nil)
		})
	})
	t.Run("in the same words is another", func(t *testing.T) {
		talking(t, answer(), func(k *talk) {
			k.listen(xiaozhi.Auto)
			first := k.inquires()
			time.Sleep(300 * time.Millisecond)
			first.withdraw()
			i := k.inquires()
			time.Sleep(200 * time.Millisecond) // the robot still plays the rest of the first question
			k.touch()
			k.waits(i)
			time.Sleep(time.Second)
			k.touch()
			k.wantEnd(i, agent.Answer{Outcome: agent.AnswerTouch}, nil)
		})
	})
}

// TestAMicrophoneThatOpensForAQuestion checks that a microphone that opens just after a question has begun, because of a
// detected face, does not interrupt the question, and that words right after the question answer it.
func TestAMicrophoneThatOpensForAQuestion(t *testing.T) {
	for _, mode := range []xiaozhi.Mode{xiaozhi.Auto, xiaozhi.Realtime} {
		t.Run(string(mode), func(t *testing.T) {
			talking(t, answer(), func(k *talk) {
				k.say(xiaozhi.Event{Name: "face_detected", Data: []byte("{}")})
				k.recognizer.transcripts = understood("yes")
				i := k.inquires()
				time.Sleep(300 * time.Millisecond)
				k.listen(mode)
				time.Sleep(900 * time.Millisecond) // the question ends 1.2 s after its beginning
				k.wantStory("hello, tts start, sentence May we?, 10 packets, tts start, sentence May we?, 2 packets, tts stop")
				if mode == xiaozhi.Auto {
					k.listen(mode)
				}
				k.speak()
				k.wantEnd(i, agent.Answer{Outcome: agent.AnswerGiven, Text: "yes"}, nil)
			})
		})
	}
}

// TestAskWithoutSynthesizer checks that Ask returns an error if the synthesizer fails, and that the next question is asked.
func TestAskWithoutSynthesizer(t *testing.T) {
	talking(t, answer(), func(k *talk) {
		k.listen(xiaozhi.Auto)
		k.synthesizer.err = voice.ErrUnavailable
		i := k.inquires()
		e, yes := i.ended()
		if !yes || e.Err == nil || errors.Is(e.Err, dialogue.ErrOffline) || !strings.Contains(e.Err.Error(), "speak") {
			t.Errorf("%v: %+v", yes, e)
		}
		k.synthesizer.err = nil
		i = k.inquires()
		time.Sleep(3 * time.Second)
		k.touch()
		k.wantEnd(i, agent.Answer{Outcome: agent.AnswerTouch}, nil)
		k.wantInquiries("h asked", "h touched")
	})
}

// TestAQuestionKeepsTheChannel checks that the channel stays open while a question waits, and for the idle time afterwards.
func TestAQuestionKeepsTheChannel(t *testing.T) {
	talking(t, answer(), func(k *talk) {
		k.listen(xiaozhi.Auto)
		k.quiet(50 * time.Second)
		i := k.inquires(func(q *agent.Question) { q.Until = time.Now().Add(2 * time.Minute) })
		time.Sleep(1500 * time.Millisecond)
		k.listen(xiaozhi.Auto)
		time.Sleep(100 * time.Second)
		if isClosed(k.channel) {
			t.Fatalf("hung up: %s", k.channel.reason)
		}
		must.Succeed(t, k.server.Reply("h", false))
		k.wantEnd(i, agent.Answer{Outcome: agent.AnswerDenied}, nil)
		time.Sleep(50 * time.Second)
		if isClosed(k.channel) {
			t.Fatalf("hung up: %s", k.channel.reason)
		}
		time.Sleep(11 * time.Second)
		if !isClosed(k.channel) {
			t.Error("it is never hung up")
		}
	})
}
