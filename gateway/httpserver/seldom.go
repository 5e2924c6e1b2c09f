package httpserver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How often one message is logged: so many times at once, and then once in a
// while.
const (
	logAtOnce = 10
	logAgain  = 6 * time.Second
	// mostMessages bounds the messages that are counted each by itself. They are
	// this program's own, so there are never so many.
	mostMessages = 200
)

// Seldom returns a rate-limited logger for what any client can cause as often as
// it likes. Each message is written ten times at once and then ten times a
// minute, with the number of those left out before it as "more". Messages are
// counted by their text, which is ours, without their attributes.
func Seldom(log *slog.Logger) *slog.Logger {
	return slog.New(seldom{log.Handler(), &messages{byText: map[string]*message{}}})
}

type seldom struct {
	slog.Handler
	messages *messages
}

// Handle writes a message, or counts it.
func (s seldom) Handle(ctx context.Context, r slog.Record) error {
	more, due := s.messages.allow(r.Message)
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
	return seldom{s.Handler.WithAttrs(a), s.messages}
}

// WithGroup shares the counts.
func (s seldom) WithGroup(name string) slog.Handler {
	return seldom{s.Handler.WithGroup(name), s.messages}
}

// messages are counted by their text.
type messages struct {
	mu     sync.Mutex
	byText map[string]*message
}

type message struct {
	limiter *rate.Limiter
	more    int // left out since it was last written
}

// allow reports whether a message is to be written, and how many like it were not.
func (s *messages) allow(text string) (more int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.byText[text]; !known && len(s.byText) >= mostMessages {
		text = "" // all others are one
	}
	m, known := s.byText[text]
	if !known {
		m = &message{limiter: rate.NewLimiter(rate.Every(logAgain), logAtOnce)}
		s.byText[text] = m
	}
	if !m.limiter.Allow() {
		m.more++
		return 0, false
	}
	more, m.more = m.more, 0
	return more, true
}
