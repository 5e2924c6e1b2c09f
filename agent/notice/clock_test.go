package notice_test

import (
	"sync"
	"time"
)

// jumpingClock is a clock whose wall clock can jump. In a bubble of synctest it
// shows the bubble's time.
type jumpingClock struct {
	began time.Time
	mu    sync.Mutex
	off   time.Duration
}

func newJumpingClock() *jumpingClock { return &jumpingClock{began: time.Now()} }

func (c *jumpingClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Round(0).Add(c.off)
}

func (c *jumpingClock) Running() time.Duration { return time.Since(c.began) }

func (c *jumpingClock) jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += by
}
