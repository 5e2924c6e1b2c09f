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

// Bounds of the log.
const (
	mostActions    = 200 // of each character
	mostCharacters = 64  // beyond this the longest inactive is dropped
)

// Who returns the id of the character that acts in a session. It must not block.
type Who func(robot device.ID, session string) string

// Log stores the latest actions of each character. Run fills it.
type Log struct {
	who       Who
	sentiment Sentiment

	mu   sync.Mutex
	of   map[string][]Action // by the character's id, the oldest first
	seen uint64              // Seq of the latest recorded event
	news chan struct{}       // closed when seen changes; nil while nobody waits
}

// NewLog returns an empty log. sentiment may be nil: then every text is neutral.
func NewLog(who Who, sentiment Sentiment) *Log {
	return &Log{who: who, sentiment: sentiment, of: map[string][]Action{}}
}

// Run records the events of a reader until ctx or the bus ends.
func (l *Log) Run(ctx context.Context, r *event.Reader) { r.Each(ctx, l.Record) }

// Of returns the action of an event, with its character. ok is false if the event is
// not an action.
func (l *Log) Of(e event.Envelope) (a Action, ok bool) {
	if kind, _, _ := outward(e.Event, nil); kind == "" {
		return Action{}, false // most events; avoids looking up the character
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
	l.seen = e.Seq
	if l.news != nil {
		close(l.news)
		l.news = nil
	}
}

func (l *Log) append(a Action) {
	list, known := l.of[a.Agent]
	if !known && len(l.of) >= mostCharacters {
		delete(l.of, limit.First(l.of, func(a, b []Action) int { return cmp.Compare(a[len(a)-1].Timestamp, b[len(b)-1].Timestamp) }))
	}
	if len(list) >= mostActions {
		list = slices.Delete(list, 0, len(list)-mostActions+1)
	}
	l.of[a.Agent] = append(list, a)
}

// Upto waits until the event with that number has been recorded, so that its publisher
// finds it. It returns ctx.Err() if ctx ends first.
func (l *Log) Upto(ctx context.Context, seq uint64) error {
	for {
		news := l.after(seq)
		if news == nil {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// after returns a channel that is closed when another event is recorded, or nil if the
// one with that number already is.
func (l *Log) after(seq uint64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen >= seq {
		return nil
	}
	if l.news == nil {
		l.news = make(chan struct{})
	}
	return l.news
}

// Recent returns the latest n actions, the oldest first: of one character, or of all if
// agent is empty, and of the given types, or of all if types is empty.
func (l *Log) Recent(agent string, types []Type, n int) []Action {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := []Action{}
	for _, id := range slices.Sorted(maps.Keys(l.of)) {
		if agent != "" && id != agent {
			continue
		}
		for _, a := range l.of[id] {
			if len(types) == 0 || slices.Contains(types, a.Type) {
				all = append(all, a)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Action) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	return all[max(0, len(all)-n):]
}

// Who returns the id of the character that acts in a session.
func (l *Log) Who(robot device.ID, session string) string { return l.who(robot, session) }
