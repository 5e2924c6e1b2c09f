package action

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"perch/device"
	"perch/event"
	"perch/limit"
)

// Limits of the log.
const (
	maxActions    = 200 // actions of each character
	maxCharacters = 64  // a further character replaces the character inactive for the longest time
)

// Who returns the ID of the character that acts in a session. It must not block.
type Who func(robot device.ID, session string) string

// Log stores the latest actions of each character. Run fills it. It is safe for concurrent
// use.
type Log struct {
	who       Who
	sentiment Sentiment

	mu       sync.Mutex          // guards the fields below
	actions  map[string][]Action // by the character's ID, the oldest action first
	recorded uint64              // sequence number of the latest event passed to Record
	changed  chan struct{}       // closed when recorded changes; nil while nobody waits
}

// NewLog returns an empty log. sentiment may be nil, which makes every text neutral.
func NewLog(who Who, sentiment Sentiment) *Log {
	return &Log{who: who, sentiment: sentiment, actions: map[string][]Action{}}
}

// Run records the events of a reader until ctx ends or the bus is closed.
func (l *Log) Run(ctx context.Context, r *event.Reader) { r.Each(ctx, l.Record) }

// Of returns the action that an event reports. ok is false if the event does not report an
// action.
func (l *Log) Of(e event.Envelope) (a Action, ok bool) {
	if kind, _, _ := fromEvent(e.Event, nil); kind == "" {
		return Action{}, false // avoids calling l.who for most events
	}
	return Of(e, l.who(e.Robot, e.Session), l.sentiment)
}

// Record records one event.
func (l *Log) Record(e event.Envelope) {
	a, ok := l.Of(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if ok {
		l.append(a)
	}
	l.recorded = e.Seq
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// append adds an action. The caller holds l.mu.
func (l *Log) append(a Action) {
	list, ok := l.actions[a.Agent]
	if !ok && len(l.actions) >= maxCharacters {
		delete(l.actions, limit.First(l.actions, func(a, b []Action) int { return cmp.Compare(a[len(a)-1].Timestamp, b[len(b)-1].Timestamp) }))
	}
	if len(list) >= maxActions {
		list = slices.Delete(list, 0, len(list)-maxActions+1)
	}
	l.actions[a.Agent] = append(list, a)
}

// WaitFor waits until the event with this sequence number has been recorded. It returns
// ctx.Err() if ctx ends first.
func (l *Log) WaitFor(ctx context.Context, seq uint64) error {
	for {
		changed := l.nextChange(seq)
		if changed == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// nextChange returns nil if the event with this sequence number has been recorded, and
// otherwise a channel that is closed when the next event is recorded.
func (l *Log) nextChange(seq uint64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.recorded >= seq {
		return nil
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// Recent returns the latest actions, at most n, the oldest first. If agent is not empty, it
// returns only actions of this character; if types is not empty, only actions of these
// types.
func (l *Log) Recent(agent string, types []Type, n int) []Action {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := []Action{}
	for _, id := range slices.Sorted(maps.Keys(l.actions)) {
		if agent != "" && id != agent {
			continue
		}
		for _, a := range l.actions[id] {
			if len(types) == 0 || slices.Contains(types, a.Type) {
				found = append(found, a)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Action) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	return found[max(0, len(found)-n):]
}

// Who returns the ID of the character that acts in a session.
func (l *Log) Who(robot device.ID, session string) string { return l.who(robot, session) }
