package engines

import (
	"slices"
	"sync"
	"time"

	"perch/gateway/owner/admin"
)

// waits holds how long people have waited for an engine in its latest uses.
type waits struct {
	mu     sync.Mutex
	latest []time.Duration // the oldest first
}

// maxWaits is the number of uses that waits holds.
const maxWaits = 100

// add adds the wait of a use.
func (w *waits) add(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.latest) == maxWaits {
		w.latest = slices.Delete(w.latest, 0, 1)
	}
	w.latest = append(w.latest, max(d, 0))
}

// summary returns the median and the 95th percentile, or nil if no wait was added yet.
func (w *waits) summary() *admin.Wait {
	w.mu.Lock()
	sorted := slices.Sorted(slices.Values(w.latest))
	w.mu.Unlock()
	if len(sorted) == 0 {
		return nil
	}
	at := func(percent int) int64 { return sorted[(len(sorted)*percent+99)/100-1].Milliseconds() }
	return &admin.Wait{Uses: len(sorted), Median: at(50), P95: at(95)}
}
