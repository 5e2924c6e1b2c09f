package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"perch/device"
	"perch/limit"
	"perch/plain"
)

// Look is a picture with a question about it.
type Look struct {
	Robot    device.ID // the robot whose camera took the picture
	Session  string
	Question string
	Picture  device.Picture
	Language string // BCP 47, of the answer
	Brain    string // the brain to ask first, as in a Turn
	Now      time.Time
}

// Seer is a Brain that can look at a picture. DescribeImage returns the answer in words.
// Its error wraps ErrAway if the brain cannot be reached, and ErrBlind if its model does
// not accept pictures.
type Seer interface {
	DescribeImage(ctx context.Context, l Look) (string, error)
}

// ErrBlind is returned by DescribeImage if no brain can look at pictures.
var ErrBlind = errors.New("no brain can see")

// DescribeImage has the first brain that can look at a picture answer the question.
// It belongs to no conversation and publishes nothing: a photo is taken inside a
// turn, which waits for it and reports the tool. It returns ErrBlind if no brain accepts
// pictures, and an error that wraps ErrNoBrain if they do and cannot answer.
func (m *Mind) DescribeImage(ctx context.Context, l Look) (string, error) {
	brains, done := m.brains()
	defer done()
	var failures []error
	for _, brain := range order(brains, l.Brain) {
		seer, ok := brain.(Seer)
		if !ok {
			continue
		}
		text, err := seer.DescribeImage(ctx, l)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if text = withoutMarkers(text); err == nil && text != "" {
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

// withoutMarkers returns an answer without its requests to remember facts, because
// anybody can hold a sign in front of a camera.
func withoutMarkers(text string) string {
	return plain.Clip(strings.TrimSpace(marker().ReplaceAllString(text, "")), limit.Said)
}
