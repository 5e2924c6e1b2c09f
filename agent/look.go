package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"perch/device"
)

// Look is a picture and what somebody wants to know of it.
type Look struct {
	Robot    device.ID // whose camera took it
	Session  string
	Question string
	Picture  device.Picture
	Language string // BCP 47, of the answer
	Brain    string // that is asked first, as in a Turn
	Now      time.Time
}

// Seer is a Brain that can look at a picture. See returns what it has to say,
// in words. It wraps ErrAway where it cannot be reached, and ErrBlind where
// the model behind it turns out to have no eyes.
type Seer interface {
	See(ctx context.Context, l Look) (string, error)
}

// ErrBlind is returned by See where no brain can see.
var ErrBlind = errors.New("no brain can see")

// mostSeen bounds what is said of a picture, in bytes.
const mostSeen = 4000

// See has the first brain that can look at a picture do so. It belongs to no
// conversation and publishes nothing: a photo is taken inside a turn, which
// waits for it and shows the tool at work. It returns ErrBlind where there is
// no brain with eyes, and wraps ErrNoBrain where those there are cannot answer.
func (m *Mind) See(ctx context.Context, l Look) (string, error) {
	var failures []error
	for _, brain := range m.from(l.Brain) {
		seer, ok := brain.(Seer)
		if !ok {
			continue
		}
		text, err := seer.See(ctx, l)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if text = seen(text); err == nil && text != "" {
			return text, nil
		}
		if err == nil {
			err = fmt.Errorf("%w: it said nothing of the picture", ErrAway)
		}
		if errors.Is(err, ErrBlind) {
			continue
		}
		failures = append(failures, fmt.Errorf("%s: %w", brain.Name(), err))
		if !errors.Is(err, ErrAway) {
			break
		}
	}
	if len(failures) == 0 {
		return "", ErrBlind
	}
	return "", fmt.Errorf("%w: %w", ErrNoBrain, errors.Join(failures...))
}

// seen is what is passed on of an answer. What it asks to have remembered is
// dropped: anybody can hold a sign in front of a camera.
func seen(text string) string {
	text = strings.TrimSpace(marker.ReplaceAllString(text, ""))
	if len(text) > mostSeen {
		text = strings.ToValidUTF8(text[:mostSeen], "")
	}
	return text
}
