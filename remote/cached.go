package remote

import (
	"sync"
	"time"
)

// Cached holds a value that expires. The zero Cached is empty. It is safe for concurrent use.
type Cached[T any] struct {
	mu    sync.Mutex
	value T
	until time.Time
}

// Get returns the latest value, even if it has expired. fresh is false if it has expired, or
// before the first Put.
func (c *Cached[T]) Get() (value T, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value, time.Now().Before(c.until)
}

// Put stores a value that expires after d.
func (c *Cached[T]) Put(value T, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value, c.until = value, time.Now().Add(d)
}

// Forget makes the value expire at once.
func (c *Cached[T]) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
}
