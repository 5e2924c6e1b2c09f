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
	"perch/gateway/robot/dialogue"
)

// Command is something a robot is to do once its channel opens.
type Command struct {
	ID      string    `json:"id"`
	Thing   string    `json:"thing"` // "say" or "alert"
	Text    string    `json:"text,omitempty"`
	Status  string    `json:"status,omitempty"` // of an alert
	Emotion string    `json:"emotion,omitempty"`
	Expires time.Time `json:"expires"`
}

// commandAlert is what event.Command calls a message on the screen.
const commandAlert = "alert"

// commandLives is how long a command waits: an older one would confuse people.
const commandLives = 24 * time.Hour

// commandTable stores commands; Put is durable when it returns.
type commandTable interface {
	Get(key string) ([]Command, bool, error)
	Put(key string, list []Command) error
	PutSoon(key string, list []Command)
	DeleteSoon(key string)
}

// CommandQueue stores commands for robots with a closed channel: up to 40 sentences, and the latest of
// all others. Any goroutine may call its methods.
type CommandQueue struct {
	table   commandTable
	mu      sync.Mutex
	thisRun map[device.ID]map[string]bool // commands of this run that wait as long as any
}

// NewCommandQueue returns the commands stored in a table.
func NewCommandQueue(table commandTable) *CommandQueue {
	return &CommandQueue{table: table, thisRun: map[device.ID]map[string]bool{}}
}

// add stores commands durably, and returns the oldest sentences if too many wait.
func (q *CommandQueue) add(id device.ID, now time.Time, added ...Command) (givenUp []Command, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, _, err := q.table.Get(string(id))
	if err != nil {
		return nil, fmt.Errorf("keep a command: %w", err)
	}
	ours := maps.Clone(q.thisRun[id])
	if ours == nil {
		ours = map[string]bool{}
	}
	for _, c := range added {
		c.ID, c.Expires = rand.Text()[:12], now.Add(commandLives)
		ours[c.ID] = true
		if c.Thing != dialogue.CommandSay {
			list = slices.DeleteFunc(list, func(o Command) bool { return o.Thing == c.Thing })
		}
		list = append(list, c)
	}
	for sentences := count(list, dialogue.CommandSay); sentences > dialogue.MaxStored; sentences-- {
		oldest := slices.IndexFunc(list, func(c Command) bool { return c.Thing == dialogue.CommandSay })
		givenUp = append(givenUp, list[oldest])
		list = slices.Delete(list, oldest, oldest+1)
	}
	if err := q.table.Put(string(id), list); err != nil {
		return nil, fmt.Errorf("keep a command: %w", err)
	}
	maps.DeleteFunc(ours, func(command string, _ bool) bool {
		return !slices.ContainsFunc(list, func(c Command) bool { return c.ID == command })
	})
	q.thisRun[id] = ours
	return givenUp, nil
}

// Moved says that the wall clock has jumped. Commands of this run wait as long as they would have
// without the jump.
func (q *CommandQueue) Moved(by time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, ours := range q.thisRun {
		list, _, err := q.table.Get(string(id))
		if err != nil || len(list) == 0 {
			continue // what cannot be read now ends when it says
		}
		list = slices.Clone(list)
		for i, c := range list {
			if ours[c.ID] {
				list[i].Expires = c.Expires.Round(0).Add(by)
			}
		}
		q.table.PutSoon(string(id), list)
	}
}

func count(list []Command, thing string) (n int) {
	for _, c := range list {
		if c.Thing == thing {
			n++
		}
	}
	return n
}

// list returns what waits for a robot, in order, until drop is called for it.
func (q *CommandQueue) list(id device.ID) []Command {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, _, err := q.table.Get(string(id))
	if err != nil {
		return nil // what cannot be read now can be at the next hello
	}
	return list
}

// drop deletes a command that was carried out, or has waited too long.
func (q *CommandQueue) drop(id device.ID, command string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list, _, err := q.table.Get(string(id))
	if err != nil {
		return // it is spoken once more, which is better than never
	}
	list = slices.DeleteFunc(slices.Clone(list), func(c Command) bool { return c.ID == command })
	if delete(q.thisRun[id], command); len(q.thisRun[id]) == 0 {
		delete(q.thisRun, id)
	}
	if len(list) == 0 {
		q.table.DeleteSoon(string(id))
	} else {
		q.table.PutSoon(string(id), list)
	}
}

// input returns the input of a session that carries the command out.
func (c Command) input() dialogue.Input {
	if c.Thing == commandAlert {
		return dialogue.ShowAlert{Alert: c.alert()}
	}
	return dialogue.Announce{Announcement: dialogue.Announcement{Text: c.Text, Command: c.ID, Expires: c.Expires}}
}

func (c Command) alert() xiaozhi.Alert {
	return xiaozhi.Alert{Status: c.Status, Message: c.Text, Emotion: c.Emotion}
}
