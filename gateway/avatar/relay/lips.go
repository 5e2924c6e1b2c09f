package relay

import (
	"context"
	"strings"
	"time"
	"unicode"

	"perch/agent"
	"perch/gateway/avatar/feed"
	"perch/voice"
)

// lips moves the mouth in sessions without known loudness: chats whose program speaks with its own
// voice or not at all. It guesses the movement from the letters of the text.
type lips struct {
	voice   voice.Loudness // loudness of the current session; its only key is ""
	levels  chan []float64 // levels for run to play
	session string         // ID of the current session
	until   time.Time      // when run has played all levels that it was sent
}

func newLips() *lips { return &lips{levels: make(chan []float64)} }

// run moves the lips until ctx ends.
func (l *lips) run(ctx context.Context) { l.voice.Mouth("").Run(ctx, l.levels) }

// level returns how far the mouth is open in a session, from 0 to 1. changed is closed when the level
// changes. The mouth is closed in all sessions except the current one.
func (l *lips) level(session string) (level float64, changed <-chan struct{}) {
	level, changed = l.voice.Level("")
	if session != l.session {
		level = 0
	}
	return level, changed
}

// maxAhead is how far ahead sentences are queued. A sentence that would begin later does not move the
// lips.
const maxAhead = 30 * time.Second

// handleFrame moves the lips for a sentence of a session without a robot, and closes the mouth when
// the session's next turn begins. hasSound reports whether the loudness of the session is known.
func (l *lips) handleFrame(ctx context.Context, f *feed.Frame, hasSound bool, now time.Time) {
	switch b := f.Body.(type) {
	case feed.Said:
		if f.Robot != "" || hasSound {
			return
		}
		if f.Session != l.session {
			l.closeMouth(ctx)
			l.session = f.Session
		}
		levels := levelsOf(b.Text)
		begins := now
		if l.until.After(now) {
			begins = l.until
		}
		if begins.Sub(now) < maxAhead {
			l.until = begins.Add(time.Duration(len(levels)) * voice.LevelDuration)
			l.send(ctx, levels)
		}
	case feed.State:
		if f.Session == l.session && (b.State == agent.Listening || b.State == agent.Thinking) {
			l.closeMouth(ctx)
		}
	}
}

// closeMouth closes the mouth, and discards the levels that wait to be played.
func (l *lips) closeMouth(ctx context.Context) {
	l.until = time.Time{}
	l.send(ctx, nil)
}

// send passes levels to run, which receives them at once.
func (l *lips) send(ctx context.Context, levels []float64) {
	select {
	case l.levels <- levels:
	case <-ctx.Done():
	}
}

// levelsOf returns how far a mouth is open while it says text, one level per voice.LevelDuration.
// It assumes 14 letters per second, or 7 Chinese, Japanese or Korean characters.
func levelsOf(text string) (levels []float64) {
	for _, r := range strings.ToLower(text) {
		switch {
		case strings.ContainsRune("aàáâäåæoòóôöø", r):
			levels = append(levels, 0.8, 0.7)
		case strings.ContainsRune("eèéêëiìíîïuùúûüy", r):
			levels = append(levels, 0.5, 0.4)
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			levels = append(levels, 0.4, 0.8, 0.6, 0.2)
		case unicode.IsLetter(r), unicode.IsDigit(r):
			levels = append(levels, 0.2, 0.2)
		case unicode.IsPunct(r):
			levels = append(levels, 0, 0, 0, 0, 0, 0)
		default:
			levels = append(levels, 0, 0)
		}
	}
	return levels
}
