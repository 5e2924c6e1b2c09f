package daily_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"perch/device"
	"perch/event"
	"perch/gateway/owner/daily"
	"perch/must"
	"perch/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	robotA device.ID = "a0b1c2d3e4f5"
	robotB device.ID = "a0b1c2d3e4f6"

	year = 365 * 24 * time.Hour
)

// home holds the sums, the bus and the database of an appliance. In a bubble of synctest the clock begins at midnight UTC
// of 1 January 2000, a Saturday.
type home struct {
	t     *testing.T
	path  string
	zone  *time.Location
	db    *store.DB
	bus   *event.Bus
	sums  *daily.Sums
	end   context.CancelFunc
	runs  sync.WaitGroup
	known map[device.ID]bool
}

func open(t *testing.T, zone string) *home {
	t.Helper()
	location, err := time.LoadLocation(zone)
	must.Succeed(t, err)
	h := &home{t: t, path: filepath.Join(t.TempDir(), "perch.db"), zone: location, known: map[device.ID]bool{robotA: true, robotB: true}}
	h.start()
	t.Cleanup(h.stop)
	return h
}

func (h *home) start() {
	db, err := store.Open(h.path, store.Options{})
	must.Succeed(h.t, err)
	h.db, h.bus = db, event.NewBus()
	h.sums = daily.NewSums(store.NewTable[daily.Day](db, "days"), h.zone, func(id device.ID) bool { return h.known[id] })
	ctx, cancel := context.WithCancel(h.t.Context())
	h.end = cancel
	sums, events := h.sums, h.bus.ReadFrom(1)
	h.runs.Go(func() { sums.Run(ctx, events) })
}

// stop ends Run and closes the database, as perch does when it stops.
func (h *home) stop() {
	h.bus.Close()
	h.runs.Wait()
	h.end()
	_ = h.db.Close()
}

// crash continues with a copy of the database file, so that everything that is not on the disk is lost.
func (h *home) crash() {
	path := h.path
	h.path = filepath.Join(h.t.TempDir(), "copy.db")
	content, err := os.ReadFile(path)
	must.Succeed(h.t, err)
	must.Succeed(h.t, os.WriteFile(h.path, content, 0o600))
	h.stop()
	h.start()
}

func (h *home) happens(robot device.ID, events ...event.Event) {
	for _, e := range events {
		h.bus.Publish(robot, "s", e)
	}
	synctest.Wait()
}

// day returns the sums of a robot on a date.
func (h *home) day(robot device.ID, date string) daily.Day {
	for _, d := range h.sums.Week(robot).Days {
		if d.Robot != robot {
			h.t.Errorf("a day of %s among those of %s", d.Robot, robot)
		}
		if d.Date == date {
			return d
		}
	}
	return daily.Day{}
}

func (h *home) dates() (dates []string) {
	for _, d := range h.sums.Week("").Days {
		dates = append(dates, d.Date)
	}
	return dates
}

func turn(firstPacket int64) event.Event {
	return event.TurnEnded{End: event.EndDone, Stages: map[string]int64{event.StageFirstPacket: firstPacket, event.StageFirstToken: 100}}
}

// Events of these tests.
var (
	heard event.Event = event.Heard{Text: "Hello."}
	// announced is the end of a turn in which nobody has waited for an answer.
	announced event.Event = event.TurnEnded{End: event.EndDone, Stages: map[string]int64{event.StageFirstPacket: 9000}}
)

func status(battery int, signal string) event.Event {
	return event.RobotStatus{Battery: &battery, Signal: signal}
}

func wantHours(t *testing.T, what string, got daily.Hours, want daily.Hours) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, "Asia/Tokyo") // nine hours ahead
		h.happens(robotA, heard, turn(1000), heard, turn(3000), announced, status(80, "strong"), status(79, "weak"), event.Perceived{Name: "face_detected"})
		h.happens(robotB, status(50, "a new word"), event.Said{Text: "Hello."})
		h.happens("", turn(500)) // a chat without a robot
		time.Sleep(2 * time.Hour)
		h.happens(robotA, heard, turn(2000), event.Mood{Dominant: "curiosity"})
		time.Sleep(20 * time.Second)
		h.happens(robotA, event.Mood{Dominant: "neutral"})
		d := h.day(robotA, "2000-01-01")
		wantHours(t, "talks", d.Talks, daily.Hours{9: 2, 11: 1})
		wantHours(t, "battery", d.Battery, daily.Hours{9: 79})
		wantHours(t, "signal", d.Signal, daily.Hours{9: 1})
		wantHours(t, "sensed", d.Sensed["face_detected"], daily.Hours{9: 1})
		wantHours(t, "curiosity", d.Moods["curiosity"], daily.Hours{11: 20_000})
		if len(d.Moods) != 1 {
			t.Errorf("moods %v", d.Moods)
		}
		if want := (daily.Wait{Turns: 3, Ms: 6000}); d.Waits[event.StageFirstPacket] != want {
			t.Errorf("waits %v", d.Waits)
		}
		d = h.day(robotB, "2000-01-01")
		wantHours(t, "the other's battery", d.Battery, daily.Hours{9: 50})
		wantHours(t, "a word that nobody knows", d.Signal, nil)
	})
}

func TestAWeekIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, "UTC")
		for range 30 {
			h.happens(robotA, heard)
			time.Sleep(24 * time.Hour)
		}
		want := []string{"2000-01-25", "2000-01-26", "2000-01-27", "2000-01-28", "2000-01-29", "2000-01-30"}
		if got := h.dates(); !slices.Equal(got, want) { // today, the 31st, has no sums
			t.Errorf("kept %v, want %v", got, want)
		}
		time.Sleep(2 * time.Hour)
		n := 0
		for range store.NewTable[daily.Day](h.db, "days").All() {
			n++
		}
		if n != len(want) {
			t.Errorf("%d records in the database", n)
		}
	})
}

// TestSummerTime checks the days on which daylight saving time begins and ends, which have 23 and 25 hours.
func TestSummerTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, "Europe/Berlin")
		at := func(text string) {
			day, err := time.Parse(time.RFC3339, text)
			must.Succeed(t, err)
			time.Sleep(time.Until(day))
		}
		at("2000-03-25T22:30:00Z") // 23:30 on the 25th
		for range 5 {
			h.happens(robotA, heard)
			time.Sleep(time.Hour)
		}
		wantHours(t, "the day before", h.day(robotA, "2000-03-25").Talks, daily.Hours{23: 1})
		wantHours(t, "without two o'clock", h.day(robotA, "2000-03-26").Talks, daily.Hours{0: 1, 1: 1, 3: 1, 4: 1})
		at("2000-10-28T22:30:00Z") // 0:30 on the 29th
		h.happens(robotA, event.Mood{Dominant: "patience"})
		for range 5 {
			h.happens(robotA, heard)
			time.Sleep(time.Hour)
		}
		h.happens(robotA, event.Mood{Dominant: "neutral"})
		d, hour := h.day(robotA, "2000-10-29"), 3600_000
		wantHours(t, "two o'clock twice", d.Talks, daily.Hours{0: 1, 1: 1, 2: 2, 3: 1})
		wantHours(t, "a mood of five hours", d.Moods["patience"], daily.Hours{0: hour / 2, 1: hour, 2: 2 * hour, 3: hour, 4: hour / 2})
	})
}

// TestRestart checks that a stop loses nothing, and a power cut at most the last hour.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, "UTC")
		h.happens(robotA, heard, event.Mood{Dominant: "empathy"})
		time.Sleep(10 * time.Minute)
		h.stop()
		h.start()
		d := h.day(robotA, "2000-01-01")
		wantHours(t, "talks after a stop", d.Talks, daily.Hours{0: 1})
		wantHours(t, "moods after a stop", d.Moods["empathy"], daily.Hours{0: 600_000})

		for range 4 {
			h.happens(robotA, heard)
			time.Sleep(44 * time.Minute) // at 0:10, 0:54, 1:38 and 2:22
		}
		h.crash() // at 3:06; the sums were written at 1:10 and 2:10
		wantHours(t, "talks after a power cut", h.day(robotA, "2000-01-01").Talks, daily.Hours{0: 3, 1: 1})
	})
}

// TestWrites checks that an idle appliance writes nothing, and a busy one once an hour.
func TestWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, "UTC")
		time.Sleep(3 * 24 * time.Hour)
		if n := h.db.Commits(); n != 0 {
			t.Errorf("%d commits of an idle appliance", n)
		}
		h.happens(robotA, status(80, "strong"))
		time.Sleep(time.Hour + time.Minute)
		before := h.db.Commits()
		h.happens(robotA, status(80, "strong"))
		time.Sleep(30 * time.Minute)
		h.sums.Week("")
		time.Sleep(30 * time.Minute)
		for range 6 * 60 {
			h.happens(robotA, heard, event.Perceived{Name: "face_detected"})
			time.Sleep(time.Minute)
		}
		if n := h.db.Commits() - before; n > 8 {
			t.Errorf("%d commits in seven hours", n)
		}
	})
}

// TestClockIsSet checks that a clock that is wrong for less than an hour deletes no sums and adds no years to a mood.
func TestClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, "UTC")
		for range 3 {
			h.happens(robotA, heard)
			time.Sleep(24 * time.Hour)
		}
		table := store.NewTable[daily.Day](h.db, "days")
		count := func() (n int) {
			for range table.All() {
				n++
			}
			return n
		}
		h.happens(robotA, event.Mood{Dominant: "concern"})
		h.sums.AdjustClock(30 * year)
		time.Sleep(30 * time.Second)
		h.sums.Store()
		if n := count(); n < 3 {
			t.Errorf("%d days after the clock was set to another year", n)
		}
		h.sums.AdjustClock(-30 * year)
		time.Sleep(30 * time.Second)
		h.happens(robotA, event.Mood{Dominant: "neutral"})
		h.sums.Store()
		if n := count(); n < 3 {
			t.Errorf("%d days after the clock was set right", n)
		}
		shown := 0
		for _, d := range table.All() {
			for _, ms := range d.Moods["concern"] {
				shown += ms
			}
		}
		if shown != 60_000 {
			t.Errorf("a mood of %d ms, want a minute", shown)
		}
		time.Sleep(26 * time.Hour)
		if got, stored := h.dates(), count(); len(got) != 4 || stored != 4 {
			t.Errorf("days %v, of %d", got, stored)
		}
	})
}

func TestForgottenRobot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, "UTC")
		for range 3 {
			h.happens(robotA, heard, status(80, "weak"))
			h.happens(robotB, heard)
			time.Sleep(24 * time.Hour)
		}
		h.happens(robotA, heard, event.Mood{Dominant: "concern"})
		h.happens(robotA, event.RobotForgotten{})
		time.Sleep(2 * time.Hour)
		must.Succeed(t, h.db.Flush())
		for key, d := range store.NewTable[daily.Day](h.db, "days").All() {
			if d.Robot != robotB {
				t.Errorf("%s is left", key)
			}
		}
		delete(h.known, robotB) // as if the robot had been forgotten while Run did not run
		if got := h.dates(); len(got) != 0 {
			t.Errorf("shown of a forgotten robot: %v", got)
		}
		time.Sleep(24 * time.Hour)
		must.Succeed(t, h.db.Flush())
		for key := range store.NewTable[daily.Day](h.db, "days").All() {
			t.Errorf("%s is left of a robot that is not known", key)
		}
	})
}

// TestSize checks the size of the sums of a hundred robots with as many different events as possible, over eight days.
func TestSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, "UTC")
		table := store.NewTable[daily.Day](h.db, "days")
		var names []event.Event
		for i := range 50 {
			names = append(names, event.Perceived{Name: fmt.Sprint(i, strings.Repeat("x", 100))})
		}
		robots := make([]device.ID, 100)
		for n := range robots {
			robots[n] = device.ID(fmt.Sprintf("%012x", n))
			h.known[robots[n]] = true
		}
		for i := range 8 * 24 {
			for n, robot := range robots {
				events := []event.Event{heard, turn(50_000), status(i%100, "medium")}
				if n == 0 {
					events = append(events, names...)
				}
				for _, feeling := range []string{"concern", "celebration", "patience", "curiosity", "empathy", "uncertain"} {
					events = append(events, event.Mood{Dominant: feeling})
				}
				for _, e := range events {
					h.sums.Add(event.Envelope{At: time.Now(), Robot: robot, Event: e})
				}
			}
			time.Sleep(time.Hour)
		}
		must.Succeed(t, h.db.Flush())
		total, largest, records := 0, 0, 0
		for _, d := range table.All() {
			data, err := json.Marshal(d)
			must.Succeed(t, err)
			records, total, largest = records+1, total+len(data), max(largest, len(data))
		}
		t.Logf("%d records, %d bytes, the largest %d", records, total, largest)
		if records > daily.KeptDays*100 || largest > 6<<10 || total > 3<<20 {
			t.Errorf("%d records, %d bytes, the largest %d", records, total, largest)
		}
	})
}
