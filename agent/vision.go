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

// Look is a question about a picture.
type Look struct {
	Robot    device.ID // the robot whose camera took the picture
	Session  string
	Question string
	Picture  device.Picture
	Language string    // BCP 47 tag of the language to answer in
	Brain    string    // the brain to ask first, as in Turn.Brain
	Now      time.Time // the current time
}

// Seer is implemented by brains that can look at pictures. DescribeImage returns the answer
// to the question. Its error wraps ErrAway if the brain cannot be reached, and ErrBlind if
// its model does not accept pictures.
type Seer interface {
	DescribeImage(ctx context.Context, l Look) (string, error)
}

// ErrBlind is returned by Mind.DescribeImage if no brain can look at pictures, and wrapped
// by the error of a Seer whose model does not accept pictures.
var ErrBlind = errors.New("no brain can see")

// DescribeImage has the first brain that can look at pictures answer the question. It uses
// no conversation and publishes no events, because it answers for a tool that runs within a turn. It
// returns the error of ctx if ctx ends, ErrBlind if no brain accepts pictures, and an error
// that wraps ErrNoBrain if brains accept pictures but none answers.
func (m *Mind) DescribeImage(ctx context.Context, l Look) (string, error) {
	brains, done := m.brains()
	defer done()
	var failures []error
	for _, brain := range sortBrains(brains, l.Brain) {
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
			err = fmt.Errorf("%w: it did not answer the question about the picture", ErrAway)
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

// withoutMarkers returns a text without the markers of facts to remember, cut to limit.Said
// bytes. Facts in a picture are not remembered, because anybody can hold a sign in front of
// the camera.
func withoutMarkers(text string) string {
	return plain.Clip(strings.TrimSpace(marker().ReplaceAllString(text, "")), limit.Said)
}
