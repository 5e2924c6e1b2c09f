package feed

import (
	"slices"

	"perch/event"
	"perch/limit"
)

// mostMoods bounds the stored moods. The oldest is dropped.
const mostMoods = 200

// moods holds the latest mood of each robot, and of each session without one.
type moods map[string]*felt

// felt is a mood. Its frame is made when the first viewer needs it: most houses have no
// such viewer, and moods change often.
type felt struct {
	event.Envelope
	frame *Frame
}

func (m *felt) ensureFrame() *Frame {
	if mood, is := m.Event.(event.Mood); is && m.frame == nil {
		m.frame = newMood(m.Envelope, mood)
	}
	return m.frame
}

// feel sends a mood to the viewers of moods, and stores it.
func (f *Feed) feel(e event.Envelope) {
	key := placeOf(e)
	if f.moods[key] == nil && len(f.moods) >= mostMoods {
		delete(f.moods, limit.First(f.moods, func(a, b *felt) int { return a.At.Compare(b.At) }))
	}
	m := &felt{Envelope: e}
	f.moods[key] = m
	f.each(func(w *Filter) *Frame {
		if !slices.Contains(w.Kinds, KindMood) {
			return nil
		}
		return m.ensureFrame()
	})
}
