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

// lips moves the mouth by the letters of the text in sessions whose sound nobody plays: chats
// whose program speaks with its own voice, or with none.
type lips struct {
	voice voice.Loudness // of the current session
	given chan []float64
	of    string // the current session
	until time.Time
}

func newLips() *lips { return &lips{given: make(chan []float64)} }

// run moves the lips until ctx ends.
func (l *lips) run(ctx context.Context) { l.voice.Mouth("").Run(ctx, l.given) }

// level returns the loudness of the lips if session is the current one, and else silence.
func (l *lips) level(session string) (level float64, changed <-chan struct{}) {
	level, changed = l.voice.Level("")
	if session != l.of {
		level = 0
	}
	return level, changed
}

// mostLips bounds how far ahead the lips speak. Nobody watches a silent mouth for longer.
const mostLips = 30 * time.Second

// handleFrame speaks a sentence of a session without a robot, and falls silent when the
// session's next turn begins. sounds reports whether somebody plays the session's sound.
func (l *lips) handleFrame(ctx context.Context, f *feed.Frame, sounds bool, now time.Time) {
	switch b := f.Body.(type) {
	case feed.Said:
		if f.Robot != "" || sounds {
			return
		}
		if f.Session != l.of {
			l.shut(ctx)
			l.of = f.Session
		}
		levels := spelled(b.Text)
		begins := now
		if l.until.After(now) {
			begins = l.until
		}
		if begins.Sub(now) < mostLips {
			l.until = begins.Add(time.Duration(len(levels)) * voice.LevelDuration)
			l.send(ctx, levels)
		}
	case feed.State:
		if f.Session == l.of && (b.State == agent.Listening || b.State == agent.Thinking) {
			l.shut(ctx)
		}
	}
}

func (l *lips) shut(ctx context.Context) {
	l.until = time.Time{}
	l.send(ctx, nil)
}

// send waits for run to accept levels, which it does at once.
func (l *lips) send(ctx context.Context, levels []float64) {
	select {
	case l.given <- levels:
	case <-ctx.Done():
	}
}

// spelled returns how wide a mouth is open while it says text, one value per
// voice.LevelDuration: about 14 letters a second, or 7 characters of scripts that write
// syllables or words.
func spelled(text string) (levels []float64) {
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
