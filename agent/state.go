package agent

import (
	"slices"
	"time"

	"perch/device"
	"perch/event"
)

// Shown is what the agent visibly does. Values may be added, but never removed.
type Shown string

// The values of Shown.
const (
	Idle         Shown = "idle"
	Listening    Shown = "listening"
	Thinking     Shown = "thinking"
	Working      Shown = "working"  // one tool is running
	Juggling     Shown = "juggling" // several are, or another agent
	Speaking     Shown = "speaking"
	Attention    Shown = "attention"    // a turn has just ended
	Notification Shown = "notification" // a question waits for an answer
	Failed       Shown = "error"
	Sleeping     Shown = "sleeping"
)

// How long the two transient states show.
const (
	attentionFor = 4 * time.Second
	failedFor    = 5 * time.Second
)

// State is what one session shows: the fold of its events. It is a value;
// Fold never modifies its argument.
type State struct {
	Robot   device.ID `json:"robot,omitempty"`
	Session string    `json:"session,omitempty"`
	Online  bool      `json:"online"`  // it can be reached: its channel is open, or it is connected by MQTT
	Talking bool      `json:"talking"` // its channel is open
	Emotion Emotion   `json:"emotion"`
	Tools   int       `json:"tools"` // running now

	// SubAgents is the number of other agents that work for this one.
	SubAgents int `json:"sub_agents"`

	// Mood is the present mood; nil before the first one.
	Mood *event.Mood `json:"mood,omitempty"`

	// Gone means that a robot's MQTT connection has ended, not just its talk.
	Gone bool `json:"-"`

	connected bool // by MQTT

	base    Shown     // what shows unless a transient state does
	passing Shown     // the transient state: Attention or Failed, or empty
	until   time.Time // when passing ends
	running []running // tools, in order of their start
	reports bool      // the agent reports its own state
	asked   []string  // ids of open questions
}

type running struct {
	id    string
	agent bool
}

// Key identifies a robot, which shows its latest session, or a session without a robot.
func (s State) Key() string { return keyOf(s.Robot, s.Session) }

func keyOf(robot device.ID, session string) string {
	if robot != "" {
		return string(robot)
	}
	return session
}

// At returns what shows at that time.
func (s State) At(now time.Time) Shown {
	switch {
	case len(s.asked) > 0:
		return Notification
	case s.passing != "" && now.Before(s.until) && (s.base == Idle || s.base == Sleeping || s.base == ""):
		return s.passing
	case s.base == "":
		return Idle
	}
	return s.base
}

// ExpiresAt returns when the state changes without an event; the zero time means never.
func (s State) ExpiresAt() time.Time {
	if s.passing == "" || len(s.asked) > 0 {
		return time.Time{}
	}
	return s.until
}

// Fold returns the state after one more event. It is pure: it reads no clock but the time of
// the event.
func Fold(s State, e event.Envelope) State {
	switch ev := e.Event.(type) {
	case event.Mood: // a mood outlives its session
		if s.Robot == "" && e.Robot != "" {
			s.Robot, s.Emotion, s.base = e.Robot, Neutral, Idle
		}
		s.Mood = &ev
		return s
	case event.RobotOnline:
		return State{Robot: e.Robot, Session: e.Session, Online: true, Talking: true, Emotion: Neutral, base: Idle, connected: s.connected,
			Mood: s.Mood}
	case event.RobotConnected:
		return s.reachable(e.Robot, true)
	case event.RobotDisconnected:
		return s.reachable(e.Robot, false)
	}
	if s.Session == "" {
		s.Robot, s.Session, s.Emotion = e.Robot, e.Session, Neutral
	}
	if _, closed := e.Event.(event.RobotOffline); closed {
		return s.offline() // it may be the robot's last session, even one without a hello
	}
	if e.Session != s.Session {
		return s // another session has replaced this one
	}
	switch ev := e.Event.(type) {
	case event.ListeningStarted, event.Misheard:
		return s.withBase(Listening)
	case event.Heard, event.ThinkingStarted:
		return s.withBase(Thinking)
	case event.SpeakingStarted, event.SoundStarted:
		return s.withBase(Speaking)
	case event.Said:
		if ev.By == event.ByViewer {
			return s // no end of a turn would follow
		}
		return s.withBase(Speaking)
	case event.StateTold:
		s.reports, s.SubAgents = true, ev.SubAgents
		return s.withBase(Shown(ev.State))
	case event.ToolStatus:
		return s.tool(ev)
	case event.Emotion:
		s.Emotion = Emotion{Name: ev.Name, Emoji: ev.Emoji}
	case event.Asked:
		s.asked = append(slices.Clone(s.asked), ev.ID)
	case event.Answered:
		s.asked = without(s.asked, func(id string) bool { return id == ev.ID })
	case event.SoundEnded:
		if ev.End == event.EndFailed {
			return s.withBase(Idle).withPassing(Failed, e.At.Add(failedFor))
		}
		return s.withBase(Idle) // a chime asks for no attention to an answer
	case event.TurnEnded:
		return s.turnEnded(ev, e.At)
	case event.Fault:
		return s.withPassing(Failed, e.At.Add(failedFor))
	}
	return s
}

// reachable returns the state after a robot has connected or disconnected by MQTT. Its
// talks have separate sessions.
func (s State) reachable(robot device.ID, on bool) State {
	if s.Robot == "" {
		if !on {
			return s // the board stores nothing for a robot known only by its disconnection
		}
		s.Robot, s.Emotion, s.base = robot, Neutral, Idle
	}
	s.connected, s.Online, s.Gone = on, on || s.Talking, !on && !s.Talking
	return s
}

// offline returns the state after the channel closed. A sleeping robot stays asleep.
func (s State) offline() State {
	s.Online, s.Talking = s.connected, false
	s.running, s.Tools, s.SubAgents, s.asked = nil, 0, 0, nil
	if s.base != Sleeping {
		s.base = Idle
	}
	return s
}

// withBase returns the state with a new base, ending a transient state at once.
func (s State) withBase(base Shown) State {
	s.base, s.passing, s.until = base, "", time.Time{}
	return s
}

func (s State) withPassing(passing Shown, until time.Time) State {
	s.passing, s.until = passing, until
	return s
}

func (s State) turnEnded(e event.TurnEnded, at time.Time) State {
	s.running, s.Tools, s.SubAgents, s.asked = nil, 0, 0, nil
	switch e.End {
	case event.EndCancelled:
		return s.withBase(Idle)
	case event.EndFailed:
		return s.withBase(Idle).withPassing(Failed, at.Add(failedFor))
	case event.EndSleep:
		return s.withBase(Sleeping).withPassing(Attention, at.Add(attentionFor))
	}
	return s.withBase(Idle).withPassing(Attention, at.Add(attentionFor))
}

func (s State) tool(e event.ToolStatus) State {
	s.running = without(s.running, func(r running) bool { return r.id == e.ID })
	if e.Status == event.ToolRunning {
		s.running = append(s.running, running{e.ID, e.SubAgent})
	}
	s.Tools = len(s.running)
	if s.reports {
		return s
	}
	s.SubAgents = len(without(s.running, func(r running) bool { return !r.agent }))
	switch {
	case s.Tools == 0:
		return s.withBase(Thinking)
	case s.Tools > 1 || s.SubAgents > 0:
		return s.withBase(Juggling)
	}
	return s.withBase(Working)
}

// without returns a new slice without the dropped elements, because States share slices.
func without[T any](list []T, drop func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), drop)
}
