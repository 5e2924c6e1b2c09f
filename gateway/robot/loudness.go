package robot

import (
	"sync"
	"time"

	"perch/device"
	"perch/voice"
)

// loudness is how loud each robot speaks, as it is heard. The zero value is silence.
type loudness struct {
	mu       sync.Mutex
	speaking map[device.ID]*level // those that are not silent
	begins   chan struct{}        // closed when a silent robot begins; nil if nobody waits
}

// level is above 0.
type level struct {
	is      float64
	changed chan struct{} // closed with the next; nil if nobody waits
}

// Level is how loud a robot's speech is that is heard now, from 0 to 1: by the time at
// which the robot plays it, not at which it is sent. changed is closed once it may be
// another.
func (s *Server) Level(id device.ID) (is float64, changed <-chan struct{}) {
	return s.loudness.of(id)
}

func (l *loudness) of(id device.ID) (is float64, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waits := &l.begins
	if of := l.speaking[id]; of != nil {
		is, waits = of.is, &of.changed
	}
	if *waits == nil {
		*waits = make(chan struct{})
	}
	return is, *waits
}

// set changes a robot's level. It allocates nothing while the robot speaks.
func (l *loudness) set(id device.ID, is float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.speaking[id]
	if of == nil && is == 0 || of != nil && of.is == is {
		return
	}
	waits := &l.begins
	switch {
	case of == nil:
		if l.speaking == nil {
			l.speaking = map[device.ID]*level{}
		}
		l.speaking[id] = &level{is: is}
	case is == 0:
		delete(l.speaking, id)
		waits = &of.changed
	default:
		of.is, waits = is, &of.changed
	}
	if *waits != nil {
		close(*waits)
		*waits = nil
	}
}

// mouth follows the speech of one robot: the levels of what was sent and is not played
// yet. The pacer gives a robot at most a second of speech ahead of time.
type mouth struct {
	all   *loudness
	robot device.ID
	ahead []moment
}

// moment is from when a level is heard.
type moment struct {
	at    time.Time
	level float64
}

// will notes the levels of a packet whose last sound will have been played at until.
// Nothing is heard then, unless another packet follows.
func (m *mouth) will(levels voice.Levels, until time.Time) {
	at := until.Add(-voice.FrameDuration)
	for _, level := range levels {
		m.ahead = append(m.ahead, moment{at, level})
		at = at.Add(voice.LevelDuration)
	}
	m.ahead = append(m.ahead, moment{until, 0})
}

// follow sets the level that is heard at now, and returns for how long.
func (m *mouth) follow(now time.Time) time.Duration {
	past := 0
	for past < len(m.ahead) && !m.ahead[past].at.After(now) {
		past++
	}
	if past > 0 {
		m.all.set(m.robot, m.ahead[past-1].level)
		m.ahead = m.ahead[:copy(m.ahead, m.ahead[past:])]
	}
	if len(m.ahead) == 0 {
		return forever
	}
	return m.ahead[0].at.Sub(now)
}

// shut is the end of what was to be heard.
func (m *mouth) shut() {
	m.ahead = m.ahead[:0]
	m.all.set(m.robot, 0)
}
