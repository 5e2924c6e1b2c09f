package feed

import (
	"slices"

	"perch/event"
	"perch/limit"
)

// maxMoods is the maximum number of stored moods. When it is reached, a mood with a new key replaces the
// oldest mood.
const maxMoods = 200

// moods holds the latest mood of each robot, of each session without a robot, and of the default
// character. agentKey returns the keys.
type moods map[string]*storedMood

// storedMood is an event.Mood and its frame. The frame is made when the first viewer needs it, because
// moods change often and usually no viewer subscribes to them.
type storedMood struct {
	event.Envelope
	frame *Frame // nil until ensureFrame is called
}

// ensureFrame returns the frame of the mood, and makes it if necessary.
func (m *storedMood) ensureFrame() *Frame {
	if mood, ok := m.Event.(event.Mood); ok && m.frame == nil {
		m.frame = moodFrame(m.Envelope, mood)
	}
	return m.frame
}

// sendMood sends a mood to the viewers that have subscribed to moods, and stores it for later viewers.
func (f *Feed) sendMood(e event.Envelope) {
	key := agentKey(e)
	if f.moods[key] == nil && len(f.moods) >= maxMoods {
		delete(f.moods, limit.First(f.moods, func(a, b *storedMood) int { return a.At.Compare(b.At) }))
	}
	m := &storedMood{Envelope: e}
	f.moods[key] = m
	f.sendEach(func(w *Filter) *Frame {
		if !slices.Contains(w.Kinds, KindMood) {
			return nil
		}
		return m.ensureFrame()
	})
}
