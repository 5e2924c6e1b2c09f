package perception

import (
	"cmp"
	"fmt"
	"time"
)

// Who describes the person in front of the robot: "in front of you since 12 s:
// Ann". It is empty if no face is known to be there.
func (s State) Who(now time.Time) string {
	s = s.At(now)
	if !s.Face.Present {
		return ""
	}
	who := cmp.Or(s.Face.Identity, "somebody you do not know by name")
	return fmt.Sprintf("in front of you since %s: %s", rough(now.Sub(s.Face.Since)), who)
}

// rough is a duration in seconds or minutes, for people.
func rough(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%d s", int(max(d, 0).Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

// Senses says in a few words each what a robot notices, for people: who is
// before it, its last sound and touch of the last minute, and what it does by
// its own state. It is nil where nothing is known.
func (s State) Senses(now time.Time) (words []string) {
	s = s.At(now)
	if s.Stale {
		return nil
	}
	if face := s.Face; face.Present {
		words = append(words, fmt.Sprintf("%s in front of it since %s", cmp.Or(face.Identity, "a face"), rough(now.Sub(face.Since))))
	}
	recent := func(at time.Time) bool { return !at.IsZero() && now.Sub(at) < time.Minute }
	if recent(s.Sound.At) {
		words = append(words, fmt.Sprintf("a sound %s %s ago", whence(s.Sound.Direction), rough(now.Sub(s.Sound.At))))
	}
	switch {
	case s.Touch.Petting:
		words = append(words, "stroked")
	case recent(s.Touch.At):
		words = append(words, fmt.Sprintf("touched %s ago", rough(now.Sub(s.Touch.At))))
	}
	switch {
	case s.Dancing:
		words = append(words, "dances")
	case s.asleep():
		words = append(words, "sleeps")
	}
	return words
}

func whence(direction string) string {
	if direction == centre {
		return "ahead"
	}
	return "on the " + direction
}
