package robot

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/must"
	"perch/voice"
	"perch/voice/music"
)

// tune is music of a length that ends with an error, or with nil.
type tune struct {
	left   time.Duration
	waits  time.Duration // until its first sound
	ends   error
	begins int // number of calls of Play
}

// Play implements dialogue.Music.
func (m *tune) Play(ctx context.Context, out func([]int16) error) error {
	m.begins++
	select {
	case <-time.After(m.waits):
	case <-ctx.Done():
		return ctx.Err()
	}
	frame := syllables(1)[:voice.SpeakerFrame]
	for m.left > 0 {
		if err := out(frame); err != nil {
			return err
		}
		m.left -= voice.FrameDuration
	}
	return m.ends
}

// plays makes the robot play music.
func (k *talk) plays(m *tune) {
	k.t.Helper()
	answer := make(chan error, 1)
	must.Succeed(k.t, k.server.post(k.t.Context(), robotID, dialogue.PlayMusic{Sound: &dialogue.Sound{Name: "jazz", Music: m}, Answer: answer}))
	must.Succeed(k.t, <-answer)
}

// music returns the state of each event.Music since the last call of happened or envelopes.
func (k *talk) music() string {
	synctest.Wait()
	var states []string
	for _, e := range k.envelopes() {
		if m, ok := e.Event.(event.Music); ok {
			states = append(states, strings.TrimSpace(m.State+" "+m.Reason))
		}
	}
	return strings.Join(states, ", ")
}

// wantMusic checks the result of music, and whether the robot plays.
func (k *talk) wantMusic(states string, plays bool) {
	k.t.Helper()
	if got := k.music(); got != states {
		k.t.Errorf("the music is %q, want %q", got, states)
	}
	if name := k.states.Robot(robotID).Music; (name == "jazz") != plays {
		k.t.Errorf("the state says that %q plays", name)
	}
}

const whole = 24 * time.Hour

// TestMusicIsSentAsItIsPlayed checks that music is neither sent nor decoded faster than it is played, that the channel
// stays open longer than an idle one, and that the robot does not look as if it spoke.
func TestMusicIsSentAsItIsPlayed(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		edges := k.watchMouth()
		k.listen(xiaozhi.Auto)
		m := &tune{left: whole}
		k.plays(m)
		k.pass(10 * time.Second)
		if shown := k.shows(); shown != agent.Idle || k.states.Robot(robotID).Music != "jazz" {
			t.Errorf("shows %s and %+v", shown, k.states.Robot(robotID))
		}
		k.channel.forget()
		k.pass(2 * time.Minute)
		if n := len(k.channel.packets()); n < 1_995 || n > 2_005 {
			t.Errorf("%d packets in two minutes", n)
		}
		if decoded := whole - m.left; m.begins != 1 || decoded < 130*time.Second || decoded > 150*time.Second {
			t.Errorf("it began %d times, and after 130 s, %s were decoded", m.begins, decoded)
		}
		if moved := edges(); len(moved) > 0 {
			t.Errorf("the mouth moves: %v", moved)
		}
		k.leave()
		k.wantMusic("stopped", false)
	}, func(o *Options) { o.Idle = time.Minute })
}

func TestMusicPausesForWhatIsSaid(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		k.listen(xiaozhi.Auto)
		m := &tune{left: whole}
		k.plays(m)
		k.pass(10 * time.Second)
		k.wantMusic("playing", true)
		k.channel.forget()
		k.queueText("Dinner is ready.")
		k.pass(6 * time.Second)
		story := k.channel.story()
		before, after, _ := strings.Cut(story, "sentence Dinner is ready., ")
		if !strings.HasPrefix(before, "tts stop, tts start, ") || !strings.Contains(after, "tts stop, tts start, sentence , ") {
			t.Errorf("sent %s", story)
		}
		k.wantMusic("paused, playing", true)
		k.notify("n", "Fire!", true)
		k.pass(6 * time.Second)
		k.wantMusic("paused, playing", true)
		must.Succeed(t, k.play("purr"))
		k.pass(6 * time.Second)
		k.wantMusic("paused, playing", true)
		if err := k.play("no such sound"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if m.begins != 4 {
			t.Errorf("it began %d times", m.begins)
		}
	})
}

// TestPeopleTalkWhileMusicConnects checks that a robot hears people while its music has no sound yet.
func TestPeopleTalkWhileMusicConnects(t *testing.T) {
	for _, mode := range []xiaozhi.Mode{xiaozhi.Realtime, xiaozhi.Auto} {
		t.Run(string(mode), func(t *testing.T) {
			talking(t, answer("Yes."), func(k *talk) {
				k.listen(mode)
				k.plays(&tune{left: whole, waits: 20 * time.Second})
				k.pass(time.Second)
				k.channel.forget()
				k.recognizer.transcripts = understood("what time is it")
				k.speak()
				k.pass(4 * time.Second)
				if story := k.channel.story(); !strings.Contains(story, "stt what time is it") {
					t.Errorf("sent %s", story)
				}
			})
		})
	}
}

// TestPeopleTalkDuringMusic checks that music waits for people: after a wake word, in realtime mode and after typed text.
func TestPeopleTalkDuringMusic(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		k.listen(xiaozhi.Realtime)
		k.plays(&tune{left: whole})
		k.pass(5 * time.Second)
		k.wantMusic("playing", true)
		k.recognizer.transcripts = understood("what time is it")
		k.speak()
		k.wantMusic("paused", true)
		k.quiet(2 * time.Second) // the answer and part of the pause after it
		k.wantMusic("", true)
		k.quiet(4 * time.Second)
		k.wantMusic("playing", true)
	})
	talking(t, answer("Yes."), func(k *talk) {
		k.listen(xiaozhi.Auto)
		k.plays(&tune{left: whole})
		k.pass(5 * time.Second)
		k.say(xiaozhi.Abort{Reason: xiaozhi.WakeWord})
		k.wantMusic("playing, paused", true)
		k.hears(xiaozhi.Auto, "what time is it")
		k.pass(time.Second)
		k.wantMusic("", true)
		k.pass(7 * time.Second)
		k.wantMusic("playing", true)
		k.say(xiaozhi.Abort{Reason: xiaozhi.WakeWord}) // and then says nothing
		k.listen(xiaozhi.Auto)
		k.quiet(2 * time.Second)
		k.wantMusic("paused", true)
		k.quiet(2 * time.Second)
		k.wantMusic("playing", true)
		must.Succeed(t, k.server.InjectText(k.t.Context(), robotID, "hello"))
		k.pass(10 * time.Second)
		k.wantMusic("paused, playing", true)
	})
}

// TestPushToTalkDuringMusic checks that music pauses for the button of push-to-talk, whose press sends an abort and opens
// the microphone, and goes on after the answer.
func TestPushToTalkDuringMusic(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		press := func() {
			k.say(xiaozhi.Abort{})
			k.pass(100 * time.Millisecond)
			k.listen(xiaozhi.Manual)
		}
		k.listen(xiaozhi.Manual)
		k.say(xiaozhi.ListenStop{})
		k.plays(&tune{left: whole})
		k.pass(5 * time.Second)
		k.wantMusic("playing", true)
		press()
		k.recognizer.transcripts = understood("what time is it")
		k.someWords()
		k.wantMusic("paused", true)
		k.say(xiaozhi.ListenStop{})
		k.pass(7 * time.Second)
		k.wantMusic("playing", true)
		press()
		k.someWords()
		k.say(xiaozhi.Abort{}) // a touch, and no press of the button
		k.pass(time.Second)
		k.wantMusic("paused, stopped", false)
	})
}

func TestMusicIsStopped(t *testing.T) {
	for name, stop := range map[string]func(k *talk){
		"by a touch": func(k *talk) {
			k.say(xiaozhi.Abort{})
			k.wantMusic("playing, paused", true) // it might be the button of push-to-talk
			k.pass(time.Second)
		},
		"by abort":    func(k *talk) { must.Succeed(k.t, k.server.Abort(k.t.Context(), robotID)) },
		"by its name": func(k *talk) { must.Succeed(k.t, k.server.StopMusic(k.t.Context(), robotID)) },
		"by hanging up": func(k *talk) {
			must.Succeed(k.t, k.server.Hangup(k.t.Context(), robotID, "enough"))
			<-k.ended
		},
	} {
		t.Run(name, func(t *testing.T) {
			talking(t, answer("Yes."), func(k *talk) {
				k.listen(xiaozhi.Auto)
				k.plays(&tune{left: whole})
				k.pass(5 * time.Second)
				stop(k)
				if states := k.music(); states != "stopped" && states != "playing, stopped" {
					t.Errorf("the music is %q", states)
				}
				k.channel.forget()
				k.pass(20 * time.Second)
				k.wantMusic("", false)
				if n := len(k.channel.packets()); n > 0 {
					t.Errorf("%d packets follow", n)
				}
			})
		})
	}
}

func TestMusicEnds(t *testing.T) {
	broken := func(o *Options) {
		o.Phrases = func(_, name string) string {
			return map[string]string{dialogue.PhraseMusic: "It cannot be played."}[name]
		}
	}
	talking(t, answer("Yes."), func(k *talk) {
		k.listen(xiaozhi.Auto)
		k.plays(&tune{left: 3 * time.Second})
		k.pass(10 * time.Second)
		k.wantMusic("playing, stopped", false)
		for _, left := range []time.Duration{3 * time.Second, 0} {
			k.channel.forget()
			k.plays(&tune{left: left, ends: errors.New("the station is gone")})
			k.pass(left + 2*time.Second)
			if shown := k.shows(); left == 0 && shown != agent.Speaking && shown != agent.Failed {
				t.Errorf("shows %s", shown)
			}
			k.pass(10 * time.Second)
			if story := k.channel.story(); !strings.Contains(story, "sentence It cannot be played.") {
				t.Errorf("after %s, sent %s", left, story)
			}
		}
		k.plays(&tune{left: whole})
		k.plays(&tune{left: whole})
		k.pass(5 * time.Second)
		k.wantMusic("playing", true)
	}, broken)
}

func TestMusicThatIsNotPlayed(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		var shown interface{ Code() string }
		if err := k.server.PlayMusic(k.t.Context(), robotID, "jazz"); !errors.As(err, &shown) || shown.Code() != "unknown_music" {
			t.Errorf("music that is not configured: %v", err)
		}
		k.leave()
		if err := k.server.PlayMusic(k.t.Context(), robotID, "jazz"); !errors.Is(err, dialogue.ErrOffline) {
			t.Errorf("a robot that is away: %v", err)
		}
	})
}

// TestStrangersPlayNoMusic checks that a stranger plays no music by command and that its brain has none, and that an
// adopted robot's brain has it.
func TestStrangersPlayNoMusic(t *testing.T) {
	for name, stranger := range map[string]bool{"a stranger": true, "an adopted robot": false} {
		t.Run(name, func(t *testing.T) {
			var offered []bool
			mind := answer("Yes.")
			reply := mind.answer
			mind.answer = func(ctx context.Context, turn agent.Turn, out func(agent.Reply) error) error {
				offered = append(offered, turn.Music != nil)
				return reply(ctx, turn, out)
			}
			talking(t, mind, func(k *talk) {
				if err := k.server.PlayMusic(k.t.Context(), robotID, "jazz"); errors.Is(err, errStrangersMusic) != stranger {
					t.Error(err)
				}
				k.hears(xiaozhi.Auto, "play jazz")
				k.pass(5 * time.Second)
				if len(offered) != 1 || offered[0] == stranger {
					t.Errorf("music in the turns: %v", offered)
				}
				k.wantMusic("", false)
			}, func(o *Options) { o.Robots.(*registry).stranger.Store(stranger) },
				func(o *Options) { o.Music = music.NewLibrary([]music.Source{{Name: "jazz", Source: "/nowhere"}}) })
		})
	}
}

// TestMusicIsTriedOnceAtATime checks that many requests for one robot run one decoder.
func TestMusicIsTriedOnceAtATime(t *testing.T) {
	dir := t.TempDir()
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "ffmpeg"), []byte("#!/bin/sh\necho >>"+dir+"/runs\nwhile [ ! -e "+dir+"/end ]; do sleep 0.01; done\n"), 0o755))
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "a.mp3"), []byte("x"), 0o600))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	library, s := music.NewLibrary([]music.Source{{Name: "jazz", Source: dir + "/a.mp3"}}), &session{}
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() { errs <- s.startMusic(t.Context(), library, "jazz") }()
	}
	for range cap(errs) - 1 {
		if err := <-errs; !errors.Is(err, errTrying) {
			t.Error(err)
		}
	}
	must.Succeed(t, os.WriteFile(dir+"/end", nil, 0o600))
	<-errs // it has found no sound
	if runs := must.Value(os.ReadFile(dir + "/runs"))(t); len(runs) != 1 {
		t.Errorf("%d decoders", len(runs))
	}
}
