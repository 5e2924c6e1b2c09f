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

	underway bool // it is being carried out
}

// kept are the commands that wait, of each thing the latest. Sentences and
// notifications wait at the notifier, which has them spoken. A command stays in the
// table until it is done: it was confirmed, and the power may go before that.
type kept struct {
	table table[[]Waiting]
	by    map[device.ID][]*Waiting
}

func newKept(t table[[]Waiting]) kept {
	k := kept{t, map[device.ID][]*Waiting{}}
	for key, list := range t.All() {
		if id, err := device.ParseID(key); err == nil {
			for _, w := range list {
				k.by[id] = append(k.by[id], &w)
			}
		}
	}
	return k
}

// stored is a list as the table has it.
func stored(list []*Waiting) (all []Waiting) {
	for _, w := range list {
		all = append(all, *w)
	}
	return all
}

// keep has a command wait, in the place of an earlier one for the same thing.
// It is durable when this returns.
func (k kept) keep(id device.ID, w *Waiting) error {
	list := slices.DeleteFunc(slices.Clone(k.by[id]), func(o *Waiting) bool { return o.Thing == w.Thing })
	list = append(list, w)
	if err := k.table.Put(string(id), stored(list)); err != nil {
		return fmt.Errorf("keep the command: %w", err)
	}
	k.by[id], w.underway = list, false
	return nil
}

// take returns what waits for a robot, to be carried out; done ends each. A reboot
// comes last, or it would cut off the others.
func (k kept) take(id device.ID) []*Waiting {
	var list, last []*Waiting
	for _, w := range k.by[id] {
		switch {
		case w.underway:
		case w.Thing == "reboot":
			last = append(last, w)
		default:
			list = append(list, w)
		}
		w.underway = true
	}
	return append(list, last...)
}

// done removes a command that was carried out or refused.
func (k kept) done(id device.ID, w *Waiting) {
	i := slices.Index(k.by[id], w)
	if i < 0 {
		return
	}
	if k.by[id] = slices.Delete(k.by[id], i, i+1); len(k.by[id]) == 0 {
		k.drop(id)
		return
	}
	k.table.PutSoon(string(id), stored(k.by[id]))
}

// drop forgets all commands for a robot.
func (k kept) drop(id device.ID) {
	if _, waits := k.by[id]; waits {
		delete(k.by, id)
		k.table.DeleteSoon(string(id))
	}
}
