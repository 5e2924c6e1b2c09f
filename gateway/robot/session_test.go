package robot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/must"
	"perch/voice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var happy = agent.Emotion{Name: "happy", Emoji: "😊"}

// answer returns a mind that answers like the reflex brain: a happy face, and then the sentences.
func answer(sentences ...string) *scriptedMind {
	replies := []agent.Reply{agent.Felt{Emotion: happy}}
	for _, s := range sentences {
		replies = append(replies, agent.Say{Text: s})
	}
	return mindSaying(append(replies, agent.Done{End: agent.Continue})...)
}

// TestTurnRecord checks the record and the exchange of a turn. The utterance ends with a pause in auto mode, and with the
// button in manual mode.
func TestTurnRecord(t *testing.T) {
	for mode, c := range map[xiaozhi.Mode]struct{ least, most time.Duration }{
		xiaozhi.Auto: {1500 * time.Millisecond, 2500 * time.Millisecond}, xiaozhi.Manual: {4 * time.Second, 6 * time.Second},
	} {
		talking(t, answer("It is late.", "Go to bed."), func(k *talk) {
			k.hears(mode, "what time is it")
			if mode == xiaozhi.Manual {
				k.speak()
				k.say(xiaozhi.ListenStop{})
			}
			k.pass(5 * time.Second)
			if e := k.mind.remembered; len(e) != 1 || e[0] != (agent.Exchange{Heard: "what time is it", Said: "It is late. Go to bed."}) {
				t.Errorf("%s: remembered %+v", mode, e)
			}
			if utterance := k.recognizer.durations[0]; utterance < c.least || utterance > c.most {
				t.Errorf("%s: an utterance of %s", mode, utterance)
			}
			if turn := k.turns.Last; turn.End != event.EndDone || turn.Stages["first_packet"] == 0 {
				t.Errorf("%s: kept %+v", mode, turn)
			}
		})
	}
}

// TestTurnDetails checks that the brain's thoughts and tool calls are stored with the turn, and published too.
func TestTurnDetails(t *testing.T) {
	mind := &scriptedMind{answer: func(ctx context.Context, turn agent.Turn, out func(agent.Reply) error) error {
		running := event.ToolStatus{ID: "1", Name: "search", Status: event.ToolRunning, Detail: "trains"}
		done := event.ToolStatus{ID: "1", Name: "search", Status: event.ToolDone}
		for _, e := range []event.Event{event.ThinkingStarted{Brain: "openai 2"}, event.Thought{Text: "A train?"}, event.Thought{Text: "Yes."}, running, done} {
			turn.Publish(e)
		}
		for i := range 100 {
			turn.Publish(event.ToolStatus{ID: fmt.Sprint("more", i), Name: strings.Repeat("long", 100), Status: event.ToolDone, Detail: strings.Repeat("x", 1000)})
			turn.Publish(event.Thought{Text: strings.Repeat("more ", 1000)})
			_, _ = turn.Body.Call(ctx, "self.none", map[string]any{"text": strings.Repeat("x", 1000)})
		}
		return errors.Join(out(agent.Say{Text: "At nine."}), out(agent.Done{End: agent.Continue}))
	}}
	talking(t, mind, func(k *talk) {
		k.hears(xiaozhi.Auto, "when does the train go")
		k.pass(5 * time.Second)
		d := k.turns.Last.Details
		if d.Brain != "openai 2" || !strings.HasPrefix(d.Thoughts, "A train?\nYes.\n") || len(d.Calls) == 0 || d.Calls[0].Name != "self.none" || d.Calls[0].Error == "" {
			t.Errorf("stored %.300v", d)
		}
		if want := (ToolUse{Name: "search", Status: event.ToolDone, Detail: "trains"}); d.Tools[0] != want {
			t.Errorf("stored %+v, want %+v", d.Tools[0], want)
		}
		if text, err := json.Marshal(d); err != nil || len(text) > 32<<10 {
			t.Errorf("the details have %d bytes, %v", len(text), err)
		}
	})
}

func understood(texts ...string) (all []voice.Transcript) {
	for _, text := range texts {
		all = append(all, voice.Transcript{Text: text})
	}
	return all
}

// TestPace checks the times of the packets of a long answer, in virtual time, for a robot with a queue of 40 packets.
func TestPace(t *testing.T) {
	long := strings.Repeat("word ", 50) // 25 s
	talking(t, answer(long, long), func(k *talk) {
		k.synthesizer.delay = 300 * time.Millisecond
		k.hears(xiaozhi.Auto, "tell me a story")
		time.Sleep(time.Minute)
		packets := k.channel.packets()
		if want := 2 * 25 * 1000 / 60; len(packets) < want {
			t.Fatalf("%d packets, want %d", len(packets), want)
		}
		late, queue, played, dry := 0, 0, packets[0], 0
		for i, at := range packets {
			if i > 0 && at.Sub(packets[i-1]) > 65*time.Millisecond {
				late++
			}
			if at.After(played) {
				dry++
				played = at
			}
			played = played.Add(60 * time.Millisecond)
			queue = max(queue, int(played.Sub(at)/(60*time.Millisecond)))
			if lead := played.Sub(at); lead > time.Second {
				t.Errorf("packet %d leaves %s ahead", i, lead)
			}
		}
		if dry > 0 || queue > 40 || late*100 > len(packets) {
			t.Errorf("the robot ran dry %d times, had %d packets queued, %d gaps were over 65 ms", dry, queue, late)
		}
		all := k.channel.all()
		stop := all[len(all)-1]
		if stop.message != (xiaozhi.TTSStop{}) || stop.at.Before(played) || stop.at.Sub(played) > 300*time.Millisecond {
			t.Errorf("%T %s after the last packet was played", stop.message, stop.at.Sub(played))
		}
	})
}

// TestPaceFitsTheFirmware checks how many packets are sent ahead to a robot whose queue has run empty: a number that fits
// the queue of its firmware, and a smaller one if the firmware is unknown.
func TestPaceFitsTheFirmware(t *testing.T) {
	const stackChan = "m5stack-stack-chan"
	for _, c := range []struct {
		board, firmware string
		want            int // packets
	}{
		{"", "1.9.4", 11},
		{"", "2.4.2", 11},
		{"", "2.4.2-rc1", 11},
		{"", "2.5.0", 10},
		{"", "2.10", 10},
		{"", "3", 10},
		{"", "", 10},
		{"", "latest", 10},
		{"", "v2.1", 10},
		{stackChan, "1.2.4", 11}, // based on xiaozhi 2.2.4
		{stackChan, "1.4.1", 10}, // based on an unknown version of xiaozhi
		{stackChan, "2.4.2", 11}, // xiaozhi's own build
	} {
		synctest.Test(t, func(t *testing.T) {
			k := newTalkOn(t, answer(strings.Repeat("word ", 10)), xiaozhi.Framing1, func(k *talk) {
				k.robot.Board, k.robot.Firmware = c.board, c.firmware
				k.synthesizer.delay = 1200 * time.Millisecond // for each second of sound, so that the queue runs empty
			})
			k.say(xiaozhi.Hello{})
			k.listen(xiaozhi.Auto)
			must.Succeed(t, k.server.InjectText(t.Context(), robotID, "tell me a story"))
			k.pass(20 * time.Second)
			queue, played := 0, time.Time{}
			for _, at := range k.channel.packets() {
				if at.After(played) {
					played = at
				}
				played = played.Add(voice.FrameDuration)
				queue = max(queue, int(played.Sub(at)/voice.FrameDuration))
			}
			if queue != c.want {
				t.Errorf("%s %q had %d packets, want %d", c.board, c.firmware, queue, c.want)
			}
			k.close()
		})
	}
}

// TestGapAfterTTSStart checks the gap between the message that makes the robot speak and the first packets, even if it takes
// time to send the message. The robot empties its queue when it begins to speak.
func TestGapAfterTTSStart(t *testing.T) {
	for _, takes := range []time.Duration{0, 10 * time.Millisecond} {
		t.Run(takes.String(), func(t *testing.T) {
			talking(t, answer("It is late."), func(k *talk) {
				k.channel.takes = takes
				k.hears(xiaozhi.Auto, "x")
				k.pass(time.Second)
				var started time.Time
				for _, s := range k.channel.all() {
					switch s.message.(type) {
					case xiaozhi.TTSStart, xiaozhi.SentenceStart: // firmware builds begin to speak at one or the other
						started = s.at
					}
				}
				packets := k.channel.packets()
				if first := packets[0].Sub(started); first != 14*time.Millisecond {
					t.Errorf("the first packet leaves %s after the robot was told to speak", first)
				}
				if second := packets[1].Sub(started); second != 60*time.Millisecond {
					t.Errorf("the second packet leaves %s after the robot was told to speak", second)
				}
			})
		})
	}
}

// TestAbortCancelsTheBrain checks that an abort cancels a brain that is still answering.
func TestAbortCancelsTheBrain(t *testing.T) {
	cancelled := make(chan error, 1)
	mind := &scriptedMind{answer: func(_ context.Context, _ agent.Turn, out func(agent.Reply) error) (err error) {
		for err == nil {
			err = out(agent.Say{Text: strings.Repeat("word ", 10)})
		}
		cancelled <- err
		return err
	}}
	talking(t, mind, func(k *talk) {
		k.hears(xiaozhi.Auto, "tell me a story")
		k.pass(2 * time.Second)
		k.say(xiaozhi.Abort{Reason: xiaozhi.WakeWord})
		k.pass(time.Second)
		if len(cancelled) == 0 {
			t.Fatal("the brain goes on")
		}
		if err := <-cancelled; !errors.Is(err, context.Canceled) {
			t.Errorf("the brain ended with %v", err)
		}
	})
}

// TestNoiseKeepsNoChannelOpen checks that utterances that are not understood do not extend the idle time.
func TestNoiseKeepsNoChannelOpen(t *testing.T) {
	talking(t, answer(), func(k *talk) {
		k.recognizer.always = voice.Transcript{Refused: true}
		k.listen(xiaozhi.Auto)
		for range 40 {
			k.speak()
		}
		if !isClosed(k.channel) || k.channel.reason != "idle" {
			t.Errorf("the channel is open: %q", k.channel.reason)
		}
		<-k.ended
		if s := k.sessions.Last; s.Why != "idle" || s.Closed.IsZero() {
			t.Errorf("kept %+v", s)
		}
	})
}

func isClosed(l *fakeChannel) bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

func TestTheLongestUtterance(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		k.recognizer.transcripts = understood("x", "y")
		k.listen(xiaozhi.Auto)
		for range 17 * 1000 / 60 {
			k.put(frame{audio: xiaozhi.Audio{Opus: k.packets[3]}})
			time.Sleep(60 * time.Millisecond)
		}
		if len(k.recognizer.durations) != 1 || k.recognizer.durations[0] > voice.MaxUtterance {
			t.Errorf("heard %v", k.recognizer.durations)
		}
	})
}

func TestInvalidOpusIsIgnored(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		k.recognizer.transcripts = understood("x")
		k.listen(xiaozhi.Auto)
		for _, p := range [][]byte{{}, {0x03, 0x00}, make([]byte, 5000), {0xff}} {
			k.put(frame{audio: xiaozhi.Audio{Opus: p}})
		}
		k.speak()
		time.Sleep(2 * time.Second)
		k.wantStory("hello, stt x, face happy, tts start, sentence Yes., 7 packets, tts stop")
	})
}

func TestFailuresAreSpokenAndTheNextTurnIsClean(t *testing.T) {
	phrases := func(o *Options) { o.Phrases = func(_, name string) string { return "😢 " + name } }
	for name, c := range map[string]struct {
		breakIt func(*talk)
		want    string
	}{
		"the brain is away": {func(k *talk) {
			k.mind.answer = func(context.Context, agent.Turn, func(agent.Reply) error) error { return agent.ErrAway }
		}, "stt x, face sad, tts start, sentence away, 7 packets, tts stop"},
		"the brain fails": {func(k *talk) {
			k.mind.answer = func(context.Context, agent.Turn, func(agent.Reply) error) error { return errors.New("a tool has gone") }
		}, "stt x, face sad, tts start, sentence failed, 10 packets, tts stop"},
		"the recognizer fails": {func(k *talk) { k.recognizer.err = voice.ErrUnavailable },
			"face sad, tts start, sentence deaf, 7 packets, tts stop"},
		"the synthesizer is away": {func(k *talk) { k.synthesizer.err = voice.ErrUnavailable },
			"stt x, face happy, tts start, sentence Yes., face sad, sentence failed, 10 packets, tts stop"},
	} {
		t.Run(name, func(t *testing.T) {
			talking(t, answer("Yes."), func(k *talk) {
				k.channel.forget()
				works := k.mind.answer
				c.breakIt(k)
				k.hears(xiaozhi.Auto, "x")
				time.Sleep(2 * time.Second)
				k.wantStory(c.want)
				if shown := k.shows(); shown != agent.Failed {
					t.Errorf("shows %s", shown)
				}
				k.mind.answer, k.recognizer.err, k.synthesizer.err = works, nil, nil
				k.channel.forget()
				k.hears(xiaozhi.Auto, "y")
				time.Sleep(2 * time.Second)
				k.wantStory("stt y, face happy, tts start, sentence Yes., 7 packets, tts stop")
			}, phrases)
		})
	}
}

// crowdedRecognizer is busy for a second after the end of an utterance, and then needs three more seconds if the utterance
// waits patiently.
type crowdedRecognizer struct {
	transcript voice.Transcript
	err        error
}

func (*crowdedRecognizer) Name() string { return "crowded" }

func (c *crowdedRecognizer) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	if err := u.Wait(ctx); err != nil {
		return voice.Transcript{}, err
	}
	if !o.Patient {
		time.Sleep(time.Second)
		return voice.Transcript{}, voice.ErrBusy
	}
	time.Sleep(3 * time.Second)
	return c.transcript, c.err
}

// TestBusyRecognizersAreWaitedFor checks that a robot asks for a moment once if the recognizers are busy, and then answers,
// or says that it has failed.
func TestBusyRecognizersAreWaitedFor(t *testing.T) {
	recognizer := &crowdedRecognizer{}
	talking(t, answer("Yes."), func(k *talk) {
		const moment = "face thinking, tts start, sentence moment, 10 packets"
		for _, c := range []struct {
			transcript voice.Transcript
			err        error
			want       string
		}{
			{voice.Transcript{Text: "x"}, nil, "stt x, face happy, sentence Yes., 7 packets, tts stop"},
			{voice.Transcript{}, voice.ErrBusy, "face sad, sentence failed, 10 packets, tts stop"},
			{voice.Transcript{Refused: true}, nil, "stt …, face thinking, sentence misheard, 14 packets, tts stop"},
			{voice.Transcript{Refused: true}, nil, "stt …, face thinking, sentence misheard, 14 packets, tts stop"}, // although it is not TurnStart.Aloud
		} {
			recognizer.transcript, recognizer.err = c.transcript, c.err
			k.channel.forget()
			k.listen(xiaozhi.Auto)
			k.speak()
			time.Sleep(8 * time.Second)
			k.wantStory(moment + ", " + c.want)
		}
	}, func(o *Options) {
		o.Recognizer = recognizer
		o.Phrases = func(_, name string) string {
			return map[string]string{"moment": "🤔 moment", "failed": "😢 failed", "misheard": "🤔 misheard"}[name]
		}
	})
}

// TestAFalseAlarmEndsInSilence checks that after a wake word that nobody has said, in a silent room or a room with a noise,
// the robot says nothing, no turn begins, and the channel closes when it is idle.
func TestAFalseAlarmEndsInSilence(t *testing.T) {
	for name, c := range map[string]struct {
		transcript voice.Transcript // of the noise
		noise      bool
		want       string
	}{
		"silent room":          {voice.Transcript{}, false, "hello"},
		"noise":                {voice.Transcript{Text: "[door slams]"}, true, "hello, stt …"},
		"an invented sentence": {voice.Transcript{Text: "Thanks for watching!", NoSpeech: 0.9}, true, "hello, stt …"},
	} {
		t.Run(name, func(t *testing.T) {
			recognizer := &scriptedRecognizer{always: c.transcript}
			talking(t, answer("Yes."), func(k *talk) {
				k.say(xiaozhi.ListenDetect{Text: "Hi, Stack Chan"})
				k.listen(xiaozhi.Auto)
				if c.noise {
					k.speak()
				}
				k.quiet(50 * time.Second)
				k.wantStory(c.want)
				k.quiet(15 * time.Second)
				if !isClosed(k.channel) || k.channel.reason != "idle" {
					t.Errorf("the channel is closed because %q", k.channel.reason)
				}
				k.wantStory(c.want)
				happened := k.happened()
				for _, turn := range []string{"heard", "thinking_started", "speaking_started", "turn_ended"} {
					if slices.Contains(happened, turn) {
						t.Errorf("there was a turn: %v", happened)
					}
				}
				for id := range k.turns.All() {
					t.Errorf("turn %s is kept", id)
				}
			}, func(o *Options) {
				o.Recognizer = voice.Recognizers{recognizer}
				o.Phrases = func(_, name string) string { return name }
			})
		})
	}
}

// TestAFailureBeforeThePhrasesAreMade checks that a phrase that is not synthesized yet is synthesized when it is needed.
func TestAFailureBeforeThePhrasesAreMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newTalkOn(t, answer("Yes."), xiaozhi.Framing1, func(k *talk) {
			k.synthesizer.delay, k.recognizer.err = 2*time.Second, voice.ErrUnavailable
		}, func(o *Options) { o.Phrases = func(_, name string) string { return "😢 " + name } })
		k.say(xiaozhi.Hello{Version: 1, Transport: "websocket"})
		k.channel.forget()
		k.hears(xiaozhi.Auto, "x")
		time.Sleep(4 * time.Second)
		k.wantStory("face sad, tts start, sentence deaf, 7 packets, tts stop")
		k.close()
	})
}

// TestASecondSocketReplacesTheFirst checks that a second channel replaces the first without an event.RobotOffline.
func TestASecondSocketReplacesTheFirst(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		k.happened()
		first := k.channel
		ended := k.ended
		k.reconnect()
		synctest.Wait()
		if !isClosed(first) {
			t.Error("the first channel is open")
		}
		<-ended
		k.say(xiaozhi.Hello{})
		if kinds := k.happened(); !slices.Equal(kinds, []string{"robot_online"}) {
			t.Errorf("happened %v", kinds)
		}
		k.hears(xiaozhi.Auto, "x")
		time.Sleep(2 * time.Second)
		k.wantStory("hello, stt x, face happy, tts start, sentence Yes., 7 packets, tts stop")
		if open := k.server.List(); len(open) != 1 {
			t.Errorf("open: %+v", open)
		}
	})
}

// TestARobotThatDoesNotRead checks that a robot is disconnected when too many messages wait to be sent to it.
func TestARobotThatDoesNotRead(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		k.channel.stuck.Store(true)
		for range 64 + 2 {
			k.say(xiaozhi.Abort{})
		}
		k.pass(2 * time.Second)
		if !isClosed(k.channel) || k.channel.reason != "too slow" {
			t.Errorf("the channel is open: %q", k.channel.reason)
		}
	})
}

// TestStages checks the durations of stages, of which some may be missing, and that the time of tools that run at the same
// time is counted once.
func TestStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stages
		s.endStage(event.StageRecognize) // ignored before start
		s.start(time.Now().Add(-600 * time.Millisecond))
		s.endStage(event.StageEndpoint)
		time.Sleep(300 * time.Millisecond)
		s.endStage(event.StageRecognize)
		time.Sleep(100 * time.Millisecond)
		s.endStage(event.StageFirstToken)
		s.setToolStatus(event.ToolDone) // ignored, because no tool is running
		s.setToolStatus(event.ToolRunning)
		time.Sleep(time.Second)
		s.setToolStatus(event.ToolRunning)
		time.Sleep(time.Second)
		s.setToolStatus(event.ToolDone)
		s.setToolStatus(event.ToolFailed)
		s.endStage(event.StageFirstAudio) // without event.StageFirstSentence, as for a phrase
		s.endStage(event.StageFirstAudio)
		time.Sleep(20 * time.Millisecond)
		s.endStage(event.StageFirstPacket)
		want := map[string]int64{event.StageEndpoint: 600, event.StageRecognize: 300, event.StageFirstToken: 100, event.StageFirstAudio: 2000,
			event.StageFirstPacket: 3020, event.StageTools: 2000}
		if got := s.durations(); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}
