package notice_test

import (
	"sync"
	"time"
)

// jumpy is a clock whose wall clock can jump. Inside a bubble of synctest its
// time is the bubble's.
type jumpy struct {
	began time.Time
	mu    sync.Mutex
	off   time.Duration
}

func newJumpy() *jumpy { return &jumpy{began: time.Now()} }

func (c *jumpy) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Round(0).Add(c.off)
}

func (c *jumpy) Running() time.Duration { return time.Since(c.began) }

func (c *jumpy) jump(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += by
}
