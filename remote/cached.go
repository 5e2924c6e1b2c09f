package remote

import (
	"sync"
	"time"
)

// Kept is a cached value that expires. The zero Kept is empty.
type Kept[T any] struct {
	mu    sync.Mutex
	value T
	until time.Time
}

// Get returns the latest value, and whether it has not expired.
func (k *Kept[T]) Get() (value T, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.value, time.Now().Before(k.until)
}

// Put stores a value that expires after d.
func (k *Kept[T]) Put(value T, d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.value, k.until = value, time.Now().Add(d)
}

// Forget makes the value expire.
func (k *Kept[T]) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.until = time.Time{}
}
