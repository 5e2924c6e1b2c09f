package program

import (
	"context"
	"time"
)

// SpeakWithin is Speak with another timeout of the next piece of sound.
func (c Call) SpeakWithin(ctx context.Context, timeout time.Duration, out func([]int16) error) error {
	return c.speak(ctx, timeout, out)
}
