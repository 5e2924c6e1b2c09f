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
// notifications wait at the notifier, which has them spoken.
type kept struct {
	table table[[]Waiting]
	here  map[device.ID][]Waiting
}

func newKept(t table[[]Waiting]) kept {
	k := kept{t, map[device.ID][]Waiting{}}
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
	list := slices.DeleteFunc(slices.Clone(k.here[id]), func(o Waiting) bool { return o.Thing == w.Thing })
	list = append(list, w)
	if err := k.table.Put(string(id), list); err != nil {
		return fmt.Errorf("keep the command: %w", err)
	}
	k.here[id] = list
	return nil
}

// take returns what waits for a robot, which then waits no more. A reboot
// comes last, or it would cut off the others.
func (k kept) take(id device.ID) []Waiting {
	list := k.here[id]
	k.drop(id)
	if i := slices.IndexFunc(list, func(w Waiting) bool { return w.Thing == "reboot" }); i >= 0 {
		list = append(slices.Delete(slices.Clone(list), i, i+1), list[i])
	}
	return list
}

func (k kept) drop(id device.ID) {
	if _, before := k.here[id]; !before {
		return
	}
	delete(k.here, id)
	k.table.DeleteSoon(string(id))
}
