package homeassistant

import (
	"fmt"
	"slices"
	"time"

	"perch/device"
)

// waitingTime is how long a command waits. An older one would only puzzle the people near the robot.
const waitingTime = 24 * time.Hour

// Waiting is a command that waits for its robot's next hello.
type Waiting struct {
	Thing   string    `json:"thing"`
	Payload string    `json:"payload"` // as it was published
	Expires time.Time `json:"expires"`

	running bool
}

// waitingCommands are the commands that wait, the latest of each thing. (Sentences and notifications
// wait at the notifier.) A command stays in the table until it was carried out: the broker has been
// told to forget it, and the power may fail before that.
type waitingCommands struct {
	table   table[[]Waiting]
	byRobot map[device.ID][]*Waiting
}

func newWaitingCommands(t table[[]Waiting]) *waitingCommands {
	c := &waitingCommands{t, map[device.ID][]*Waiting{}}
	for key, list := range t.All() {
		if id, err := device.ParseID(key); err == nil {
			for _, w := range list {
				c.byRobot[id] = append(c.byRobot[id], &w)
			}
		}
	}
	return c
}

// store adds a command in place of an earlier one for the same thing. It is durable on return.
func (c *waitingCommands) store(id device.ID, w *Waiting) error {
	list := slices.DeleteFunc(slices.Clone(c.byRobot[id]), func(o *Waiting) bool { return o.Thing == w.Thing })
	list = append(list, w)
	if err := c.table.Put(string(id), values(list)); err != nil {
		return fmt.Errorf("store the command: %w", err)
	}
	c.byRobot[id], w.running = list, false
	return nil
}

// values returns a list as the table stores it.
func values(list []*Waiting) (all []Waiting) {
	for _, w := range list {
		all = append(all, *w)
	}
	return all
}

// start returns a robot's commands, which are running from then on; remove ends each. A reboot is
// last, because it would cut off the others.
func (c *waitingCommands) start(id device.ID) []*Waiting {
	var list, last []*Waiting
	for _, w := range c.byRobot[id] {
		switch {
		case w.running:
		case w.Thing == "reboot":
			last = append(last, w)
		default:
			list = append(list, w)
		}
		w.running = true
	}
	return append(list, last...)
}

// remove removes a command that was carried out or refused. It ignores any other.
func (c *waitingCommands) remove(id device.ID, w *Waiting) {
	i := slices.Index(c.byRobot[id], w)
	if i < 0 {
		return
	}
	if c.byRobot[id] = slices.Delete(c.byRobot[id], i, i+1); len(c.byRobot[id]) == 0 {
		c.removeAll(id)
		return
	}
	c.table.PutSoon(string(id), values(c.byRobot[id]))
}

// removeAll removes all commands for a robot.
func (c *waitingCommands) removeAll(id device.ID) {
	if _, waits := c.byRobot[id]; waits {
		delete(c.byRobot, id)
		c.table.DeleteSoon(string(id))
	}
}
