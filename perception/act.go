package perception

import (
	"time"

	"perch/event"
)

// Act is an action of a robot. All implementations are in this file and in rule.go.
type Act interface{ isAct() }

// Say speaks a text.
type Say struct {
	Text       string
	Person     string // replaces {name} in the text, unless empty
	Translated bool   // whether a Text of DefaultTuning is replaced by the phrase in the robot's language
	Greeting   bool   // whether the text greets a face
}

// Look makes the agent look at a target, in the programs that show the agent. The robot's head
// does not move.
type Look struct{ Target string } // see event.LookAt

// Abort stops the turn of a conversation that is under way, and with it the robot's speech.
type Abort struct{}

// TurnHead turns the head.
type TurnHead struct {
	Yaw      int  // degrees; negative: to the robot's left
	Pitch    *int // degrees; nil means unchanged
	Speed    int  // in the firmware's units, 100-1000
	Priority Priority
	Hold     time.Duration // how long turns of the same or a lower priority are rejected; see head.reserve
}

// FindHead asks the robot for the position of its head, after an agent or a client has moved the head. A client is
// a program that calls the robot's tools.
type FindHead struct{}

// Lights sets the colour of all lights. Each component is 0-255; the executor limits it to the
// range of the robot's tool. All 0 means off.
type Lights struct{ Red, Green, Blue int }

// Play plays a sound.
type Play struct{ Sound string } // base name of the sound's file

// RefreshFace keeps the mark lit that the firmware shows for a recognized face. Without a
// RefreshFace, the firmware turns the mark off after 4 s.
type RefreshFace struct{}

// SetState puts the firmware into a state, see State.Mode.
type SetState struct{ State string }

func (Say) isAct()         {}
func (Look) isAct()        {}
func (Abort) isAct()       {}
func (TurnHead) isAct()    {}
func (FindHead) isAct()    {}
func (Lights) isAct()      {}
func (Play) isAct()        {}
func (RefreshFace) isAct() {}
func (SetState) isAct()    {}

// Priority decides whether a turn of the head may replace an earlier turn whose Hold has not ended.
type Priority int

// Priorities, the lowest first.
const (
	PriorityMood     Priority = iota + 1 // the pose of the agent's mood
	PriorityIdle                         // looking around
	PrioritySound                        // turning to a sound
	PriorityWakeWord                     // turning to the wake word
	PriorityGesture                      // a requested gesture or look
	PriorityRule                         // an owner's rule
	PriorityTalk                         // a tool call by the agent or a client
)

// priorityOfRequest returns the priority of a gesture or a look. by is the By field of the
// event with the request.
func priorityOfRequest(by string) Priority {
	if by == event.ByMood {
		return PriorityMood
	}
	return PriorityGesture
}

// head is the reservation of a robot's head.
type head struct {
	priority Priority  // of the latest turn
	until    time.Time // end of the reservation
}

// reserve reserves the head for a turn. It returns false if the head is reserved for a turn of
// the same or a higher priority. Turns with PriorityGesture do not exclude each other, and neither
// do turns with PriorityMood.
func (h *head) reserve(now time.Time, p Priority, hold time.Duration) bool {
	sameGesture := p == h.priority && (p == PriorityGesture || p == PriorityMood)
	if now.Before(h.until) && p <= h.priority && !sameGesture {
		return false
	}
	h.priority, h.until = p, now.Add(hold)
	return true
}
