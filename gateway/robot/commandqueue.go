package robot

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/dialogue"
)

// Command is a command stored for a robot until it is carried out or dropped, or has expired.
type Command struct {
	ID      string    `json:"id"`
	Thing   string    `json:"thing"` // kind: dialogue.CommandSay or commandAlert
	Text    string    `json:"text,omitempty"`
	Status  string    `json:"status,omitempty"`  // title of an alert
	Emotion string    `json:"emotion,omitempty"` // face of an alert
	Expires time.Time `json:"expires"`
}

// commandAlert is the kind of command that shows a message on the screen, as in event.Command.
const commandAlert = "alert"

// commandTTL is how long a command may wait: an older command would confuse people. The callers of list drop
// expired commands.
const commandTTL = 24 * time.Hour

// commandTable stores the commands of robots, by robot ID. Put returns once the list is safely on the disk;
// PutSoon and DeleteSoon only queue the change.
type commandTable interface {
	Get(key string) ([]Command, bool, error)
	Put(key string, list []Command) error
	PutSoon(key string, list []Command)
	DeleteSoon(key string)
}

// CommandQueue stores commands that wait for a robot, mostly because its channel is closed: for each robot up
// to 40 sentences, and the latest alert. Its methods may be called by any goroutine.
type CommandQueue struct {
	table commandTable
	mu    sync.Mutex
	added map[device.ID]map[string]bool // IDs of stored commands that were added since the appliance started
}

// NewCommandQueue returns a queue of the commands stored in a table.
func NewCommandQueue(table commandTable) *CommandQueue {
	return &CommandQueue{table: table, added: map[device.ID]map[string]bool{}}
}

// add stores commands on the disk. It drops the oldest sentences beyond dialogue.MaxStored, and returns them.
func (q *CommandQueue) add(id device.ID, now time.Time, commands ...Command) (dropped []Command, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, _, err := q.table.Get(string(id))
	if err != nil {
		return nil, fmt.Errorf("store a command: %w", err)
	}
	list = slices.Clone(list)
	added := maps.Clone(q.added[id])
	if added == nil {
		added = map[string]bool{}
	}
	for _, c := range commands {
		c.ID, c.Expires = rand.Text()[:12], now.Add(commandTTL)
		added[c.ID] = true
		if c.Thing != dialogue.CommandSay {
			list = slices.DeleteFunc(list, func(o Command) bool { return o.Thing == c.Thing })
		}
		list = append(list, c)
	}
	for sentences := count(list, dialogue.CommandSay); sentences > dialogue.MaxStored; sentences-- {
		oldest := slices.IndexFunc(list, func(c Command) bool { return c.Thing == dialogue.CommandSay })
		dropped = append(dropped, list[oldest])
		list = slices.Delete(list, oldest, oldest+1)
	}
	if err := q.table.Put(string(id), list); err != nil {
		return nil, fmt.Errorf("store a command: %w", err)
	}
	maps.DeleteFunc(added, func(command string, _ bool) bool {
		return !slices.ContainsFunc(list, func(c Command) bool { return c.ID == command })
	})
	q.added[id] = added
	return dropped, nil
}

// ClockJumped must be called when the wall clock has jumped: forwards if by is positive. It moves the
// expiry of the commands that were added since the appliance started, so that the jump does not change how
// long they stay stored.
func (q *CommandQueue) ClockJumped(by time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, added := range q.added {
		list, _, err := q.table.Get(string(id))
		if err != nil || len(list) == 0 {
			continue // a list that cannot be read keeps its times
		}
		list = slices.Clone(list)
		for i, c := range list {
			if added[c.ID] {
				list[i].Expires = c.Expires.Round(0).Add(by)
			}
		}
		q.table.PutSoon(string(id), list)
	}
}

// count returns how many commands of a kind are in a list.
func count(list []Command, thing string) (n int) {
	for _, c := range list {
		if c.Thing == thing {
			n++
		}
	}
	return n
}

// list returns the stored commands of a robot, oldest first, expired ones included. It deletes none;
// see drop.
func (q *CommandQueue) list(id device.ID) []Command {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, _, err := q.table.Get(string(id))
	if err != nil {
		return nil // the next hello reads the table again
	}
	return list
}

// drop deletes a command that was carried out or skipped, that failed, or that has expired.
func (q *CommandQueue) drop(id device.ID, command string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, _, err := q.table.Get(string(id))
	if err != nil {
		return // writing the list would lose the other commands; instead, this command may be carried out again
	}
	list = slices.DeleteFunc(slices.Clone(list), func(c Command) bool { return c.ID == command })
	if delete(q.added[id], command); len(q.added[id]) == 0 {
		delete(q.added, id)
	}
	if len(list) == 0 {
		q.table.DeleteSoon(string(id))
	} else {
		q.table.PutSoon(string(id), list)
	}
}

// announcement returns the announcement that speaks a stored sentence.
func (c Command) announcement() dialogue.Announcement {
	return dialogue.Announcement{Text: c.Text, Command: c.ID, Expires: c.Expires}
}

// rejected returns the events for a command that is not carried out.
func (c Command) rejected(reason string) []event.Event {
	if c.Thing == dialogue.CommandSay {
		return dialogue.SayEnded(c.announcement(), reason)
	}
	return []event.Event{event.Command{Thing: c.Thing, State: event.CommandRejected, Reason: reason}}
}

// input returns the dialogue's input that carries the command out.
func (c Command) input() dialogue.Input {
	if c.Thing == commandAlert {
		return dialogue.ShowAlert{Alert: c.alert()}
	}
	return dialogue.Announce{Announcement: c.announcement()}
}

// alert returns the message that shows an alert.
func (c Command) alert() xiaozhi.Alert {
	return xiaozhi.Alert{Status: c.Status, Message: c.Text, Emotion: c.Emotion}
}
