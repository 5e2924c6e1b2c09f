package perception

import (
	"time"

	"perch/event"
)

// Act is an action of a robot. The set is closed: the types of this file and rule.go.
type Act interface{ isAct() }

// Say has a text spoken.
type Say struct {
	Text     string
	Person   string // fills {name} in the text
	Usual    bool   // the default text, which is spoken in the robot's language
	Greeting bool   // it greets a face, and is dropped if that face has left
}

// Abort makes the robot quiet.
type Abort struct{}

// TurnHead turns the head, in degrees and the firmware's units of speed.
type TurnHead struct {
	Yaw      int // negative is the robot's own left
	Pitch    *int
	Speed    int // 100-1000
	Priority Priority
	Hold     time.Duration // no lower or equal priority moves it for that long
}

// FindHead asks the robot for the position of its head, after somebody else has turned it.
type FindHead struct{}

// Lights sets the whole ring, each colour 0-168. All 0 is off.
type Lights struct{ Red, Green, Blue int }

// Play plays a sound by its base name.
type Play struct{ Sound string }

// RefreshFace renews a known face's mark, which the firmware turns off after 4 s.
type RefreshFace struct{}

// SetState puts the firmware into one of its states.
type SetState struct{ State string }

func (Say) isAct()         {}
func (Abort) isAct()       {}
func (TurnHead) isAct()    {}
func (FindHead) isAct()    {}
func (Lights) isAct()      {}
func (Play) isAct()        {}
func (RefreshFace) isAct() {}
func (SetState) isAct()    {}

// Priority decides who may turn a head that is in use.
type Priority int

// Priorities, the lowest first.
const (
	PriorityMood     Priority = iota + 1 // what its agent feels shows
	PriorityIdle                         // looking around
	PrioritySound                        // a sound came from a side
	PriorityWakeWord                     // its wake word came from a side
	PriorityGesture                      // a gesture, or a look, was asked for
	PriorityRule                         // a rule of its owner's
	PriorityTalk                         // its brain, or a client, is moving it
)

// priorityOf returns the priority of a gesture or a look by who asked for it.
func priorityOf(by string) Priority {
	if by == event.ByMood {
		return PriorityMood
	}
	return PriorityGesture
}

// head arbitrates who turns a robot's head.
type head struct {
	by    Priority
	until time.Time // reserved until then
}

// grant reports whether a turn is allowed, and if so reserves the head. The turns of one
// gesture do not block each other.
func (h *head) grant(now time.Time, by Priority, hold time.Duration) bool {
	goesOn := by == h.by && (by == PriorityGesture || by == PriorityMood)
	if now.Before(h.until) && by <= h.by && !goesOn {
		return false
	}
	h.by, h.until = by, now.Add(hold)
	return true
}
