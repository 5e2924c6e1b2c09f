package voice

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Loudness holds the current level of each voice as listeners hear it. The name of a voice
// is the ID of its robot, or of its session if it has no robot. In the zero value all voices
// are silent.
type Loudness struct {
	watched atomic.Bool // whether Level was ever called

	mu       sync.Mutex
	ends     map[string]time.Time     // time until which a program plays sound of a voice; key: name of the voice
	speaking map[string]*audibleVoice // voices that are not silent; key: name
	audible  chan struct{}            // closed when a silent voice becomes audible; nil if nobody waits
}

// audibleVoice is a voice with a level above 0.
type audibleVoice struct {
	level   float64
	changed chan struct{} // closed on the next change; nil if nobody waits
}

// Level returns the current level of a voice, from 0 to 1: the level of the sound that is
// being played, not of the sound that is being sent. changed is closed when the level may
// have changed.
func (l *Loudness) Level(name string) (level float64, changed <-chan struct{}) {
	l.watched.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	waits := &l.audible
	if v := l.speaking[name]; v != nil {
		level, waits = v.level, &v.changed
	}
	if *waits == nil {
		*waits = make(chan struct{})
	}
	return level, *waits
}

// Watched reports whether Level was ever called. Before that, no level needs to be
// measured.
func (l *Loudness) Watched() bool { return l.watched.Load() }

// SetEnd records that a program plays sound of a voice until end. The zero time means that no
// program plays sound of this voice.
func (l *Loudness) SetEnd(name string, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends == nil {
		l.ends = map[string]time.Time{}
	}
	if l.ends[name] = end; end.IsZero() {
		delete(l.ends, name)
	}
}

// End returns the time that was set by SetEnd.
func (l *Loudness) End(name string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ends[name]
}

// set changes a voice's level. It does not allocate while the voice speaks.
func (l *Loudness) set(name string, level float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.speaking[name]
	if v == nil && level == 0 || v != nil && v.level == level {
		return
	}
	waits := &l.audible
	switch {
	case v == nil:
		if l.speaking == nil {
			l.speaking = map[string]*audibleVoice{}
		}
		l.speaking[name] = &audibleVoice{level: level}
	case level == 0:
		delete(l.speaking, name)
		waits = &v.changed
	default:
		v.level, waits = level, &v.changed
	}
	if *waits != nil {
		close(*waits)
		*waits = nil
	}
}

// Mouth sets the level of one voice while the sound of the voice is played, so that avatars can
// move their mouths. It queues the levels of sound that was sent but not yet played. It is not
// safe for concurrent use.
type Mouth struct {
	loudness *Loudness
	name     string
	queued   []levelChange
}

// levelChange is a level and the time when it begins to be heard.
type levelChange struct {
	at    time.Time
	level float64
}

// Mouth returns a Mouth for a voice. The caller must call Shut after use.
func (l *Loudness) Mouth(name string) *Mouth { return &Mouth{loudness: l, name: name} }

// Queue adds the levels of sound that is played up to the time until. Each level lasts
// LevelDuration. After that time the voice is silent, unless more levels are queued. Queue
// does nothing before Loudness.Level is called for the first time.
func (m *Mouth) Queue(levels []float64, until time.Time) {
	if !m.loudness.Watched() {
		return
	}
	at := until.Add(-time.Duration(len(levels)) * LevelDuration)
	for _, level := range levels {
		m.queued = append(m.queued, levelChange{at, level})
		at = at.Add(LevelDuration)
	}
	m.queued = append(m.queued, levelChange{until, 0})
}

// Speak queues the levels of sound that is played from now on, or after the queued sound.
func (m *Mouth) Speak(levels []float64, now time.Time) {
	if n := len(m.queued); n > 0 && m.queued[n-1].at.After(now) {
		now = m.queued[n-1].at
	}
	m.Queue(levels, now.Add(time.Duration(len(levels))*LevelDuration))
}

// forever is the duration returned by Update if no change is queued.
const forever = time.Duration(math.MaxInt64)

// Update sets the level that is heard at now, and returns the time until the next change, or
// forever if no change is queued.
func (m *Mouth) Update(now time.Time) time.Duration {
	past := 0
	for past < len(m.queued) && !m.queued[past].at.After(now) {
		past++
	}
	if past > 0 {
		m.loudness.set(m.name, m.queued[past-1].level)
		m.queued = m.queued[:copy(m.queued, m.queued[past:])]
	}
	if len(m.queued) == 0 {
		return forever
	}
	return m.queued[0].at.Sub(now)
}

// Shut drops the queued levels and makes the voice silent.
func (m *Mouth) Shut() {
	m.queued = m.queued[:0]
	m.loudness.set(m.name, 0)
}

// Run calls Speak with each slice of levels that it receives, and Update when a level changes,
// until ctx ends. Then it calls Shut. A nil slice also makes it call Shut.
func (m *Mouth) Run(ctx context.Context, speech <-chan []float64) {
	defer m.Shut()
	timer := time.NewTimer(forever)
	defer timer.Stop()
	for {
		select {
		case levels := <-speech:
			if m.Speak(levels, time.Now()); levels == nil {
				m.Shut()
			}
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		timer.Reset(m.Update(time.Now()))
	}
}
