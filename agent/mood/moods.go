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

// Bounds of Moods.
const (
	every     = 100 * time.Millisecond // the shortest interval between two published moods
	mostMoods = 500                    // stored agents; see store
	mostTools = 32                     // concurrent tool calls tracked for one agent
	mostSince = time.Hour              // longest step: by then every feeling has faded

	visible        = .02 // smallest visible change of a feeling or a morph
	visibleDegrees = 1
)

// Options of Moods.
type Options struct {
	Bus   *event.Bus
	Words Words
	// Language returns a robot's preferred language: "de". May be nil.
	Language func(device.ID) string
	// Off reports whether moods are off; existing feelings then fade. Nil means never.
	Off func() bool
}

// Moods tracks the mood of every robot, of every session without one, and of the default
// character otherwise, and publishes changes. It computes only while something changes.
type Moods struct {
	Options
	agents map[string]*agent // by robot, or else by session; empty is the default character
	moving map[string]*agent
}

// New returns moods without any feelings.
func New(o Options) *Moods {
	return &Moods{Options: o, agents: map[string]*agent{}, moving: map[string]*agent{}}
}

// agent is the mood of one robot or session.
type agent struct {
	robot   device.ID
	session string // its latest

	state     State
	at        time.Time // of state
	touched   time.Time // time of the latest stimulus
	published State
	speaking  bool
	tools     []string // ids of running calls
	felt      int      // how many of them were skills, whose end was already felt
}

// Run reads the bus until ctx ends or the bus is closed.
func (m *Moods) Run(ctx context.Context) {
	events := make(chan event.Envelope)
	go m.Bus.ReadFrom(1).Pump(ctx, events) // which closes them at its end
	var next <-chan time.Time              // nil while nothing changes
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
			next = time.After(every)
		}
	}
}

// handleEvent applies an event to the agent that it is about.
func (m *Moods) handleEvent(e event.Envelope) {
	key := cmp.Or(string(e.Robot), e.Session) // empty is the default character, without robot and session
	if _, gone := e.Event.(event.RobotForgotten); gone {
		delete(m.agents, key)
		delete(m.moving, key)
		return
	}
	a := m.agents[key]
	if a == nil {
		a = &agent{robot: e.Robot, session: e.Session, at: e.At}
	}
	s, moves := m.stimulus(a, e.Event)
	if !moves || m.Off != nil && m.Off() {
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

// store stores an agent. Beyond the bound it drops the agent that was not touched for the
// longest time: of a session, before any of a robot, because programs invent sessions while robots
// are adopted. If its mood was published, so is its end.
func (m *Moods) store(key string, a *agent) {
	if m.agents[key] == nil && len(m.agents) >= mostMoods {
		oldest := limit.First(m.agents, func(a, b *agent) int { return cmp.Or(a.worth()-b.worth(), a.touched.Compare(b.touched)) })
		evicted := m.agents[oldest]
		delete(m.agents, oldest)
		delete(m.moving, oldest)
		if rest := (State{}).Mood(); evicted.published.Mood() != rest {
			m.Bus.Publish(evicted.robot, evicted.session, rest)
		}
	}
	m.agents[key] = a
}

// worth is 1 for a robot and the default character, and 0 for a session without a robot.
func (a *agent) worth() int {
	if a.robot == "" && a.session != "" {
		return 0
	}
	return 1
}

// stimulus returns the stimulus of an event, and updates the agent's memory of it.
func (m *Moods) stimulus(a *agent, e event.Event) (Stimulus, bool) {
	switch e := e.(type) {
	case event.Said:
		a.speaking = true
		return Spoken(m.Words.Analyse(e.Text, m.language(a.robot)), TalkFor(CountWords(e.Text))), true
	case event.ToolStatus:
		return a.tool(e)
	case event.SkillStarted, event.SkillDone, event.SkillFailed:
		return a.skill(e)
	case event.TurnEnded:
		interrupted := a.speaking && e.End == event.EndCancelled
		a.speaking, a.tools, a.felt = false, nil, 0
		if interrupted {
			return Interrupted(), true
		}
	}
	return Of(e)
}

func (m *Moods) language(robot device.ID) string {
	if m.Language == nil || robot == "" {
		return ""
	}
	return m.Language(robot)
}

// tool handles a tool call, which is reported more than once.
func (a *agent) tool(e event.ToolStatus) (Stimulus, bool) {
	at := slices.Index(a.tools, e.ID)
	if e.Status == event.ToolRunning {
		if at >= 0 || len(a.tools) >= mostTools {
			return Stimulus{}, false
		}
		a.tools = append(a.tools, e.ID)
		return Started(), true
	}
	if at >= 0 {
		a.tools = slices.Delete(a.tools, at, at+1)
	}
	if at >= 0 && a.felt > 0 {
		a.felt--
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

// skill handles a skill's events. A model uses a skill through a tool call: that is felt
// once, at the call's start and at the skill's end, which has a sentiment.
func (a *agent) skill(e event.Event) (Stimulus, bool) {
	s, moves := Of(e)
	_, begins := e.(event.SkillStarted)
	switch {
	case begins && len(a.tools) > 0:
		return Stimulus{}, false
	case !begins && a.felt < len(a.tools):
		a.felt++
	}
	return s, moves
}

// tick advances the moving agents, and publishes what has changed.
func (m *Moods) tick(now time.Time) {
	for key, a := range m.moving {
		m.step(a, now, Stimulus{})
		still := a.state.Still()
		if still {
			delete(m.moving, key)
		}
		if mood := a.state.Mood(); differs(a.state, a.published) || still && mood != a.published.Mood() {
			a.published = a.state
			m.Bus.Publish(a.robot, a.session, mood)
		}
	}
}

// step advances an agent to a time, at which the stimulus happened.
func (m *Moods) step(a *agent, now time.Time, happened Stimulus) {
	since := min(max(0, now.Sub(a.at)), mostSince)
	if now.After(a.at) {
		a.at = now
	}
	a.state = Step(a.state, happened, since.Seconds())
	if g := a.state.Gesture(); g.Name != "" {
		m.Bus.Publish(a.robot, a.session, event.Gesture{Name: g.Name, Duration: int64(g.Seconds * 1000), By: event.ByMood})
	}
}

// differs reports whether the difference between two states is visible.
func differs(a, b State) bool {
	x, y, p, q := a.shown(), b.shown(), a.Head(), b.Head()
	return a.Dominant() != b.Dominant() || a.Face() != b.Face() ||
		apart(a.feelings[:], b.feelings[:], visible) || apart(x[:], y[:], visible) ||
		apart([]float64{p.Tilt, p.Lean, p.Yaw}, []float64{q.Tilt, q.Lean, q.Yaw}, visibleDegrees)
}

func apart(x, y []float64, by float64) bool {
	for i := range x {
		if math.Abs(x[i]-y[i]) >= by {
			return true
		}
	}
	return false
}
