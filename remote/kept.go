package remote

import (
	"sync"
	"time"
)

// Kept is a value that is believed for a while. The zero Kept has none.
type Kept[T any] struct {
	mu    sync.Mutex
	value T
	until time.Time
}

// Get returns the latest value, and whether it is still believed.
func (k *Kept[T]) Get() (value T, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.value, time.Now().Before(k.until)
}

// Put keeps a value for so long.
func (k *Kept[T]) Put(value T, d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.value, k.until = value, time.Now().Add(d)
}

// Forget has the value believed no more.
func (k *Kept[T]) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.until = time.Time{}
}
