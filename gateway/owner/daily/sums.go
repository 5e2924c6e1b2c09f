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

// KeptDays is the number of days that are kept, including today: the page draws a week.
const KeptDays = 7

// storeInterval is the interval between two writes of the changed sums. It is long because frequent writes wear out an
// SD card. A power cut loses the events since the latest write.
const storeInterval = time.Hour

// maxOpen is the maximum length of Sums.open. Events that would open another day are ignored.
const maxOpen = 1000

// maxJump is the largest drift between the wall clock and the monotonic clock from one write to the next. If they differ
// by more, somebody has set the wall clock.
const maxJump = time.Minute

// table stores days. A key is DATE/ROBOT. PutSoon and DeleteSoon are asynchronous.
type table interface {
	Get(key string) (d Day, found bool, err error)
	PutSoon(key string, d Day)
	DeleteSoon(key string)
	All() iter.Seq2[string, Day]
}

// Sums holds the sums of the latest days of each robot. It is safe for concurrent use.
type Sums struct {
	table table
	known func(device.ID) bool // reports whether the robot is registered
	now   func() moment

	mu     sync.Mutex
	open   map[string]Day  // days that may still change, by key
	dirty  map[string]bool // keys of open days that are not stored
	moods  map[device.ID]mood
	stored moment // when store last ran; before that, the time of NewSums
	pruned string // date of the latest deletion of old days
}

// moment is a time by the wall clock and by the monotonic clock. The wall clock may jump: a Raspberry Pi has no
// battery-backed clock and gets the time from the network minutes after its start.
type moment struct {
	wall    time.Time     // in the configured time zone
	running time.Duration // monotonic time since NewSums
}

// date returns the date by the wall clock.
func (m moment) date() string { return m.wall.Format(time.DateOnly) }

// mood is the mood that a robot shows. The time before since (see moment.running) is already in the sums.
type mood struct {
	name  string
	since time.Duration
}

// NewSums returns the sums in t. The days begin and end at midnight in the zone. Run deletes the sums of robots that known
// rejects.
func NewSums(t table, zone *time.Location, known func(device.ID) bool) *Sums {
	started := time.Now()
	s := &Sums{table: t, known: known, open: map[string]Day{}, dirty: map[string]bool{}, moods: map[device.ID]mood{}}
	s.now = func() moment { return moment{time.Now().Round(0).In(zone), time.Since(started)} }
	s.stored = s.now()
	return s
}

// Run adds the events of r until ctx ends or the bus is closed. It stores the sums every storeInterval and before it
// returns.
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

// change calls edit with the robot's day and the hour of at, and marks the day as dirty if edit reports true. It does
// nothing if the day cannot be read. s.mu must be held.
func (s *Sums) change(robot device.ID, at time.Time, edit func(d *Day, hour int) bool) {
	date := at.Format(time.DateOnly)
	key := date + "/" + string(robot)
	d, isOpen := s.open[key]
	if !isOpen {
		if len(s.open) >= maxOpen {
			return
		}
		stored, _, err := s.table.Get(key)
		if err != nil {
			return // the stored day must not be replaced
		}
		d = stored
		d.Robot, d.Date = robot, date
	}
	if edit(&d, at.Hour()) {
		s.open[key], s.dirty[key] = d, true
	}
}

// addMood adds the time for which a robot has shown its mood since the previous call, split into hours. It counts back
// from now, because after the clock was set only the present wall time is right. s.mu must be held.
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

// forget deletes the sums of a robot. s.mu must be held.
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

// store writes the changed days, and closes all days except today's. Once per date it also deletes the days that isKept
// rejects, unless the clock was set since the previous write. If the clock is wrong from the start and is set only after
// the first call of store, that call deletes days by the wrong date.
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

// isKept reports whether d is one of the latest KeptDays days, and its robot is registered. A later date was recorded with
// a wrong clock.
func (s *Sums) isKept(d Day, now moment) bool {
	return d.Date >= now.wall.AddDate(0, 0, 1-KeptDays).Format(time.DateOnly) && d.Date <= now.date() && s.known(d.Robot)
}

// Week is the response with the sums of the latest days.
type Week struct {
	Today string `json:"today"` // today in the configured time zone
	Days  []Day  `json:"days"`  // sorted by date, then robot; days without sums are missing
}

// Week returns the kept days of robot, or of all robots if robot is "". It includes sums that are not stored yet.
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
