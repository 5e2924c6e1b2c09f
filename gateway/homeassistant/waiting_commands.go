package homeassistant

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"perch/device"
)

// commandLifetime is how long a command waits for its robot. An older command is out of date.
const commandLifetime = 24 * time.Hour

// Waiting is a command that waits until its robot connects.
type Waiting struct {
	Thing   string    `json:"thing"`   // level of the command's topic before "set", such as "volume" or "reboot"
	Payload string    `json:"payload"` // the published MQTT payload, unchanged
	Expires time.Time `json:"expires"`

	running bool // the command is in its robot's lane, queued or being carried out
}

// waitingCommands holds the commands that wait for their robots: for each robot, the latest command for each thing.
// Sentences wait in robot.CommandQueue instead, and notifications in the notifier. A command stays in the table until it
// has been carried out, because the broker no longer has the command and the power may fail. Only the hub's goroutine may
// use waitingCommands.
type waitingCommands struct {
	table   table[[]Waiting]
	byRobot map[device.ID][]*Waiting // oldest first
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

// errReplaced is the error of a command that could not be carried out, and that a later one has replaced meanwhile.
var errReplaced = errors.New("a later command has replaced it")

// store adds a command durably. It replaces an earlier command for the same thing. A command of start is in the table
// already, and only waits again; store returns errReplaced if it no longer is.
func (c *waitingCommands) store(id device.ID, w *Waiting) error {
	if w.running {
		w.running = false
		if !slices.Contains(c.byRobot[id], w) {
			return errReplaced
		}
		return nil
	}
	list := slices.DeleteFunc(slices.Clone(c.byRobot[id]), func(o *Waiting) bool { return o.Thing == w.Thing })
	list = append(list, w)
	if err := c.table.Put(string(id), values(list)); err != nil {
		return fmt.Errorf("store the command: %w", err)
	}
	c.byRobot[id] = list
	return nil
}

// values returns the commands of a list by value, as the table stores them.
func values(list []*Waiting) (commands []Waiting) {
	for _, w := range list {
		commands = append(commands, *w)
	}
	return commands
}

// start marks a robot's commands as running, and returns the commands that were not running before. A reboot comes
// last, because it would interrupt the other commands. The caller must call remove for a command that was
// carried out or refused, and store for a command that must wait again.
func (c *waitingCommands) start(id device.ID) []*Waiting {
	var list, reboots []*Waiting
	for _, w := range c.byRobot[id] {
		switch {
		case w.running:
		case w.Thing == "reboot":
			reboots = append(reboots, w)
		default:
			list = append(list, w)
		}
		w.running = true
	}
	return append(list, reboots...)
}

// remove removes a command that was carried out or refused. It ignores a command that is not stored.
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

func (c *waitingCommands) removeAll(id device.ID) {
	if _, waits := c.byRobot[id]; waits {
		delete(c.byRobot, id)
		c.table.DeleteSoon(string(id))
	}
}
