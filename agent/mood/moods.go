package mood

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"perch/device"
	"perch/event"
	"perch/limit"
)

const (
	publishInterval = 100 * time.Millisecond // the shortest interval between two published moods of an agent
	maxAgents       = 500                    // agents with a mood
	maxToolCalls    = 32                     // concurrent tool calls of one agent
	maxStep         = time.Hour              // a longer time has the same effect, since every feeling has faded

	minVisible        = .02 // smallest visible change of a feeling or a morph
	minVisibleDegrees = 1   // smallest visible change of an angle of the head, in degrees
)

// Options configure Moods.
type Options struct {
	Bus   *event.Bus
	Words Words
	// Language returns a robot's preferred language, such as "de". It may be nil.
	Language func(device.ID) string
	// Off reports whether moods are turned off; existing feelings then fade. Nil means never.
	Off func() bool
}

// Moods computes the moods of all robots, of sessions without a robot, and of the default
// character for events without either, and publishes changes. While nothing changes, it
// only waits for events. A Moods is not safe for concurrent use: Run does all the work.
type Moods struct {
	Options
	agents map[string]*agent // key: ID of the robot, or else the session; "" for the default character
	moving map[string]*agent // the agents with a mood that changes over time
}

// New returns Moods without feelings.
func New(o Options) *Moods {
	return &Moods{Options: o, agents: map[string]*agent{}, moving: map[string]*agent{}}
}

// agent is the mood of one robot, of one session, or of the default character.
type agent struct {
	robot   device.ID
	session string // the latest session

	state       State
	at          time.Time // time of state
	touched     time.Time // time of the latest stimulus
	published   State     // the state that was last published
	speaking    bool      // whether the agent has spoken in the present turn
	tools       []string  // IDs of the running tool calls
	skillsEnded int       // number of running tool calls whose skill has ended; the end of such a call has no effect
}

// Run reads the bus until ctx ends or the bus is closed.
func (m *Moods) Run(ctx context.Context) {
	events, stop := m.Bus.ReadFrom(1).Events(ctx)
	defer stop()
	var next <-chan time.Time // nil while nothing changes
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			m.handleEvent(e)
		case now := <-next:
			next = nil
			m.tick(now)
		}
		if next == nil && len(m.moving) > 0 {
			next = time.After(publishInterval)
		}
	}
}

// handleEvent applies an event to the mood of its agent.
func (m *Moods) handleEvent(e event.Envelope) {
	key := cmp.Or(string(e.Robot), e.Session)
	if _, forgotten := e.Event.(event.RobotForgotten); forgotten {
		delete(m.agents, key)
		delete(m.moving, key)
		return
	}
	a := m.agents[key]
	if a == nil {
		a = &agent{robot: e.Robot, session: e.Session, at: e.At}
	}
	s, ok := m.stimulus(a, e.Event)
	if !ok || m.Off != nil && m.Off() {
		return
	}
	if e.Session != "" {
		a.session = e.Session
	}
	a.touched = e.At
	m.store(key, a)
	m.step(a, e.At, s)
	m.moving[key] = a
}

// store stores an agent. If there are too many, it drops the agent with the oldest
// stimulus: first agents of sessions, since any program can begin sessions, and then agents
// of robots. If the last published mood of the dropped agent is not neutral, store publishes
// the neutral mood for this agent.
func (m *Moods) store(key string, a *agent) {
	if m.agents[key] == nil && len(m.agents) >= maxAgents {
		oldest := limit.First(m.agents, func(a, b *agent) int { return cmp.Or(a.rank()-b.rank(), a.touched.Compare(b.touched)) })
		evicted := m.agents[oldest]
		delete(m.agents, oldest)
		delete(m.moving, oldest)
		if neutral := (State{}).Mood(); evicted.published.Mood() != neutral {
			m.Bus.Publish(evicted.robot, evicted.session, neutral)
		}
	}
	m.agents[key] = a
}

// rank returns 0 for a session without a robot, and otherwise 1. Agents with a lower rank are
// dropped first.
func (a *agent) rank() int {
	if a.robot == "" && a.session != "" {
		return 0
	}
	return 1
}

// stimulus returns the stimulus of an event, and updates the fields of a that describe the
// turn. ok is false if the event has no effect.
func (m *Moods) stimulus(a *agent, e event.Event) (s Stimulus, ok bool) {
	switch e := e.(type) {
	case event.Said:
		a.speaking = true
		return Spoken(m.Words.Analyse(e.Text, m.language(a.robot)), TalkFor(CountWords(e.Text))), true
	case event.ToolStatus:
		return a.toolStimulus(e)
	case event.SkillStarted, event.SkillDone, event.SkillFailed:
		return a.skillStimulus(e)
	case event.TurnEnded:
		interrupted := a.speaking && e.End == event.EndCancelled
		a.speaking, a.tools, a.skillsEnded = false, nil, 0
		if interrupted {
			return Interrupted(), true
		}
	}
	return Of(e)
}

// language returns a robot's preferred language, or "" if unknown.
func (m *Moods) language(robot device.ID) string {
	if m.Language == nil || robot == "" {
		return ""
	}
	return m.Language(robot)
}

// toolStimulus returns the stimulus of an event about a tool call. The repeated start of a
// running call has no effect.
func (a *agent) toolStimulus(e event.ToolStatus) (s Stimulus, ok bool) {
	i := slices.Index(a.tools, e.ID)
	if e.Status == event.ToolRunning {
		if i >= 0 || len(a.tools) >= maxToolCalls {
			return Stimulus{}, false
		}
		a.tools = append(a.tools, e.ID)
		return Started(), true
	}
	if i >= 0 {
		a.tools = slices.Delete(a.tools, i, i+1)
	}
	if i >= 0 && a.skillsEnded > 0 {
		a.skillsEnded--
		return Stimulus{}, false
	}
	switch e.Status {
	case event.ToolDone:
		return Done(nil), true
	case event.ToolFailed:
		return Failed(), true
	}
	return Stimulus{}, false
}

// skillStimulus returns the stimulus of an event about a skill. A model performs a skill
// through a tool call, which has events too. Of these four events, only two have an effect:
// the start of the call, and the end of the skill, since this event has a sentiment.
func (a *agent) skillStimulus(e event.Event) (s Stimulus, ok bool) {
	s, ok = Of(e)
	_, starts := e.(event.SkillStarted)
	switch {
	case starts && len(a.tools) > 0:
		return Stimulus{}, false
	case !starts && a.skillsEnded < len(a.tools):
		a.skillsEnded++
	}
	return s, ok
}

// tick advances the agents that change over time, and publishes visible changes.
func (m *Moods) tick(now time.Time) {
	for key, a := range m.moving {
		m.step(a, now, Stimulus{})
		still := a.state.Still()
		if still {
			delete(m.moving, key)
		}
		if mood := a.state.Mood(); visiblyDiffers(a.state, a.published) || still && mood != a.published.Mood() {
			a.published = a.state
			m.Bus.Publish(a.robot, a.session, mood)
		}
	}
}

// step advances an agent to the time now and then applies a stimulus. If a gesture starts,
// step publishes it.
func (m *Moods) step(a *agent, now time.Time, stimulus Stimulus) {
	elapsed := min(max(0, now.Sub(a.at)), maxStep)
	if now.After(a.at) {
		a.at = now
	}
	a.state = Step(a.state, stimulus, elapsed.Seconds())
	if g := a.state.Gesture(); g.Name != "" {
		m.Bus.Publish(a.robot, a.session, event.Gesture{Name: g.Name, Duration: int64(g.Seconds * 1000), By: event.ByMood})
	}
}

// visiblyDiffers reports whether the difference between two states is visible.
func visiblyDiffers(a, b State) bool {
	x, y, p, q := a.shownMorphs(), b.shownMorphs(), a.Head(), b.Head()
	return a.Dominant() != b.Dominant() || a.Face() != b.Face() ||
		differ(a.feelings[:], b.feelings[:], minVisible) || differ(x[:], y[:], minVisible) ||
		differ([]float64{p.Tilt, p.Lean, p.Yaw}, []float64{q.Tilt, q.Lean, q.Yaw}, minVisibleDegrees)
}

// differ reports whether two values with the same index differ by at least minimum.
func differ(x, y []float64, minimum float64) bool {
	for i := range x {
		if math.Abs(x[i]-y[i]) >= minimum {
			return true
		}
	}
	return false
}
