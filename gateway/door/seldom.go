package door

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// What strangers can bring about again and again is logged so often: so many
// times at once, and then once in a while.
const (
	sayAtOnce = 10
	sayEvery  = 6 * time.Second
	// mostSayings bounds the messages that are counted each by itself. They are
	// this program's own, so there are never so many.
	mostSayings = 200
)

// Seldom returns a logger for what strangers can bring about as often as they
// like. Each message is written ten times at once and then ten times a minute,
// and says in "more" how many others like it were left out before it. A message
// is its text, which is ours; who is in its attributes does not matter.
func Seldom(log *slog.Logger) *slog.Logger {
	return slog.New(seldom{log.Handler(), &sayings{byText: map[string]*saying{}}})
}

type seldom struct {
	slog.Handler
	said *sayings
}

// Handle writes a message, or counts it.
func (s seldom) Handle(ctx context.Context, r slog.Record) error {
	more, due := s.said.due(r.Message)
	if !due {
		return nil
	}
	if more > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("more", more))
	}
	return s.Handler.Handle(ctx, r)
}

// WithAttrs shares the counts.
func (s seldom) WithAttrs(a []slog.Attr) slog.Handler {
	return seldom{s.Handler.WithAttrs(a), s.said}
}

// WithGroup shares the counts.
func (s seldom) WithGroup(name string) slog.Handler {
	return seldom{s.Handler.WithGroup(name), s.said}
}

// sayings count messages by their text.
type sayings struct {
	mu     sync.Mutex
	byText map[string]*saying
}

type saying struct {
	limiter *rate.Limiter
	more    int // left out since it was last written
}

// due reports whether a message is to be written, and how many like it were not.
func (s *sayings) due(text string) (more int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.byText[text]; !known && len(s.byText) >= mostSayings {
		text = "" // all others are one
	}
	m, known := s.byText[text]
	if !known {
		m = &saying{limiter: rate.NewLimiter(rate.Every(sayEvery), sayAtOnce)}
		s.byText[text] = m
	}
	if !m.limiter.Allow() {
		m.more++
		return 0, false
	}
	more, m.more = m.more, 0
	return more, true
}
