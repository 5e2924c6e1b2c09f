// Package daily sums up what robots did: when they talked, how long people waited, their battery, their moods, and
// what they sensed. The owner's page draws these sums.
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

// Day are the sums of one robot over one day of the household's calendar. The hours are those of its clock: the hour
// that comes twice when summer time ends has one sum, and the hour that is left out when it begins has none.
type Day struct {
	Robot   device.ID        `json:"robot"`
	Date    string           `json:"date"`              // such as "2026-11-28"
	Talks   Hours            `json:"talks,omitempty"`   // how often somebody said something
	Waits   map[string]Wait  `json:"waits,omitempty"`   // by stage; see event.Stages
	Battery Hours            `json:"battery,omitempty"` // latest charge in percent
	Signal  Hours            `json:"signal,omitempty"`  // latest strength of the Wi-Fi signal: 1 (weak), 2 or 3 (strong)
	Moods   map[string]Hours `json:"moods,omitempty"`   // milliseconds of each mood except neutral
	Sensed  map[string]Hours `json:"sensed,omitempty"`  // number of events, by their names
}

// Hours has a number for each hour from 0 to 23 in which there was something.
type Hours map[int]int

// Wait is how long a stage took in all answers that had it.
type Wait struct {
	Turns int   `json:"turns"`
	Ms    int64 `json:"ms"` // the sum, in milliseconds
}

// maxSensed is the maximum number of names in Day.Sensed. Further events are added under Other. It keeps a Day below
// six kilobytes, whatever a robot reports.
const maxSensed = 8

// Other is the name in Day.Sensed of the events whose names have no place of their own.
const Other = "other"

// add adds an event at an hour, and returns whether the event has changed d.
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

// addTurn adds the durations of the stages of a turn, and returns whether it is a turn for which somebody has waited: an
// announcement is not.
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

// addStatus sets the battery and the signal of an hour, and returns whether they have changed.
func (d *Day) addStatus(e event.RobotStatus, hour int) (changed bool) {
	if e.Battery != nil {
		changed = d.Battery.set(hour, *e.Battery)
	}
	if strength := 1 + slices.Index(signals(), e.Signal); strength > 0 {
		changed = d.Signal.set(hour, strength) || changed
	}
	return changed
}

// signals returns the words of the firmware for the strength of the Wi-Fi signal, the weakest first.
func signals() []string { return []string{"weak", "medium", "strong"} }

// addMood adds the time for which a mood was shown.
func (d *Day) addMood(name string, hour int, shown time.Duration) {
	addTo(&d.Moods, name, hour, int(shown.Milliseconds()))
}

// add adds n to an hour.
func (h *Hours) add(hour, n int) { h.set(hour, (*h)[hour]+n) }

// set sets an hour, and returns whether that has changed it.
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

// addTo adds n to an hour under a name.
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
