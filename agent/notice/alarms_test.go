package notice_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"perch/agent"
	"perch/agent/notice"
	"perch/event"
	"perch/must"
	"perch/store/storetest"
)

func inZone(t *testing.T, name string) *time.Location {
	t.Helper()
	return must.Value(time.LoadLocation(name))(t)
}

// wakes runs a test in a bubble of synctest, with an open robot in Berlin, at a time there.
func wakes(t *testing.T, at string, do func(t *testing.T, h *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &fixture{t: t, table: &storetest.Table[notice.Notification]{}, rings: &storetest.Table[agent.Timer]{},
			clock: &jumpingClock{began: time.Now()}, bus: event.NewBus(), log: &strings.Builder{}, zone: inZone(t, "Europe/Berlin")}
		h.clock.jump(time.Until(must.Value(time.ParseInLocation("2006-01-02 15:04", at, h.zone))(t)))
		h.run()
		defer func() { h.stop() }()
		h.hello(chan1, "s1")
		do(t, h)
	})
}

// alarm sets an alarm that says its time and days.
func (h *fixture) alarm(at, days string) agent.Timer {
	h.t.Helper()
	alarm := agent.Timer{Robot: chan1, Text: strings.TrimSpace(at + " " + days), At: at, Days: must.Value(agent.ParseDays(days))(h.t)}
	set := must.Value(h.timers.Set(h.t.Context(), nil, alarm, h.clock.Now().In(h.zone)))(h.t)
	synctest.Wait()
	return set
}

// restart stops the appliance for a while, and starts it in a time zone.
func (h *fixture) restart(off time.Duration, zone *time.Location) {
	h.t.Helper()
	h.stop()
	time.Sleep(off)
	h.start(zone)
}

// start starts the appliance again.
func (h *fixture) start(zone *time.Location) {
	h.t.Helper()
	h.bus, h.zone, h.clock.began = event.NewBus(), zone, time.Now()
	h.mu.Lock()
	h.open = nil
	h.mu.Unlock()
	h.run()
	h.hello(chan1, "s2")
}

// rungIn returns what rings in the time d, and at what time of the clock, to the minute. A
// robot speaks everything at once.
func (h *fixture) rungIn(d time.Duration) (rung []string) {
	h.t.Helper()
	collect := func() {
		h.mu.Lock()
		announced := h.announced
		h.announced = nil
		h.mu.Unlock()
		slices.Sort(announced)
		for _, text := range announced {
			text = strings.Trim(strings.TrimPrefix(text, "5: "), "!")
			rung = append(rung, h.clock.Now().In(h.zone).Format("Mon 15:04")+": "+text)
		}
		for id := range h.table.All() { // a copy, taken under its lock
			h.changed(id, notice.Spoken)
		}
	}
	collect()
	for end := time.Now().Add(d); time.Now().Before(end); collect() {
		h.pass(time.Minute)
	}
	return rung
}

func (h *fixture) wantRung(d time.Duration, want ...string) {
	h.t.Helper()
	if got := h.rungIn(d); !slices.Equal(got, want) {
		h.t.Errorf("in %s rang\n%s\nwant\n%s", d, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const (
	day      = 24 * time.Hour
	weekdays = "mon tue wed thu fri"
)

// TestAWeekOfAlarms tests a week of alarms in which the clocks go forward, and one in which they
// go back, with a restart on Wednesday.
func TestAWeekOfAlarms(t *testing.T) {
	for name, c := range map[string]struct{ monday, changed string }{
		"spring": {"2026-03-23 00:00", "Sun 03:00: 02:30 mon tue wed thu fri sat sun"},
		"autumn": {"2026-10-19 00:00", "Sun 02:30: 02:30 mon tue wed thu fri sat sun"},
	} {
		t.Run(name, func(t *testing.T) {
			wakes(t, c.monday, func(t *testing.T, h *fixture) {
				h.alarm("07:00", weekdays)
				h.alarm("02:30", weekdays+" sat sun")
				h.alarm("09:00", "sat sun")
				h.alarm("19:30", "mon")
				h.alarm("06:15", "")
				const daily, working, late = "02:30: 02:30 mon tue wed thu fri sat sun", "07:00: 07:00 mon tue wed thu fri", "09:00: 09:00 sat sun"
				h.wantRung(2*day+12*time.Hour, "Mon "+daily, "Mon 06:15: 06:15", "Mon "+working, "Mon 19:30: 19:30 mon", "Tue "+daily,
					"Tue "+working, "Wed "+daily, "Wed "+working)
				h.restart(10*time.Minute, h.zone)
				h.wantRung(4*day+20*time.Hour, "Thu "+daily, "Thu "+working, "Fri "+daily, "Fri "+working, "Sat "+daily, "Sat "+late,
					c.changed, "Sun "+late, "Mon "+daily, "Mon "+working)
				if n := len(maps.Collect(h.rings.All())); n != 4 {
					t.Errorf("%d alarms are kept", n)
				}
			})
		})
	}
}

// TestAnAlarmThatWasMissed tests that an alarm rings late if the appliance was off for less than
// an hour after its time. After a longer time, an alarm that repeats waits for its next time, and
// the robot says that one that rings once was missed.
func TestAnAlarmThatWasMissed(t *testing.T) {
	wakes(t, "2026-03-23 06:00", func(t *testing.T, h *fixture) {
		h.alarm("07:00", weekdays)
		h.alarm("07:05", "")
		h.restart(90*time.Minute, h.zone)
		h.wantRung(time.Hour, "Mon 07:30: 07:00 "+weekdays, "Mon 07:30: 07:05")
		h.alarm("09:05", "")
		h.restart(3*day, h.zone)
		h.wantRung(day, "Thu 08:30: missed 09:05 of Mon 09:05", "Fri 07:00: 07:00 "+weekdays)
	})
}

// TestAMissedAlarmIsNoEvent tests that automations are not told that an alarm rings which is
// only reported as missed.
func TestAMissedAlarmIsNoEvent(t *testing.T) {
	wakes(t, "2026-03-23 06:00", func(t *testing.T, h *fixture) {
		missed := h.alarm("07:00", "")
		h.restart(6*time.Hour, h.zone)
		h.pass(time.Minute)
		if h.count("rang "+missed.ID) != 0 || h.count("notification "+missed.ID) != 1 || len(maps.Collect(h.rings.All())) > 0 {
			t.Errorf("published %v, %d are kept", h.published(), len(maps.Collect(h.rings.All())))
		}
	})
}

// TestAlarmsInAnotherTimeZone tests that alarms ring at the same time of day in the time zone in
// which the appliance starts, and not twice on one day if it moves east.
func TestAlarmsInAnotherTimeZone(t *testing.T) {
	wakes(t, "2026-03-23 08:00", func(t *testing.T, h *fixture) {
		h.alarm("07:00", weekdays)
		h.alarm("10:00", "")
		tokyo, newYork := inZone(t, "Asia/Tokyo"), inZone(t, "America/New_York")
		h.restart(time.Minute, tokyo)
		if due := h.timers.Pending(chan1, h.clock.Now())[0].Due.In(tokyo).Format("Mon 15:04"); due != "Tue 07:00" {
			t.Errorf("the first is due at %s", due)
		}
		h.wantRung(day, "Tue 07:00: 07:00 "+weekdays, "Tue 10:00: 10:00")
		h.restart(time.Minute, newYork)
		h.wantRung(day, "Tue 07:00: 07:00 "+weekdays)
	})
}

// TestAlarmsWhenTheClockJumps tests that an alarm rings at most once at a jump of the clock,
// however many of its times the clock skips, and goes by the new time afterwards.
func TestAlarmsWhenTheClockJumps(t *testing.T) {
	const alarm = "07:00 " + weekdays
	for name, c := range map[string]struct {
		jump time.Duration
		want []string
	}{
		"years on":         {3*364*day + 3*time.Hour, []string{"Tue 07:00: " + alarm}},
		"years back":       {-3 * 364 * day, []string{"Tue 07:00: " + alarm}},
		"just past it":     {day - 40*time.Minute, []string{"Tue 07:20: " + alarm}},
		"a week past it":   {8*day - 40*time.Minute, []string{"Tue 07:20: " + alarm}},
		"hours past it":    {day + 2*time.Hour, []string{"Wed 07:00: " + alarm}},
		"into the weekend": {5 * day, nil},
		"a little back":    {-20 * time.Minute, []string{"Tue 07:00: " + alarm}},
		"to before it":     {-2 * time.Hour, []string{"Mon 07:00: " + alarm}},
		"a little forward": {10 * time.Minute, []string{"Tue 07:00: " + alarm}},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				wakes(t, "2026-03-09 06:59", func(t *testing.T, h *fixture) {
					h.alarm("07:00", weekdays)
					h.wantRung(time.Hour, "Mon 07:00: "+alarm)
					if restarts {
						h.restart(0, h.zone)
					}
					h.clock.jump(c.jump)
					h.wantRung(day-30*time.Minute, c.want...)
				})
			})
		}
	}
}

// TestAClockThatIsSetAfterTheStart tests a Raspberry Pi that starts with the time at which it
// was switched off, and gets the right time a minute later.
func TestAClockThatIsSetAfterTheStart(t *testing.T) {
	wakes(t, "2026-03-23 22:00", func(t *testing.T, h *fixture) {
		for _, at := range []string{"06:00", "07:00", "08:00", "12:00"} {
			h.alarm(at, weekdays)
		}
		h.alarm("06:30", "")
		const off = 5*day + 10*time.Hour // until Sunday, 29 March, 9:00 of summer time
		h.stop()
		time.Sleep(off)
		h.clock.jump(-off)
		h.start(h.zone)
		h.wantRung(time.Minute)
		h.clock.jump(off)
		h.wantRung(day, "Sun 09:02: missed 06:30 of Tue 06:30", "Mon 06:00: 06:00 "+weekdays, "Mon 07:00: 07:00 "+weekdays, "Mon 08:00: 08:00 "+weekdays)
	})
}

// TestAnAlarmWhenTheStoreFails tests that an alarm that repeats rings every day although its
// next time cannot be stored.
func TestAnAlarmWhenTheStoreFails(t *testing.T) {
	wakes(t, "2026-03-23 06:00", func(t *testing.T, h *fixture) {
		h.alarm("07:00", weekdays)
		h.rings.Breaks(errors.New("disk full"))
		h.wantRung(2*day, "Mon 07:00: 07:00 "+weekdays, "Tue 07:00: 07:00 "+weekdays)
	})
}

// TestInvalidAlarms tests the errors for invalid alarms, and that alarms count among the timers
// of a robot.
func TestInvalidAlarms(t *testing.T) {
	s := notice.NewTimers(&storetest.Table[agent.Timer]{}, nil)
	for name, bad := range map[string]agent.Timer{
		"no such hour":   {Text: "x", At: "25:00"},
		"no time":        {Text: "x", At: "seven"},
		"no time of day": {Text: "x", Days: 1},
		"two times":      {Text: "x", At: "07:00", Length: time.Hour},
		"no text":        {At: "07:00"},
	} {
		if set, err := s.Set(t.Context(), nil, bad, noon); !errors.Is(err, agent.ErrTimer) {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
	}
	for range 10 {
		must.Value(s.Set(t.Context(), nil, tea(time.Hour), noon))(t)
		must.Value(s.Set(t.Context(), nil, agent.Timer{Robot: chan1, Text: "x", At: " 7:00", Days: 2}, noon))(t)
	}
	if _, err := s.Set(t.Context(), nil, agent.Timer{Robot: chan1, Text: "x", At: "07:00"}, noon); !errors.Is(err, agent.ErrTooManyTimers) {
		t.Errorf("a 21st: %v", err)
	}
}

// TestTheRobotRingsNoAlarmThatRepeats tests that an alarm that repeats is not set on the robot,
// which knows neither days nor changes of the clock.
func TestTheRobotRingsNoAlarmThatRepeats(t *testing.T) {
	s, b := notice.NewTimers(&storetest.Table[agent.Timer]{}, nil), ringing()
	for days, want := range map[agent.Days]bool{0: true, 127: false} {
		set, err := s.Set(t.Context(), b, agent.Timer{Robot: chan1, Text: "x", At: "07:00", Days: days}, noon)
		if err != nil || set.OnRobot != want {
			t.Errorf("%s: %+v, %v", days, set, err)
		}
	}
}
