package daily

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"perch/device"
	"perch/event"
)

// KeptDays is how many days are kept, today included: the page draws a week.
const KeptDays = 7

// storeInterval is the interval between two writes of the changed sums. It is long because frequent writes wear out an
// SD card. A power cut loses what was added since the latest write.
const storeInterval = time.Hour

// maxRobots is the maximum number of robots with sums of the same day.
const maxRobots = 1000

// maxJump is how far the clock may deviate between two writes before it counts as set, and not as running fast or slow.
const maxJump = time.Minute

// table stores the sums of a day of a robot by key. The writes are asynchronous.
type table interface {
	Get(key string) (d Day, found bool, err error)
	PutSoon(key string, d Day)
	DeleteSoon(key string)
	All() iter.Seq2[string, Day]
}

// Sums holds the sums of the latest days of each robot. It is safe for concurrent use.
type Sums struct {
	table table
	known func(device.ID) bool // reports whether the robot has not been forgotten
	now   func() moment

	mu     sync.Mutex
	open   map[string]Day // the days that may still change, by key
	dirty  map[string]bool
	moods  map[device.ID]mood
	stored moment // the latest write, or the beginning
	pruned string // the date on which old days were deleted last
}

// moment is the present time by both clocks. The wall clock may jump: a Raspberry Pi has no battery-backed clock and gets
// the time from the network minutes after its start.
type moment struct {
	wall    time.Time     // in the household's zone
	running time.Duration // since the start
}

// date returns the date of a moment.
func (m moment) date() string { return m.wall.Format(time.DateOnly) }

// mood is a mood that a robot shows, and since when by the running clock. The time before was added.
type mood struct {
	name  string
	since time.Duration
}

// NewSums returns the sums in t. The days begin and end at midnight in the zone. Sums of robots that are not known are
// deleted.
func NewSums(t table, zone *time.Location, known func(device.ID) bool) *Sums {
	started := time.Now()
	s := &Sums{table: t, known: known, open: map[string]Day{}, dirty: map[string]bool{}, moods: map[device.ID]mood{}}
	s.now = func() moment { return moment{time.Now().Round(0).In(zone), time.Since(started)} }
	s.stored = s.now()
	return s
}

// Run adds the events of r, and stores the sums each hour and at the end, until ctx ends or the bus is closed.
func (s *Sums) Run(ctx context.Context, r *event.Reader) {
	events, stop := r.Events(ctx)
	defer stop()
	ticker := time.NewTicker(storeInterval)
	defer ticker.Stop()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				s.store()
				return
			}
			s.add(e)
		case <-ticker.C:
			s.store()
		}
	}
}

// add adds an event.
func (s *Sums) add(e event.Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	switch ev := e.Event.(type) {
	case event.Missed:
		clear(s.moods) // the end of a mood may have been missed
	case event.RobotForgotten:
		s.forget(e.Robot)
	case event.Mood:
		if e.Robot != "" {
			s.addMood(e.Robot, now)
			s.moods[e.Robot] = mood{ev.Dominant, now.running}
			if ev.Dominant == "neutral" {
				delete(s.moods, e.Robot)
			}
		}
	case event.Heard, event.TurnEnded, event.RobotStatus, event.Perceived:
		if e.Robot != "" {
			s.change(e.Robot, now.wall, func(d *Day, hour int) bool { return d.add(e.Event, hour) })
		}
	}
}

// change changes the day of a robot at a time. The function returns whether it has changed the day. The caller holds s.mu.
func (s *Sums) change(robot device.ID, at time.Time, change func(d *Day, hour int) bool) {
	date := at.Format(time.DateOnly)
	key := date + "/" + string(robot)
	d, isOpen := s.open[key]
	if !isOpen {
		if len(s.open) >= maxRobots {
			return
		}
		stored, _, err := s.table.Get(key)
		if err != nil {
			return // what is on the disk stays as it is
		}
		d = stored
		d.Robot, d.Date = robot, date
	}
	if change(&d, at.Hour()) {
		s.open[key], s.dirty[key] = d, true
	}
}

// addMood adds the time up to now for which a robot has shown its mood, to each hour its part. It goes back from now,
// because only the present time of day is right after the clock was set. The caller holds s.mu.
func (s *Sums) addMood(robot device.ID, now moment) {
	m, shown := s.moods[robot]
	if !shown {
		return
	}
	s.moods[robot] = mood{m.name, now.running}
	at := now.wall
	for left := now.running - m.since; left > 0; {
		part := time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second + time.Duration(at.Nanosecond())
		part = min(left, cmp.Or(part, time.Hour))
		at, left = at.Add(-part), left-part
		s.change(robot, at, func(d *Day, hour int) bool {
			d.addMood(m.name, hour, part)
			return true
		})
	}
}

// forget deletes the sums of a robot. The caller holds s.mu.
func (s *Sums) forget(robot device.ID) {
	delete(s.moods, robot)
	of := func(key string) bool { return strings.HasSuffix(key, "/"+string(robot)) }
	maps.DeleteFunc(s.open, func(key string, _ Day) bool { return of(key) })
	maps.DeleteFunc(s.dirty, func(key string, _ bool) bool { return of(key) })
	for key := range s.table.All() {
		if of(key) {
			s.table.DeleteSoon(key)
		}
	}
}

// store writes the changed days. Once a day it deletes those that are no longer kept, unless the clock was set since
// the latest write: a wrong clock must not delete anything.
func (s *Sums) store() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for robot := range s.moods {
		s.addMood(robot, now)
	}
	for key := range s.dirty {
		s.table.PutSoon(key, s.open[key])
	}
	clear(s.dirty)
	today := now.date()
	maps.DeleteFunc(s.open, func(_ string, d Day) bool { return d.Date != today })
	jumped := now.wall.Sub(s.stored.wall) - (now.running - s.stored.running)
	if s.stored = now; jumped.Abs() > maxJump || today == s.pruned {
		return
	}
	s.pruned = today
	for key, d := range s.table.All() {
		if !s.isKept(d, now) {
			s.table.DeleteSoon(key)
		}
	}
}

// isKept reports whether a day is one of those that are kept, and its robot was not forgotten. A day in the future is
// from a time when the clock was wrong.
func (s *Sums) isKept(d Day, now moment) bool {
	return d.Date >= now.wall.AddDate(0, 0, 1-KeptDays).Format(time.DateOnly) && d.Date <= now.date() && s.known(d.Robot)
}

// Week is a response about the latest days.
type Week struct {
	Today string `json:"today"` // the date where the household is
	Days  []Day  `json:"days"`  // the oldest first, those of one date by robot; days without anything are left out
}

// Week returns the days that are kept, up to now, with what is not stored yet: of one robot, or of all if robot is "".
func (s *Sums) Week(robot device.ID) Week {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for robot := range s.moods {
		s.addMood(robot, now)
	}
	days := maps.Collect(s.table.All())
	for key, d := range s.open {
		days[key] = d.clone()
	}
	maps.DeleteFunc(days, func(_ string, d Day) bool { return !s.isKept(d, now) || robot != "" && d.Robot != robot })
	w := Week{Today: now.date(), Days: []Day{}}
	for _, key := range slices.Sorted(maps.Keys(days)) {
		w.Days = append(w.Days, days[key])
	}
	return w
}
