package agent

import (
	"slices"
	"time"

	"perch/device"
	"perch/event"
)

// Shown is what the agent visibly does. Words may be added, and none removed.
type Shown string

// The vocabulary.
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

// How long the two passing states show.
const (
	attentionFor = 4 * time.Second
	failedFor    = 5 * time.Second
)

// State is what one session shows: the fold of its events. It is a value;
// Fold never changes one it was given.
type State struct {
	Robot   device.ID `json:"robot,omitempty"`
	Session string    `json:"session,omitempty"`
	Online  bool      `json:"online"`  // it can be reached: its channel is open, or it is connected by MQTT
	Talking bool      `json:"talking"` // its channel is open
	Emotion Emotion   `json:"emotion"`
	Tools   int       `json:"tools"` // running now

	// SubAgents are other agents at work for this one.
	SubAgents int `json:"sub_agents"`

	// Mood is what is felt; nil before the first feeling.
	Mood *event.Mood `json:"mood,omitempty"`

	// Gone is a robot whose MQTT connection has ended: it is not only quiet.
	Gone bool `json:"-"`

	connected bool // by MQTT

	base    Shown     // what shows when nothing passing is in front
	passing Shown     // Attention or Failed, or empty
	until   time.Time // when passing ends
	running []running // tools, in the order they began
	reports bool      // the agent reports itself what it does
	asked   []string  // ids of questions that wait
}

type running struct {
	id    string
	agent bool
}

// Key names a robot, which shows its latest session, or a session without a robot.
func (s State) Key() string { return keyOf(s.Robot, s.Session) }

func keyOf(robot device.ID, session string) string {
	if robot != "" {
		return string(robot)
	}
	return session
}

// At is what shows at that time.
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

// Due is when the state changes by itself; the zero time is never.
func (s State) Due() time.Time {
	if s.passing == "" || len(s.asked) > 0 {
		return time.Time{}
	}
	return s.until
}

// Fold is the state after one more event. It is pure: all it knows of time is
// when the event happened.
func Fold(s State, e event.Envelope) State {
	switch ev := e.Event.(type) {
	case event.Mood: // of whatever session: a feeling outlives it
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
		// Published of a robot's last session only, also of one without a hello.
		return s.offline()
	}
	if e.Session != s.Session {
		return s // of a session that another has replaced
	}
	switch ev := e.Event.(type) {
	case event.ListeningStarted, event.Misheard:
		return s.become(Listening)
	case event.Heard, event.ThinkingStarted:
		return s.become(Thinking)
	case event.SpeakingStarted, event.SoundStarted:
		return s.become(Speaking)
	case event.Said:
		if ev.By == event.ByViewer {
			return s // no turn's end would follow
		}
		return s.become(Speaking)
	case event.StateTold:
		s.reports, s.SubAgents = true, ev.SubAgents
		return s.become(Shown(ev.State))
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
			return s.become(Idle).pass(Failed, e.At.Add(failedFor))
		}
		return s.become(Idle) // a chime asks for no attention to an answer
	case event.TurnEnded:
		return s.ended(ev, e.At)
	case event.Fault:
		return s.pass(Failed, e.At.Add(failedFor))
	}
	return s
}

// reachable is a robot that has connected by MQTT, or is gone. Its talks are sessions
// of their own.
func (s State) reachable(robot device.ID, on bool) State {
	if s.Robot == "" {
		if !on {
			return s // the board keeps no state of a robot that nothing is known of but its end
		}
		s.Robot, s.Emotion, s.base = robot, Neutral, Idle
	}
	s.connected, s.Online, s.Gone = on, on || s.Talking, !on && !s.Talking
	return s
}

// offline is a closed channel. A robot that was put to sleep stays asleep.
func (s State) offline() State {
	s.Online, s.Talking = s.connected, false
	s.running, s.Tools, s.SubAgents, s.asked = nil, 0, 0, nil
	if s.base != Sleeping {
		s.base = Idle
	}
	return s
}

// become is a new state: what was passing gives way at once.
func (s State) become(base Shown) State {
	s.base, s.passing, s.until = base, "", time.Time{}
	return s
}

func (s State) pass(passing Shown, until time.Time) State {
	s.passing, s.until = passing, until
	return s
}

func (s State) ended(e event.TurnEnded, at time.Time) State {
	s.running, s.Tools, s.SubAgents, s.asked = nil, 0, 0, nil
	switch e.End {
	case event.EndCancelled:
		return s.become(Idle)
	case event.EndFailed:
		return s.become(Idle).pass(Failed, at.Add(failedFor))
	case event.EndSleep:
		return s.become(Sleeping).pass(Attention, at.Add(attentionFor))
	}
	return s.become(Idle).pass(Attention, at.Add(attentionFor))
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
		return s.become(Thinking)
	case s.Tools > 1 || s.SubAgents > 0:
		return s.become(Juggling)
	}
	return s.become(Working)
}

// without returns a new slice, because States share theirs.
func without[T any](list []T, drop func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), drop)
}
