package agent

import (
	"slices"
	"time"

	"perch/device"
	"perch/event"
)

// Shown is what an agent is doing, as robots and skins show it. Other programs know the
// values, so values may be added, but none may be removed.
type Shown string

// The values of Shown.
const (
	Idle         Shown = "idle"
	Listening    Shown = "listening"
	Thinking     Shown = "thinking"
	Working      Shown = "working"  // one tool runs
	Juggling     Shown = "juggling" // several tools run, or another agent runs
	Speaking     Shown = "speaking"
	Attention    Shown = "attention"    // a turn has just ended
	Notification Shown = "notification" // a question waits for an answer
	Failed       Shown = "error"
	Sleeping     Shown = "sleeping"
)

// Durations of the transient states.
const (
	attentionFor = 4 * time.Second
	failedFor    = 5 * time.Second
)

// State is the visible state of a session. Fold computes it from the session's events. No
// method modifies a State; those that change it return a copy.
type State struct {
	Robot   device.ID `json:"robot,omitempty"`
	Session string    `json:"session,omitempty"`
	Online  bool      `json:"online"`  // whether the robot's audio channel is open, or the robot is connected by MQTT
	Talking bool      `json:"talking"` // whether the robot's audio channel is open for a talk; see event.RobotOnline
	Emotion Emotion   `json:"emotion"`
	Tools   int       `json:"tools"` // number of running tools

	// SubAgents is the number of other agents that work for this agent.
	SubAgents int `json:"sub_agents"`

	// Mood is the current mood; nil before the first one.
	Mood *event.Mood `json:"mood,omitempty"`

	// Music is the name of the music that the robot plays, or that has paused for speech; "" means none.
	Music string `json:"music,omitempty"`

	// Gone tells whether the robot's MQTT connection has ended while Talking was false.
	Gone bool `json:"-"`

	connected bool // whether the robot is connected by MQTT

	base      Shown         // what is shown without a transient state or an open question; "" means Idle
	passing   Shown         // transient state, Attention or Failed, shown in place of a base other than Listening and Speaking; "" means none
	until     time.Time     // when passing ends
	running   []runningTool // in order of their start
	reports   bool          // whether the agent itself reports what it does, with event.StateTold
	questions []string      // IDs of open questions
}

// runningTool is a tool that runs.
type runningTool struct {
	id    string
	agent bool // whether the tool is another agent
}

// Key returns the robot ID, or the session ID if there is no robot. A robot has only one
// state: the state of its latest session.
func (s State) Key() string { return keyOf(s.Robot, s.Session) }

// keyOf returns State.Key for a robot and session.
func keyOf(robot device.ID, session string) string {
	if robot != "" {
		return string(robot)
	}
	return session
}

// At returns what is shown at this time.
func (s State) At(now time.Time) Shown {
	switch {
	case len(s.questions) > 0:
		return Notification
	case s.passing != "" && now.Before(s.until) && s.base != Listening && s.base != Speaking:
		return s.passing
	case s.base == "":
		return Idle
	}
	return s.base
}

// ExpiresAt returns when the transient state ends, so that At may change without an event;
// the zero time means never.
func (s State) ExpiresAt() time.Time {
	if s.passing == "" || len(s.questions) > 0 {
		return time.Time{}
	}
	return s.until
}

// Fold returns the state after an event. It does not modify s, and uses no clock but the
// time of the event.
func Fold(s State, e event.Envelope) State {
	switch ev := e.Event.(type) {
	case event.Mood: // a mood outlives its session
		if s.Robot == "" && e.Robot != "" {
			s.Robot, s.Emotion, s.base = e.Robot, Neutral, Idle
		}
		s.Mood = &ev
		return s
	case event.RobotOnline:
		return State{Robot: e.Robot, Session: e.Session, Online: true, Talking: !ev.Standing, Emotion: Neutral, base: Idle, connected: s.connected,
			Mood: s.Mood}
	case event.RobotConnected:
		return s.withConnected(e.Robot, true)
	case event.RobotDisconnected:
		return s.withConnected(e.Robot, false)
	}
	if s.Session == "" {
		s.Robot, s.Session, s.Emotion = e.Robot, e.Session, Neutral
	}
	if _, ok := e.Event.(event.RobotOffline); ok {
		return s.offline() // the session does not matter, because a robot has only one channel
	}
	if e.Session != s.Session {
		return s // the event is of an earlier session
	}
	switch ev := e.Event.(type) {
	case event.ListeningStarted:
		s.Talking = s.Talking || s.Robot != ""
		return s.withBase(Listening)
	case event.Misheard:
		return s.withBase(Listening)
	case event.Heard, event.ThinkingStarted:
		return s.withBase(Thinking)
	case event.SpeakingStarted, event.SoundStarted:
		return s.withBase(Speaking)
	case event.Said:
		if ev.By == event.ByViewer {
			return s // a viewer's speech is not part of a turn, and no event would end Speaking
		}
		return s.withBase(Speaking)
	case event.StateTold:
		s.reports, s.SubAgents = true, ev.SubAgents
		return s.withBase(Shown(ev.State))
	case event.ToolStatus:
		return s.withTool(ev, e.At)
	case event.Emotion:
		s.Emotion = Emotion{Name: ev.Name, Emoji: ev.Emoji}
	case event.Asked:
		s.questions = append(slices.Clone(s.questions), ev.ID)
	case event.Answered:
		s.questions = without(s.questions, func(id string) bool { return id == ev.ID })
	case event.SoundEnded:
		if ev.End == event.EndFailed {
			return s.withBase(Idle).withPassing(Failed, e.At.Add(failedFor))
		}
		return s.withBase(Idle) // without Attention, because a sound is not an answer
	case event.Music:
		return s.withMusic(ev, e.At)
	case event.TurnEnded:
		return s.withTurnEnded(ev, e.At)
	case event.Fault:
		return s.withPassing(Failed, e.At.Add(failedFor))
	}
	return s
}

// withConnected returns the state after a robot has connected (or disconnected) by MQTT.
func (s State) withConnected(robot device.ID, connected bool) State {
	if s.Robot == "" {
		if !connected {
			return s // a robot without a state is offline
		}
		s.Robot, s.Emotion, s.base = robot, Neutral, Idle
	}
	s.connected, s.Online, s.Gone = connected, connected || s.Talking, !connected && !s.Talking
	return s
}

// offline returns the state after the robot's audio channel was closed. A sleeping robot
// continues to show Sleeping.
func (s State) offline() State {
	s.Online, s.Talking = s.connected, false
	s.running, s.Tools, s.SubAgents, s.questions, s.Music = nil, 0, 0, nil, ""
	if s.base != Sleeping {
		s.base = Idle
	}
	return s
}

// withBase returns the state with a new base and without a transient state.
func (s State) withBase(base Shown) State {
	s.base, s.passing, s.until = base, "", time.Time{}
	return s
}

// withPassing returns the state with a transient state.
func (s State) withPassing(passing Shown, until time.Time) State {
	s.passing, s.until = passing, until
	return s
}

// withTurnEnded returns the state after the end of a turn.
func (s State) withTurnEnded(e event.TurnEnded, at time.Time) State {
	s.running, s.Tools, s.SubAgents, s.questions = nil, 0, 0, nil
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

// withMusic returns the state after music has begun, paused or stopped. A robot that plays music shows Idle: music
// is not speech, and may last for hours.
func (s State) withMusic(e event.Music, at time.Time) State {
	switch s.Music = e.Name; e.State {
	case event.MusicPlaying:
		return s.withBase(Idle)
	case event.MusicStopped:
		s.Music = ""
	}
	if e.Reason != "" {
		return s.withPassing(Failed, at.Add(failedFor))
	}
	return s
}

// withTool returns the state after a tool has started, ended or failed.
func (s State) withTool(e event.ToolStatus, at time.Time) State {
	s.running = without(s.running, func(t runningTool) bool { return t.id == e.ID })
	if e.Status == event.ToolRunning {
		s.running = append(s.running, runningTool{e.ID, e.SubAgent})
	}
	s.Tools = len(s.running)
	if s.reports {
		return s
	}
	s.SubAgents = len(without(s.running, func(t runningTool) bool { return !t.agent }))
	switch {
	case s.Tools == 0:
		s = s.withBase(Thinking)
	case s.Tools > 1 || s.SubAgents > 0:
		s = s.withBase(Juggling)
	default:
		s = s.withBase(Working)
	}
	if e.Status == event.ToolFailed {
		return s.withPassing(Failed, at.Add(failedFor))
	}
	return s
}

// without returns a copy of list without the elements where drop is true.
func without[T any](list []T, drop func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), drop)
}
