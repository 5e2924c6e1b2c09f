package homeassistant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/command"
	"perch/gateway/homeassistant/connection"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/state"
	"perch/gateway/homeassistant/topic"
	"perch/limit"
	"perch/plain"
)

// Bounds of agents. Anybody with a key can begin sessions.
const (
	maxAgents  = 32
	maxChats   = 128 // chats of one turn that are remembered
	maxRemoved = 128 // removed agents whose removal is published again when Home Assistant starts
)

// agents are the sessions without a robot: coding agents, and chats of skins.
type agents struct {
	announcements
	o     *Options
	views map[string]*state.Agent // by the id of the agent
	// chats are sessions that have been asked one thing. A client that names no session begins one
	// for each question; these are not worth a device.
	chats    []string
	pace     *rate.Limiter // of new agents
	removed  []removedAgent
	lanes    *lanes
	refusals refusals
}

// removedAgent is an agent whose device was removed.
type removedAgent struct {
	id         string
	at         time.Time
	remembered bool // in the table of announcements, so that the next run removes it once more
}

// viewFor returns the view of an event's session, or nil if the session is not an agent's. The session
// of a notification is its sender's.
func (a *agents) viewFor(e event.Envelope) *state.Agent {
	if _, notification := e.Event.(event.Notification); notification || e.Session == "" {
		return nil
	}
	v := a.views[topic.AgentID(e.Session)]
	if v == nil && a.begins(e) && a.pace.AllowN(e.At, 1) {
		v = a.enter(e.Session, e.At)
	}
	return v
}

// begins reports whether an event makes its session an agent's. An agent is asked something, thinks,
// works or asks. A program that shows an agent only reports.
func (a *agents) begins(e event.Envelope) bool {
	switch e.Event.(type) {
	case event.Heard, event.ThinkingStarted, event.ToolStatus, event.StateTold, event.Asked, event.Answered, event.TurnEnded, event.Fault:
	default:
		return false
	}
	chat := slices.Contains(a.chats, e.Session)
	if _, asked := e.Event.(event.Heard); !asked {
		return !chat // these belong to the chat's only turn
	}
	if chat {
		a.chats = slices.DeleteFunc(a.chats, func(s string) bool { return s == e.Session })
		return true
	}
	a.chats = append(a.chats, e.Session)
	a.chats = a.chats[max(len(a.chats)-maxChats, 0):]
	return false
}

// answerable reports whether a question can be answered with yes or no, and over this broker: without
// a user anybody in the network could answer.
func (a *agents) answerable(id string) bool {
	return a.o.User != "" && slices.ContainsFunc(a.o.Questions.Questions(), func(q agent.Question) bool { return q.ID == id })
}

// enter makes a session a device. If there are too many, the first to end gives way.
func (a *agents) enter(session string, at time.Time) *state.Agent {
	if len(a.views) >= maxAgents {
		first := slices.MinFunc(slices.Collect(maps.Values(a.views)), func(x, y *state.Agent) int {
			return cmp.Or(x.Ends().Compare(y.Ends()), strings.Compare(x.ID, y.ID))
		})
		a.remove(first.ID, at)
	}
	v := &state.Agent{Session: session, ID: topic.AgentID(session), Shown: agent.Idle, Seen: at}
	a.views[v.ID] = v
	a.removed = slices.DeleteFunc(a.removed, func(r removedAgent) bool { return r.id == v.ID })
	a.publishState(v, at)
	key := topic.AgentPrefix + v.ID
	a.announce(key, discovery.Agent(a.topics, v.ID, a.o.Version, a.before(key)), nil)
	return v
}

// remove removes an agent's device.
func (a *agents) remove(id string, at time.Time) {
	delete(a.views, id)
	a.announce(topic.AgentPrefix+id, discovery.RemovedAgent(a.topics, id, a.o.Version), nil)
	a.status(a.topics.Agent(id, "state"), "")
	a.removed = append(a.removed, removedAgent{id: id, at: at, remembered: true})
	for len(a.removed) > maxRemoved {
		old := a.removed[0]
		a.removed = a.removed[1:]
		a.forget(&old)
		a.out.Forget(a.topics.Config(topic.AgentPrefix+old.id), a.topics.Agent(old.id, "state"))
	}
}

// forget deletes a removed agent from the table of announcements.
func (a *agents) forget(r *removedAgent) {
	if r.remembered {
		a.ids.DeleteSoon(topic.AgentPrefix + r.id)
	}
	r.remembered = false
}

// forgetRemoved forgets the agents whose removal the broker has had time to receive.
func (a *agents) forgetRemoved(broker connection.Status, now time.Time) {
	for i := range a.removed {
		r := &a.removed[i]
		if broker.Connected && now.Sub(broker.Since) >= reconcileInterval && now.Sub(r.at) >= reconcileInterval {
			a.forget(r)
		}
	}
}

// resume goes on with the sessions that are not idle, and removes the other agents that an earlier
// run has announced.
func (a *agents) resume(states []agent.State, now time.Time) {
	for _, s := range states {
		if s.Robot == "" && s.Session != "" && s.At(now) != agent.Idle && len(a.views) < maxAgents {
			v := a.enter(s.Session, now)
			v.State = s
			a.readQuestions(v, now)
		}
	}
	for _, key := range a.devices() {
		if id, is := strings.CutPrefix(key, topic.AgentPrefix); is && a.views[id] == nil {
			a.remove(id, now)
		}
	}
}

// readQuestions replaces an agent's questions by the list of waiting questions.
func (a *agents) readQuestions(v *state.Agent, now time.Time) {
	v.ClearQuestions(now)
	for _, q := range a.o.Questions.Questions() {
		if q.Robot == "" && q.Session == v.Session {
			v.Ask(q.ID, q.Text, a.o.User != "", now)
		}
	}
	a.publishChanges(v, now)
}

// publishChanges publishes a new agent_state and a new question at once, and other changes of the document
// each stateInterval.
func (a *agents) publishChanges(v *state.Agent, now time.Time) {
	shown := v.State.At(now)
	if shown != v.Shown || v.Changed && (now.Sub(v.Published) >= stateInterval || v.QuestionShownAt(now)) {
		v.Shown = shown
		a.publishState(v, now)
	}
}

func (a *agents) publishState(v *state.Agent, now time.Time) {
	v.Changed, v.Published = false, now
	a.state(a.topics.Agent(v.ID, "state"), v.Document())
}

// waiting returns how many agents wait for a person.
func (a *agents) waiting() (n int) {
	for _, v := range a.views {
		if v.Shown == agent.Notification {
			n++
		}
	}
	return n
}

// answers is the lane for answers to questions.
const answers = device.ID("answers")

// onMessage handles a message on the set topic of an agent's thing.
func (a *agents) onMessage(ctx context.Context, id, thing string, m connection.Incoming) {
	refuse := func(err error) {
		a.refusals.log("", time.Now(), "an answer over MQTT is refused", "session", plain.Clip(id, limit.Name), "err", err)
		m.Ack()
	}
	question, allow, err := a.parseAnswer(id, thing, m, time.Now())
	if err != nil {
		refuse(err)
		return
	}
	queued := a.lanes.Add(ctx, answers, device.Job{Do: func(context.Context) {
		if err := a.o.Questions.Reply(question, allow); err != nil {
			a.log.Warn("an answer over MQTT came too late", "session", id, "err", err)
		}
		m.Ack()
	}})
	if !queued {
		refuse(errors.New("too many answers came at once"))
	}
}

// parseAnswer returns the question that a message answers, and the answer.
func (a *agents) parseAnswer(id, thing string, m connection.Incoming, now time.Time) (question string, allow bool, err error) {
	v := a.views[id]
	switch {
	case m.Retained:
		return "", false, errors.New("it was published retained, and would be given again at every connection; publish it without")
	case v == nil:
		return "", false, errors.New("there is no such agent, or no longer")
	case a.o.User == "":
		return "", false,
			errors.New("the broker accepts clients without a user; give Perch a user there, as mqtt.user, and refuse clients without one")
	case thing != "answer":
		return "", false, fmt.Errorf("there is no %.40q to set", thing)
	}
	if question, allow, err = command.ParseAnswer(m.Payload); err == nil {
		question, err = v.Answerable(question, now)
	}
	return question, allow, err
}
