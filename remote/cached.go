package remote

import (
	"sync"
	"time"
)

// Cached is a value that expires. The zero Cached is empty.
type Cached[T any] struct {
	mu    sync.Mutex
	value T
	until time.Time
}

// Get returns the latest value, and whether it has not expired.
func (k *Cached[T]) Get() (value T, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.value, time.Now().Before(k.until)
}

// Put stores a value that expires after d.
func (k *Cached[T]) Put(value T, d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.value, k.until = value, time.Now().Add(d)
}

// Forget makes the value expire.
func (k *Cached[T]) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.until = time.Time{}
}
