// Package daily keeps sums of each robot's days: utterances heard, waiting times, battery, Wi-Fi signal, moods and
// perception events. The owner's page draws them.
package daily

import (
	"maps"
	"slices"
	"time"

	"perch/device"
	"perch/event"
	"perch/limit"
	"perch/plain"
)

// Day holds the sums of one robot for one date in the configured time zone. Hours are local: the hour repeated when
// daylight saving time ends has one sum, and the skipped hour has none.
type Day struct {
	Robot   device.ID        `json:"robot"`
	Date    string           `json:"date"`              // such as "2026-11-28"
	Talks   Hours            `json:"talks,omitempty"`   // number of utterances heard
	Waits   map[string]Wait  `json:"waits,omitempty"`   // by stage; see event.Stages
	Battery Hours            `json:"battery,omitempty"` // latest charge in each hour, in percent
	Signal  Hours            `json:"signal,omitempty"`  // latest strength of the Wi-Fi signal in each hour: 1 (weak), 2 or 3 (strong)
	Moods   map[string]Hours `json:"moods,omitempty"`   // milliseconds that each mood except neutral was shown
	Sensed  map[string]Hours `json:"sensed,omitempty"`  // number of perception events, by name
}

// Hours maps an hour, from 0 to 23, to a value. Hours without a value are missing.
type Hours map[int]int

// Wait is the total duration of a stage over all turns that had it.
type Wait struct {
	Turns int   `json:"turns"`
	Ms    int64 `json:"ms"` // total duration in milliseconds
}

// maxSensed is the maximum number of names in Day.Sensed, not counting Other. It limits an encoded Day to six kilobytes.
const maxSensed = 8

// Other is the key in Day.Sensed for all further names.
const Other = "other"

// add adds an event to an hour, and reports whether d has changed.
func (d *Day) add(e event.Event, hour int) bool {
	switch e := e.(type) {
	case event.Heard:
		d.Talks.add(hour, 1)
	case event.TurnEnded:
		return d.addTurn(e)
	case event.RobotStatus:
		return d.addStatus(e, hour)
	case event.Perceived:
		name := plain.Clip(e.Name, limit.Word)
		if _, known := d.Sensed[name]; !known && len(d.Sensed) >= maxSensed {
			name = Other
		}
		addTo(&d.Sensed, name, hour, 1)
	default:
		return false
	}
	return true
}

// addTurn adds the durations of a turn's stages, and reports whether d has changed. It ignores turns without a first
// token, such as announcements, because nobody waited for them.
func (d *Day) addTurn(e event.TurnEnded) bool {
	if _, answered := e.Stages[event.StageFirstToken]; !answered {
		return false
	}
	for _, stage := range event.Stages() {
		ms, measured := e.Stages[stage]
		if !measured {
			continue
		}
		if d.Waits == nil {
			d.Waits = map[string]Wait{}
		}
		w := d.Waits[stage]
		d.Waits[stage] = Wait{Turns: w.Turns + 1, Ms: w.Ms + max(0, ms)}
	}
	return true
}

// addStatus sets the battery and the signal of an hour, and reports whether they have changed.
func (d *Day) addStatus(e event.RobotStatus, hour int) (changed bool) {
	if e.Battery != nil {
		changed = d.Battery.set(hour, *e.Battery)
	}
	if strength := 1 + slices.Index(signals(), e.Signal); strength > 0 {
		changed = d.Signal.set(hour, strength) || changed
	}
	return changed
}

// signals returns the firmware's words for the strength of the Wi-Fi signal, from weak to strong.
func signals() []string { return []string{"weak", "medium", "strong"} }

// addMood adds to an hour the time that a mood was shown.
func (d *Day) addMood(name string, hour int, shown time.Duration) {
	addTo(&d.Moods, name, hour, int(shown.Milliseconds()))
}

func (h *Hours) add(hour, n int) { h.set(hour, (*h)[hour]+n) }

// set sets the value of an hour, and reports whether it changed.
func (h *Hours) set(hour, n int) bool {
	if before, known := (*h)[hour]; known && before == n {
		return false
	}
	if *h == nil {
		*h = Hours{}
	}
	(*h)[hour] = n
	return true
}

func addTo(sums *map[string]Hours, name string, hour, n int) {
	if *sums == nil {
		*sums = map[string]Hours{}
	}
	hours := (*sums)[name]
	hours.add(hour, n)
	(*sums)[name] = hours
}

// clone returns a copy that shares nothing with d.
func (d Day) clone() Day {
	d.Talks, d.Waits, d.Battery, d.Signal = maps.Clone(d.Talks), maps.Clone(d.Waits), maps.Clone(d.Battery), maps.Clone(d.Signal)
	d.Moods, d.Sensed = maps.Clone(d.Moods), maps.Clone(d.Sensed)
	for _, sums := range []map[string]Hours{d.Moods, d.Sensed} {
		for name, hours := range sums {
			sums[name] = maps.Clone(hours)
		}
	}
	return d
}
