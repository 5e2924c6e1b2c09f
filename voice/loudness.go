package voice

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Loudness holds how loud voices are as they are heard. A voice is named by its robot, or
// by a talk without one. The zero value is silent.
type Loudness struct {
	watched atomic.Bool // somebody has asked for a level

	mu       sync.Mutex
	mouths   map[string]int   // number of mouths by name
	speaking map[string]*loud // voices that are not silent
	begins   chan struct{}    // closed when a silent voice becomes audible; nil if nobody waits
}

// loud is a level above 0.
type loud struct {
	level   float64
	changed chan struct{} // closed on the next change; nil if nobody waits
}

// Level returns how loud a voice is heard now, from 0 to 1, at the time it is played
// rather than sent. changed is closed when the level may have changed.
func (l *Loudness) Level(of string) (level float64, changed <-chan struct{}) {
	l.watched.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	waits := &l.begins
	if is := l.speaking[of]; is != nil {
		level, waits = is.level, &is.changed
	}
	if *waits == nil {
		*waits = make(chan struct{})
	}
	return level, *waits
}

// Watched reports whether anybody has asked for a level. Until then no level needs to be
// measured.
func (l *Loudness) Watched() bool { return l.watched.Load() }

// Speaks reports whether a name has a mouth, even a silent one.
func (l *Loudness) Speaks(of string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mouths[of] > 0
}

// set changes a voice's level. It does not allocate while the voice speaks.
func (l *Loudness) set(of string, level float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	is := l.speaking[of]
	if is == nil && level == 0 || is != nil && is.level == level {
		return
	}
	waits := &l.begins
	switch {
	case is == nil:
		if l.speaking == nil {
			l.speaking = map[string]*loud{}
		}
		l.speaking[of] = &loud{level: level}
	case level == 0:
		delete(l.speaking, of)
		waits = &is.changed
	default:
		is.level, waits = level, &is.changed
	}
	if *waits != nil {
		close(*waits)
		*waits = nil
	}
}

// Mouth holds the levels of sound of one voice that was sent and not yet played. It is
// not safe for concurrent use.
type Mouth struct {
	all   *Loudness
	of    string
	ahead []moment
}

// moment is a level with the time of its start.
type moment struct {
	at    time.Time
	level float64
}

// Mouth returns a mouth for a name, to be closed after use.
func (l *Loudness) Mouth(of string) *Mouth {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mouths == nil {
		l.mouths = map[string]int{}
	}
	l.mouths[of]++
	return &Mouth{all: l, of: of}
}

// Queue adds the levels, of LevelDuration each, of sound whose playing ends at until.
// After that it is silent, unless more follows.
func (m *Mouth) Queue(levels []float64, until time.Time) {
	if !m.all.Watched() {
		return
	}
	at := until.Add(-time.Duration(len(levels)) * LevelDuration)
	for _, level := range levels {
		m.ahead = append(m.ahead, moment{at, level})
		at = at.Add(LevelDuration)
	}
	m.ahead = append(m.ahead, moment{until, 0})
}

// Speak queues the levels of sound that is played from now on, or after the sound that is
// playing.
func (m *Mouth) Speak(levels []float64, now time.Time) {
	if n := len(m.ahead); n > 0 && m.ahead[n-1].at.After(now) {
		now = m.ahead[n-1].at
	}
	m.Queue(levels, now.Add(time.Duration(len(levels))*LevelDuration))
}

// forever is the duration returned by Follow if no change is queued.
const forever = time.Duration(math.MaxInt64)

// Update sets the level that is heard at now, and returns how long it lasts.
func (m *Mouth) Update(now time.Time) time.Duration {
	past := 0
	for past < len(m.ahead) && !m.ahead[past].at.After(now) {
		past++
	}
	if past > 0 {
		m.all.set(m.of, m.ahead[past-1].level)
		m.ahead = m.ahead[:copy(m.ahead, m.ahead[past:])]
	}
	if len(m.ahead) == 0 {
		return forever
	}
	return m.ahead[0].at.Sub(now)
}

// Shut drops what is queued and sets silence.
func (m *Mouth) Shut() {
	m.ahead = m.ahead[:0]
	m.all.set(m.of, 0)
}

// Close shuts the mouth and removes it.
func (m *Mouth) Close() {
	m.Shut()
	m.all.mu.Lock()
	defer m.all.mu.Unlock()
	if m.all.mouths[m.of]--; m.all.mouths[m.of] == 0 {
		delete(m.all.mouths, m.of)
	}
}

// Run speaks the levels from given, one after the other, until ctx ends. It does not shut
// the mouth.
func (m *Mouth) Run(ctx context.Context, given <-chan []float64) {
	defer m.Close()
	timer := time.NewTimer(forever)
	defer timer.Stop()
	for {
		select {
		case levels := <-given:
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
