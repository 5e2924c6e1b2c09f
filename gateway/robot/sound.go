package robot

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"

	"perch/device"
	"perch/event"
	"perch/gateway/door"
)

// sounds load what robots play.
type sounds interface {
	// Load gives a sound by its base name as 24 kHz PCM, which is not changed
	// afterwards. It wraps fs.ErrNotExist where there is none of that name.
	Load(ctx context.Context, name string) (pcm []int16, err error)
}

// ErrSpeaking is returned where a sound would disturb the robot or a person.
var ErrSpeaking error = &door.Fault{Word: "robot_speaking", HTTP: http.StatusConflict,
	Sentence: "the robot speaks, or is spoken to; wait for the end of it, or abort it first"}

// sound is what a robot plays instead of speech.
type sound struct {
	name string
	pcm  []int16 // 24 kHz
}

// playSound is a sound to be played. It has one answer: whether it is.
type playSound struct {
	sound  *sound
	answer chan<- error // with a slot for one
}

// answerPlay returns whether a sound is played.
type answerPlay struct {
	answer chan<- error
	err    error
}

func (e answerPlay) perform(context.Context, *loop) { e.answer <- e.err } // there is a slot

// Play has a robot play a sound outside any turn, and returns when it begins
// to. It can be interrupted as speech can. Errors wrap fs.ErrNotExist for a
// name that no sound has; they are ErrSpeaking while the robot speaks or a turn
// is under way, and ErrOffline where its channel is closed: a sound is of its
// moment, and is not kept for another.
func (s *Server) Play(ctx context.Context, id device.ID, name string) error {
	if _, err := s.session(id); err != nil {
		return err // before a sound is decoded in vain
	}
	if s.options.Sounds == nil {
		return fmt.Errorf("play %q: %w", name, fs.ErrNotExist)
	}
	pcm, err := s.options.Sounds.Load(ctx, name)
	if err != nil {
		return fmt.Errorf("play a sound: %w", err)
	}
	answer := make(chan error, 1)
	if err := s.post(ctx, id, playSound{&sound{name, pcm}, answer}); err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	default: // the session ended before it came to that
		return ErrOffline
	}
}

// step begins a sound if nothing else is heard, or once the robot has connected.
func (in playSound) step(s *stepper) {
	switch {
	case s.phase == greeting:
		s.do(answerPlay{in.answer, ErrOffline})
	case s.turn.active || len(s.queue.waiting) > 0:
		s.do(answerPlay{in.answer, ErrSpeaking})
	case !s.channel.settled:
		s.queue.waiting = []announcement{{sound: in.sound}}
		s.do(answerPlay{in.answer, nil})
	default:
		s.begin(turnStart{announcement: announcement{sound: in.sound}})
		s.do(answerPlay{in.answer, nil})
	}
}

// soundEnded publishes the end of a sound that had begun. It reports whether the
// turn is a sound: then no end of a turn is published.
func (s *stepper) soundEnded(end string) bool {
	if s.turn.announcement.sound != nil && s.turn.begun {
		s.do(publish{event.SoundEnded{Name: s.turn.announcement.sound.name, End: end}})
	}
	return s.turn.announcement.sound != nil
}

// playSound queues a sound. On the empty sentence every build begins to speak.
func (t *turn) playSound(ctx context.Context, pcm []int16) error {
	silent := ""
	if err := t.playback.add(ctx, item{sentence: &silent}); err != nil {
		return err
	}
	return t.session.encoder.encode(ctx, t, pcm)
}
