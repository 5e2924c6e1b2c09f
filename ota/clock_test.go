package ota

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"perch/device"
)

const clockYears = 5 * 365 * 24 * time.Hour

func TestTicketIsValidForADayWhateverTheClock(t *testing.T) {
	noon := time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		jump   time.Duration // an hour after the start
		before bool          // it was given before that
		used   time.Duration // after it was given, by the running clock
		good   bool
	}{
		"the clock is right":                  {0, true, 2 * time.Hour, true},
		"the clock is right, for too long":    {0, true, 25 * time.Hour, false},
		"five years on":                       {clockYears, true, 2 * time.Hour, true},
		"five years on, for too long":         {clockYears, true, 25 * time.Hour, false},
		"given after five years":              {clockYears, false, 2 * time.Hour, true},
		"given after them, for too long":      {clockYears, false, 25 * time.Hour, false},
		"a day back":                          {-24 * time.Hour, true, 2 * time.Hour, true},
		"a day back, it lasts so much longer": {-24 * time.Hour, true, 25 * time.Hour, true},
		"a day back, for too long":            {-24 * time.Hour, true, 49 * time.Hour, false},
		"given after a day back":              {-24 * time.Hour, false, 2 * time.Hour, true},
		"years back, for too long":            {-clockYears, true, 25 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			running := time.Duration(0)
			f := &Firmware{o: FirmwareOptions{Key: []byte("key")}, started: noon, running: func() time.Duration { return running }}
			given := noon
			if !c.before {
				given = noon.Add(c.jump)
			}
			ticket := f.ticket("image", "a0b1c2d3e4f5", given)
			running = c.used
			id, err := f.checkTicket("image", ticket, noon.Add(c.used).Add(c.jump))
			if good := err == nil && id == "a0b1c2d3e4f5"; good != c.good {
				t.Errorf("%s, %v", id, err)
			}
		})
	}
}

func TestLatestChoiceCountsAfterClockWasSetBack(t *testing.T) {
	now := time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
	f := &Firmware{images: map[string]Record{"a": {Image: Image{Added: now}}}, units: map[device.ID]Unit{
		"r": {Trials: map[string]Trial{"a": {Chosen: true, Offered: now.Add(time.Hour)}, "b": {Offered: now.Add(clockYears)}}},
	}}
	later := now.Add(2 * time.Hour)
	if at := f.afterChoices(later); !at.Equal(later) {
		t.Errorf("with a clock that is right: %s", at)
	}
	for _, wrong := range []time.Time{now, now.Add(-24 * time.Hour), now.Add(-clockYears)} {
		if at := f.afterChoices(wrong); !at.After(now.Add(time.Hour)) || at.After(later) {
			t.Errorf("at %s it is taken for %s", wrong, at)
		}
	}
}

func TestImplausibleTimeIsNotSent(t *testing.T) {
	built := time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)
	s := New(Options{Zone: time.UTC, Framing: 1, Earliest: built, Log: slog.New(slog.DiscardHandler)})
	for at, sets := range map[time.Time]bool{built.Add(-clockYears): false, built: true, built.Add(time.Hour): true} {
		text, err := json.Marshal(s.newReply("a0b1c2d3e4f5", device.Admission{Token: "t"}, "", at))
		if err != nil || strings.Contains(string(text), "server_time") != sets {
			t.Errorf("at %s it is told %s, %v", at, text, err)
		}
	}
}
