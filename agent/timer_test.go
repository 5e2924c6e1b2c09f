package agent_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
	_ "time/tzdata"

	"perch/agent"
	"perch/must"
)

// TestNextTimeOfAnAlarm tests the next time of alarms, also on the days on which the clocks
// change: a time that the clocks skip is the moment at which they go forward, and a time that
// they repeat counts once.
func TestNextTimeOfAnAlarm(t *testing.T) {
	for _, c := range []struct{ zone, at, days, after, want string }{
		{"Europe/Berlin", "07:00", "", "2026-11-20 06:59", "2026-11-20 07:00 +0100"},
		{"Europe/Berlin", "07:00", "", "2026-11-20 07:00", "2026-11-21 07:00 +0100"},
		{"Europe/Berlin", "07:00", "mon tue wed thu fri", "2026-11-20 07:00", "2026-11-23 07:00 +0100"},
		{"Europe/Berlin", "07:00", "fri", "2026-11-20 07:00", "2026-11-27 07:00 +0100"},
		{"Europe/Berlin", "07:00", "", "2026-03-28 12:00", "2026-03-29 07:00 +0200"},
		{"Europe/Berlin", "02:30", "", "2026-03-28 12:00", "2026-03-29 03:00 +0200"},
		{"Europe/Berlin", "02:30", "", "2026-03-29 03:00", "2026-03-30 02:30 +0200"},
		{"Europe/Berlin", "02:30", "sun", "2026-03-28 12:00", "2026-03-29 03:00 +0200"},
		{"Europe/Berlin", "02:30", "", "2026-10-24 12:00", "2026-10-25 02:30 +0100"},
		{"Europe/Berlin", "02:30", "", "2026-10-25 02:30", "2026-10-26 02:30 +0100"},
		{"America/New_York", "02:30", "", "2026-03-07 12:00", "2026-03-08 03:00 -0400"},
		{"America/Havana", "00:15", "sun", "2026-03-07 12:00", "2026-03-08 01:00 -0400"}, // the clocks skip the first hour of a day
		{"Asia/Tokyo", "23:59", "", "2026-12-31 23:59", "2027-01-01 23:59 +0900"},
	} {
		zone := must.Value(time.LoadLocation(c.zone))(t)
		alarm := agent.Timer{At: c.at, Days: must.Value(agent.ParseDays(c.days))(t)}
		got := alarm.Next(must.Value(time.ParseInLocation("2006-01-02 15:04", c.after, zone))(t))
		if got.Format("2006-01-02 15:04 -0700") != c.want {
			t.Errorf("%s %s after %s in %s: %s, want %s", c.days, c.at, c.after, c.zone, got, c.want)
		}
	}
}

// TestAnAlarmInTheRepeatedHour tests that an alarm rings once on the day on which the clocks go
// back, at whatever time it is set.
func TestAnAlarmInTheRepeatedHour(t *testing.T) {
	for zone, c := range map[string]struct {
		midnight string
		alarm    agent.Timer
	}{
		"Europe/Berlin":    {"2026-10-25 00:00", agent.Timer{At: "02:30"}},
		"America/New_York": {"2026-11-01 00:00", agent.Timer{At: "01:30"}},
	} {
		midnight := must.Value(time.ParseInLocation("2006-01-02 15:04", c.midnight, must.Value(time.LoadLocation(zone))(t)))(t)
		first := c.alarm.Next(midnight)
		for minutes := range 24 * 60 {
			now := midnight.Add(time.Duration(minutes) * time.Minute)
			next := c.alarm.Next(now)
			if today := next.Day() == midnight.Day(); today != now.Before(first) || today && !next.Equal(first) {
				t.Fatalf("%s: %s after %s, and %s after midnight", zone, next, now, first)
			}
		}
	}
}

// TestDays tests that days are parsed from names, and written as short names in JSON.
func TestDays(t *testing.T) {
	for text, want := range map[string]string{"": "", "sun mon": "mon sun", "Monday, TUESDAY,fri fri": "mon tue fri"} {
		if days, err := agent.ParseDays(text); err != nil || days.String() != want {
			t.Errorf("%q: %q, %v", text, days, err)
		}
	}
	for _, text := range []string{"m", "mond", "1", "every day", "mon\ntue"} {
		if days, err := agent.ParseDays(text); !errors.Is(err, agent.ErrTimer) {
			t.Errorf("%q: %q, %v", text, days, err)
		}
	}
	alarm := agent.Timer{ID: "a", At: "07:00", Days: must.Value(agent.ParseDays("sat sun"))(t)}
	text := must.Value(json.Marshal(alarm))(t)
	var got agent.Timer
	if err := json.Unmarshal(text, &got); err != nil || got != alarm {
		t.Errorf("%s becomes %+v, %v", text, got, err)
	}
}
