package perception

import "time"

// How much a robot may perceive.
const (
	eventsASecond = 50
	eventsAtOnce  = 100
)

// bucket lets so many events through at once and so many a second. Its zero
// value is full.
type bucket struct {
	used    float64 // of eventsAtOnce
	since   time.Time
	over    bool // a bout of too many, which ends when the bucket is full again
	dropped int
}

// take lets one event through, or not. Of one that is not, first says that it
// begins a bout, and before how many earlier bouts have dropped.
func (b *bucket) take(now time.Time) (ok, first bool, before int) {
	if passed := now.Sub(b.since); passed > 0 {
		b.used = max(0, b.used-passed.Seconds()*eventsASecond)
		b.since = now
	}
	if b.used == 0 {
		b.over = false
	}
	if b.used+1 <= eventsAtOnce {
		b.used++
		return true, false, 0
	}
	first, before = !b.over, b.dropped
	b.over = true
	b.dropped++
	return false, first, before
}
