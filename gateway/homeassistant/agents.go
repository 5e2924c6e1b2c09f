package homeassistant

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"perch/agent"
	"perch/event"
	"perch/gateway/homeassistant/connection"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/topic"
	"perch/limit"
	"perch/plain"
)

// questions are the questions that wait for people.
type questions interface {
	Questions() []agent.Question
	// Reply wraps agent.ErrNoQuestion where there is nothing to answer any more.
	Reply(id string, allow bool) error
}

// Bounds of agents. Anybody with a key may begin sessions.
const (
	mostAgents  = 32
	agentLives  = time.Hour // after the last word of it
	mostOnce    = 128       // chats of one turn that are remembered
	mostAsked   = 8         // questions of one agent that wait
	mostRemoved = 128       // agents that are gone, whose removal is published once more when Home Assistant starts
	answerAfter = time.Second
)

// agents are the sessions that no robot has: coding agents, and chats of skins.
type agents struct {
	views map[string]*agentView // by session
	// once are chats that have been asked one thing. A client that names no
	// session begins one for each question; those are no devices.
	once    []string
	pace    *rate.Limiter // of new ones
	removed []removedAgent
}

// agentView is one as it is mirrored.
type agentView struct {
	session, id string
	rendering
	tool  event.ToolStatus
	asked []askedOf
	since time.Time // that the first of those is shown
}

// askedOf is a question that waits.
type askedOf struct {
	id, text   string
	answerable bool // with yes or no, by its id
}

// removedAgent is an agent whose device was removed.
type removedAgent struct {
	id         string
	at         time.Time
	remembered bool
}

// agentDocument is an agent's state as it is published. Every key is always
// there, null where nothing is known.
type agentDocument struct {
	AgentState agent.Shown `json:"agent_state"`
	Session    string      `json:"session_id"`
	ToolName   *string     `json:"tool_name"` // the last
	ToolStatus *string     `json:"tool_status"`
	Question   *string     `json:"question"` // that waits longest
	QuestionID *string     `json:"question_id"`
	Answerable bool        `json:"answerable"`
}

func (v *agentView) document() agentDocument {
	d := agentDocument{AgentState: v.shown, Session: plain.Clip(v.session, limit.Name)}
	if v.tool.Name != "" {
		status := v.tool.SkinStatus()
		d.ToolName, d.ToolStatus = known(plain.Clip(v.tool.Name, limit.Name)), &status
	}
	if len(v.asked) > 0 {
		q := v.asked[0]
		d.Question, d.QuestionID, d.Answerable = &q.text, &q.id, q.answerable
	}
	return d
}

// due is when the view changes by itself.
func (v *agentView) due() time.Time {
	if v.dirty {
		return earliest(v.ends(), v.published.Add(coalesce))
	}
	return v.ends()
}

// ends is when it is to be removed. One with a question stays longer.
func (v *agentView) ends() time.Time {
	if len(v.asked) > 0 {
		return v.seen.Add(24 * agentLives)
	}
	return v.seen.Add(agentLives)
}

// begins reports whether an event makes its session a device, which it is not yet. An
// agent is who is asked, thinks, works or asks; who shows one and reports is none.
func (a *agents) begins(e event.Envelope) bool {
	switch e.Event.(type) {
	case event.Heard, event.ThinkingStarted, event.ToolStatus, event.StateTold, event.Asked, event.Answered, event.TurnEnded, event.Fault:
	default:
		return false
	}
	before := slices.Contains(a.once, e.Session)
	if _, said := e.Event.(event.Heard); !said {
		return !before // of the chat's only turn
	}
	if before {
		a.once = slices.DeleteFunc(a.once, func(s string) bool { return s == e.Session })
		return true
	}
	a.once = append(a.once, e.Session)
	a.once = a.once[max(len(a.once)-mostOnce, 0):]
	return false
}

// called is the view of an id, or nil.
func (a *agents) called(id string) *agentView {
	for _, v := range a.views {
		if v.id == id {
			return v
		}
	}
	return nil
}

// takeAgent brings in an event of a session without a robot.
func (h *hub) takeAgent(e event.Envelope) {
	changes := h.states.Take(e)
	v := h.agents.views[e.Session]
	if _, is := e.Event.(event.Notification); is || e.Session == "" {
		v = nil // its session is the one that sent it
	} else if v == nil && h.agents.begins(e) && h.agents.pace.AllowN(e.At, 1) {
		v = h.enterAgent(e.Session, e.At)
	}
	for _, c := range changes {
		h.change(c)
	}
	if v == nil {
		return
	}
	v.seen = e.At
	switch ev := e.Event.(type) {
	case event.ToolStatus:
		h.putJSON(h.names.Agent(v.id, "tool"), newToolDocument(e.Session, ev), false, 0)
		v.tool, v.dirty = ev, true
	case event.Asked:
		v.ask(askedOf{ev.ID, oneQuestion(ev.Text), h.answerable(ev.ID)}, e.At)
	case event.Answered:
		v.answered(ev.ID, e.At)
	case event.TurnEnded:
		v.drop(e.At) // the turn no longer waits for an answer
	}
	h.settleAgent(v, e.At)
}

// answerable reports whether a question can be answered with yes or no, and here:
// not over a broker where Perch needs no user, for anybody could there.
func (h *hub) answerable(id string) bool {
	return h.o.User != "" && slices.ContainsFunc(h.o.Questions.Questions(), func(q agent.Question) bool { return q.ID == id })
}

func (v *agentView) ask(q askedOf, at time.Time) {
	if len(v.asked) == 0 {
		v.since = at
	}
	if len(v.asked) < mostAsked {
		v.asked, v.dirty = append(v.asked, q), true
	}
}

func (v *agentView) answered(id string, at time.Time) {
	if len(v.asked) > 0 && v.asked[0].id == id {
		v.since = at // another is shown from now on
	}
	v.asked = slices.DeleteFunc(v.asked, func(q askedOf) bool { return q.id == id })
	v.dirty = true
}

// drop leaves out the questions that cannot be answered.
func (v *agentView) drop(at time.Time) {
	before := len(v.asked)
	v.asked = slices.DeleteFunc(v.asked, func(q askedOf) bool { return !q.answerable })
	if len(v.asked) != before {
		v.since, v.dirty = at, true
	}
}

// oneQuestion is a question as a state of Home Assistant's can hold it.
func oneQuestion(text string) string {
	text = plain.Line(text)
	if utf8.RuneCountInString(text) > discovery.MaxText {
		text = string([]rune(text)[:discovery.MaxText-1]) + "…"
	}
	return text
}

// enterAgent makes a session a device. Where there are enough, the one that was
// silent longest gives way, one that asks nothing first.
func (h *hub) enterAgent(session string, at time.Time) *agentView {
	if len(h.agents.views) >= mostAgents {
		oldest := slices.MinFunc(slices.Collect(maps.Values(h.agents.views)), func(a, b *agentView) int {
			return cmp.Or(a.ends().Compare(b.ends()), strings.Compare(a.id, b.id))
		})
		h.removeAgent(oldest.session, oldest.id, at)
	}
	v := &agentView{session: session, id: topic.AgentID(session), rendering: rendering{shown: agent.Idle, seen: at}}
	h.agents.views[session] = v
	h.agents.removed = slices.DeleteFunc(h.agents.removed, func(g removedAgent) bool { return g.id == v.id })
	h.showAgent(v, at)
	key := topic.AgentPrefix + v.id
	a := discovery.Agent(h.names, v.id, h.o.Version, h.announcedBefore(key))
	h.publishDiscovery(a, nil)
	h.remember(key, a.IDs)
	return v
}

// removeAgent removes an agent's device. Home Assistant removes a device only after
// it was announced: whenever the removal is published again, the announcement
// precedes it.
func (h *hub) removeAgent(session, id string, at time.Time) {
	delete(h.agents.views, session)
	h.publishDiscovery(discovery.RemovedAgent(h.names, id, h.o.Version), nil)
	h.out.Put(connection.Message{Topic: h.names.Agent(id, "state"), Retained: true, QoS: 1})
	h.agents.removed = append(h.agents.removed, removedAgent{id: id, at: at, remembered: true})
	for len(h.agents.removed) > mostRemoved {
		old := h.agents.removed[0]
		h.agents.removed = h.agents.removed[1:]
		h.forgetRemoved(&old)
		h.out.Forget(h.names.Config(topic.AgentPrefix+old.id), h.names.Agent(old.id, "state"))
	}
}

// forgetRemoved has the next run not take an agent back once more.
func (h *hub) forgetRemoved(g *removedAgent) {
	if g.remembered {
		h.o.Announced.DeleteSoon(topic.AgentPrefix + g.id)
	}
	g.remembered = false
}

// forgetOldRemoved forgets what the broker has had time to take.
func (h *hub) forgetOldRemoved(now time.Time) {
	s := h.connect.Status()
	for i := range h.agents.removed {
		g := &h.agents.removed[i]
		if s.Connected && now.Sub(s.Since) >= lookEvery && now.Sub(g.at) >= lookEvery {
			h.forgetRemoved(g)
		}
	}
}

// beginAgents goes on with the sessions that do something, and takes back those
// that an earlier run has announced.
func (h *hub) beginAgents(now time.Time) {
	for _, s := range h.states.States() {
		if s.Robot == "" && s.Session != "" && s.At(now) != agent.Idle && len(h.agents.views) < mostAgents {
			v := h.enterAgent(s.Session, now)
			v.state = s
			h.askedBefore(v, now)
			h.settleAgent(v, now)
		}
	}
	for _, key := range h.announcedKeys() {
		if id, is := strings.CutPrefix(key, topic.AgentPrefix); is && h.agents.called(id) == nil {
			h.removeAgent("", id, now)
		}
	}
}

// askedBefore reads the questions that wait.
func (h *hub) askedBefore(v *agentView, now time.Time) {
	v.asked, v.since, v.dirty = nil, now, true
	for _, q := range h.o.Questions.Questions() {
		if q.Robot == "" && q.Session == v.session {
			v.ask(askedOf{q.ID, oneQuestion(q.Text), h.o.User != ""}, now)
		}
	}
}

// settleAgent publishes a new agent_state and a question at once, and anything
// else in its time.
func (h *hub) settleAgent(v *agentView, at time.Time) {
	shown := v.state.At(at)
	if shown == v.shown && (!v.dirty || at.Sub(v.published) < coalesce && v.since != at) {
		return
	}
	waits := shown == agent.Notification || v.shown == agent.Notification
	v.shown = shown
	h.showAgent(v, at)
	if waits {
		h.bridge()
	}
}

func (h *hub) showAgent(v *agentView, at time.Time) {
	v.dirty, v.published = false, at
	h.putJSON(h.names.Agent(v.id, "state"), v.document(), true, 1)
}

// tickAgents does what is due.
func (h *hub) tickAgents(now time.Time) {
	gone := false
	for session, v := range h.agents.views {
		if !now.Before(v.ends()) {
			h.removeAgent(session, v.id, now)
			gone = true
			continue
		}
		h.settleAgent(v, now)
	}
	if gone {
		h.bridge()
	}
}

// toolDocument is a tool's status, of the shape that skins know (contract:
// docs/skins.md).
type toolDocument struct {
	Type    string `json:"type"`
	Session string `json:"session_id,omitempty"`
	ID      string `json:"tool_id"`
	Name    string `json:"tool_name"`
	Status  string `json:"status"` // running, completed or error
	Content string `json:"content,omitempty"`
}

func newToolDocument(session string, t event.ToolStatus) toolDocument {
	return toolDocument{"tool_status", session, plain.Clip(t.ID, limit.Name), plain.Clip(t.Name, limit.Name),
		t.SkinStatus(), plain.Clip(t.Detail, limit.Line)}
}
