package robot

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
)

// Command is something a robot is to do once its channel opens.
type Command struct {
	Thing   string    `json:"thing"` // "say" or "alert"
	Text    string    `json:"text,omitempty"`
	Status  string    `json:"status,omitempty"` // of an alert
	Emotion string    `json:"emotion,omitempty"`
	Expires time.Time `json:"expires"`
}

// The things that can wait.
const (
	thingSay   = "say"
	thingAlert = "alert"
)

// commandLives is how long a command waits. Older ones would only puzzle
// whoever hears them.
const commandLives = 24 * time.Hour

// mostWaiting bounds the sentences that wait for one robot.
const mostWaiting = 20

// commands is where they are kept; Put is durable when it returns.
type commands interface {
	Get(key string) ([]Command, bool, error)
	Put(key string, list []Command) error
	DeleteSoon(key string)
}

// Waiting keeps what robots are to do whose channel is closed: of most things
// the latest, of sentences up to 20. Its methods may be called from any
// goroutine.
type Waiting struct {
	kept commands
	mu   sync.Mutex
}

// NewWaiting returns the commands kept in a table.
func NewWaiting(kept commands) *Waiting { return &Waiting{kept: kept} }

// add keeps commands durably. Where too many sentences wait, the oldest is
// given up.
func (w *Waiting) add(id device.ID, now time.Time, added ...Command) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	list, _, err := w.kept.Get(string(id))
	if err != nil {
		return fmt.Errorf("keep a command: %w", err)
	}
	for _, c := range added {
		if c.Expires.IsZero() {
			c.Expires = now.Add(commandLives)
		}
		if c.Thing != thingSay {
			list = slices.DeleteFunc(list, func(o Command) bool { return o.Thing == c.Thing })
		}
		list = append(list, c)
	}
	for said := count(list, thingSay); said > mostWaiting; said-- {
		oldest := slices.IndexFunc(list, func(c Command) bool { return c.Thing == thingSay })
		list = slices.Delete(list, oldest, oldest+1)
	}
	if err := w.kept.Put(string(id), list); err != nil {
		return fmt.Errorf("keep a command: %w", err)
	}
	return nil
}

func count(list []Command, thing string) (n int) {
	for _, c := range list {
		if c.Thing == thing {
			n++
		}
	}
	return n
}

// take returns what waits for a robot, in order, and keeps it no longer. What
// has waited too long comes apart.
func (w *Waiting) take(id device.ID, now time.Time) (list, late []Command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept, there, err := w.kept.Get(string(id))
	if err != nil || !there {
		return nil, nil // what cannot be read now can be at the next hello
	}
	w.kept.DeleteSoon(string(id))
	for _, c := range kept {
		if now.Before(c.Expires) {
			list = append(list, c)
		} else {
			late = append(late, c)
		}
	}
	return list, late
}

// input is the command as a session takes it.
func (c Command) input() input {
	if c.Thing == thingAlert {
		return show{alert: xiaozhi.Alert{Status: c.Status, Message: c.Text, Emotion: c.Emotion}}
	}
	return tell{telling: telling{text: c.Text}}
}
