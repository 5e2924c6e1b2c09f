package httpserver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of a rate-limited logger.
const (
	logAtOnce = 10              // how often a message is logged before the limit applies
	logAgain  = 6 * time.Second // minimum time between two lines after that
	// maxMessages is the maximum number of different texts that are counted. Perch has fewer, because
	// clients cannot change the texts of its messages.
	maxMessages = 200
)

// LimitLogger returns a rate-limited logger, for messages that clients can cause as often as they like. Each
// message is logged ten times at once, and then ten times a minute. The attribute "more" says how often the
// message was left out since it was last logged. Messages with the same text count as the same even if their
// attributes differ.
func LimitLogger(log *slog.Logger) *slog.Logger {
	return slog.New(limitedHandler{log.Handler(), &messages{byText: map[string]*message{}}})
}

// limitedHandler is the slog.Handler of LimitLogger.
type limitedHandler struct {
	slog.Handler
	messages *messages
}

// Handle implements slog.Handler. It writes the message if it is due, and otherwise counts it.
func (s limitedHandler) Handle(ctx context.Context, r slog.Record) error {
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

// WithAttrs implements slog.Handler. The new handler shares the counts.
func (s limitedHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return limitedHandler{s.Handler.WithAttrs(a), s.messages}
}

// WithGroup implements slog.Handler. The new handler shares the counts.
func (s limitedHandler) WithGroup(name string) slog.Handler {
	return limitedHandler{s.Handler.WithGroup(name), s.messages}
}

// messages counts messages by their text.
type messages struct {
	mu     sync.Mutex
	byText map[string]*message
}

// message limits how often a message is logged.
type message struct {
	limiter *rate.Limiter
	more    int // how often the message was left out since it was last logged
}

// allow reports whether a message may be logged, and how often it was left out since it was last logged.
func (s *messages) allow(text string) (more int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, found := s.byText[text]; !found && len(s.byText) >= maxMessages {
		text = "" // all further messages share one limit
	}
	m, found := s.byText[text]
	if !found {
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
