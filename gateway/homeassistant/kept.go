package homeassistant

import (
	"fmt"
	"slices"
	"time"

	"perch/device"
)

// keptFor is how long a command waits. An older one would only puzzle the people
// before the robot.
const keptFor = 24 * time.Hour

// Waiting is a command that waits for a robot's next hello.
type Waiting struct {
	Thing   string    `json:"thing"`
	Payload string    `json:"payload"` // as it was published
	Expires time.Time `json:"expires"`
}

// kept are the commands that wait, of each thing the latest. Sentences and
// notifications wait at the notifier, which has them spoken. A command stays in the
// table until it is done: it was confirmed, and the power may go before that.
type kept struct {
	table    table[[]Waiting]
	here     map[device.ID][]Waiting // those that wait
	underway map[device.ID][]Waiting // those that are being carried out
}

func newKept(t table[[]Waiting]) kept {
	k := kept{t, map[device.ID][]Waiting{}, map[device.ID][]Waiting{}}
	for key, list := range t.All() {
		if id, err := device.ParseID(key); err == nil {
			k.here[id] = list
		}
	}
	return k
}

// keep has a command wait, in the place of an earlier one for the same thing.
// It is durable when this returns.
func (k kept) keep(id device.ID, w Waiting) error {
	others := func(list []Waiting) []Waiting {
		return slices.DeleteFunc(slices.Clone(list), func(o Waiting) bool { return o.Thing == w.Thing })
	}
	here, underway := append(others(k.here[id]), w), others(k.underway[id])
	if err := k.table.Put(string(id), slices.Concat(underway, here)); err != nil {
		return fmt.Errorf("keep the command: %w", err)
	}
	k.here[id], k.underway[id] = here, underway
	return nil
}

// take returns what waits for a robot, to be carried out; done ends each. A reboot
// comes last, or it would cut off the others.
func (k kept) take(id device.ID) []Waiting {
	list := k.here[id]
	if len(list) == 0 {
		return nil
	}
	delete(k.here, id)
	if i := slices.IndexFunc(list, func(w Waiting) bool { return w.Thing == "reboot" }); i >= 0 {
		list = append(slices.Delete(slices.Clone(list), i, i+1), list[i])
	}
	k.underway[id] = append(k.underway[id], list...)
	return list
}

// done removes a command that was carried out or refused.
func (k kept) done(id device.ID, w Waiting) {
	i := slices.IndexFunc(k.underway[id], func(o Waiting) bool {
		return o.Thing == w.Thing && o.Payload == w.Payload && o.Expires.Equal(w.Expires)
	})
	if i < 0 {
		return
	}
	k.underway[id] = slices.Delete(slices.Clone(k.underway[id]), i, i+1)
	if all := slices.Concat(k.underway[id], k.here[id]); len(all) > 0 {
		k.table.PutSoon(string(id), all)
	} else {
		k.drop(id)
	}
}

// drop forgets all commands for a robot.
func (k kept) drop(id device.ID) {
	if _, waits := k.here[id]; !waits && k.underway[id] == nil {
		return
	}
	delete(k.here, id)
	delete(k.underway, id)
	k.table.DeleteSoon(string(id))
}
