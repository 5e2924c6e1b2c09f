package robot

import (
	"context"
	"fmt"
	"io/fs"
	"perch/gateway/robot/dialogue"

	"perch/device"
)

// sounds load what robots play.
type sounds interface {
	// Load gives a sound by its base name as 24 kHz PCM, which is not changed
	// afterwards. It wraps fs.ErrNotExist where there is none of that name.
	Load(ctx context.Context, name string) (pcm []int16, err error)
}

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
	if err := s.post(ctx, id, dialogue.PlaySound{Sound: &dialogue.Sound{Name: name, PCM: pcm}, Answer: answer}); err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	default: // the session ended before it came to that
		return dialogue.ErrOffline
	}
}

// playSound queues a sound. On the empty sentence every build begins to speak.
func (t *turn) playSound(ctx context.Context, pcm []int16) error {
	if err := t.speech.Sentence(ctx, ""); err != nil {
		return err
	}
	return t.speech.Sound(ctx, pcm)
}
