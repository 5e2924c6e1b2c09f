package robot

import (
	"errors"
	"io/fs"
	"net/http"
	"testing"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/gateway/robot/dialogue"
	"perch/must"
)

func (k *talk) play(name string) error { return k.server.Play(k.t.Context(), robotID, name) }

func TestASoundIsNoTurn(t *testing.T) {
	talking(t, answer("Yes."), func(k *talk) {
		k.listen(xiaozhi.Manual)
		k.say(xiaozhi.ListenStop{})
		time.Sleep(time.Second)
		k.channel.forget()
		k.happened()
		must.Succeed(t, k.play("purr"))
		time.Sleep(100 * time.Millisecond)
		if shown := k.shows(); shown != agent.Speaking {
			t.Errorf("shows %s while it plays", shown)
		}
		time.Sleep(2 * time.Second)
		k.wantStory("tts start, sentence , 25 packets, tts stop")
		if shown := k.shows(); shown != agent.Idle {
			t.Errorf("shows %s afterwards", shown)
		}
		k.leave()
		if n := k.turns.Last; !n.At.IsZero() || len(k.mind.remembered) > 0 || k.sessions.Last.Turns != 1 {
			t.Errorf("kept %+v, remembered %v, %d turns", n, k.mind.remembered, k.sessions.Last.Turns)
		}
	})
}

func TestPlayErrors(t *testing.T) {
	wants := func(err error) {
		t.Helper()
		var shown interface {
			Code() string
			Status() int
		}
		if !errors.Is(err, dialogue.ErrSpeaking) || !errors.As(err, &shown) || shown.Code() != "robot_speaking" || shown.Status() != http.StatusConflict {
			t.Errorf("it is answered with %v", err)
		}
	}
	talking(t, answer("It is late."), func(k *talk) {
		k.recognizer.transcripts = understood("x")
		k.listen(xiaozhi.Auto)
		if err := k.play("no such sound"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a sound that is not there: %v", err)
		}
		k.recognizer.delay = 500 * time.Millisecond
		k.someWords()
		wants(k.play("purr")) // somebody speaks
		k.quiet(720 * time.Millisecond)
		wants(k.play("purr")) // the words are being recognized
		time.Sleep(time.Second)
		wants(k.play("purr")) // the robot answers
		time.Sleep(3 * time.Second)
		k.listen(xiaozhi.Auto)
		for _, want := range []error{nil, dialogue.ErrSpeaking} { // a second sound is refused too
			if err := k.play("song"); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		}
		k.leave()
		if err := k.play("purr"); !errors.Is(err, dialogue.ErrOffline) {
			t.Errorf("a closed channel: %v", err)
		}
		if len(k.waiting.Kept) > 0 {
			t.Errorf("it waits: %v", k.waiting.Kept)
		}
	})
}
