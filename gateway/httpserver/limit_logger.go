package httpserver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of logging one message.
const (
	logAtOnce = 10
	logAgain  = 6 * time.Second
	// mostMessages bounds the messages that are counted. They are this program's own
	// texts, which are fewer.
	mostMessages = 200
)

// LimitLogger returns a rate-limited logger for messages that any client can cause as often as
// it likes. Each message is written ten times at once and then ten times a
// minute, with the number left out before it as "more". Messages are
// counted by their text, without their attributes.
func LimitLogger(log *slog.Logger) *slog.Logger {
	return slog.New(limitedHandler{log.Handler(), &messages{byText: map[string]*message{}}})
}

type limitedHandler struct {
	slog.Handler
	messages *messages
}

// Handle writes a message, or counts it.
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

// WithAttrs shares the counts.
func (s limitedHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return limitedHandler{s.Handler.WithAttrs(a), s.messages}
}

// WithGroup shares the counts.
func (s limitedHandler) WithGroup(name string) slog.Handler {
	return limitedHandler{s.Handler.WithGroup(name), s.messages}
}

// messages counts messages by their text.
type messages struct {
	mu     sync.Mutex
	byText map[string]*message
}

type message struct {
	limiter *rate.Limiter
	more    int // left out since it was last written
}

// allow reports whether a message may be written, and how many were left out before it.
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
