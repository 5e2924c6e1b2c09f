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

// Limits on agents, since every program that has an access key to Perch can start sessions.
const (
	maxAgents  = 32
	maxChats   = 128 // maximum length of agents.chats
	maxRemoved = 128 // maximum length of agents.removed; these removals are published again when Home Assistant starts
)

// agents mirrors the sessions without a robot: coding agents, and the chats of skins, which are programs that
// draw the agent on a screen. Each such session is called an agent here. addAgent makes it a device of Home
// Assistant.
type agents struct {
	announcements
	o     *Options
	views map[string]*state.Agent // key: agent ID
	// chats are the names of sessions that have had a single question, oldest first. They get no device before
	// their second question, because a program that names no session starts a new session with every question.
	chats    []string
	pace     *rate.Limiter  // limits how fast new agents are added
	removed  []removedAgent // oldest first
	lanes    *lanes
	refusals refusals
}

// removedAgent is an agent whose device was removed.
type removedAgent struct {
	id         string
	at         time.Time
	remembered bool // the table of announcements still lists the agent, so that the agent is removed again after a restart
}

// viewFor returns the mirrored state of the agent that an event belongs to, or nil. It adds an agent if startsAgent
// is true for the event and a.pace allows it. A notification belongs to no agent: the session in the event is the
// sender's.
func (a *agents) viewFor(e event.Envelope) *state.Agent {
	if _, notification := e.Event.(event.Notification); notification || e.Session == "" {
		return nil
	}
	v := a.views[topic.AgentID(e.Session)]
	if v == nil && a.startsAgent(e) && a.pace.AllowN(e.At, 1) {
		v = a.addAgent(e.Session, e.At)
	}
	return v
}

// startsAgent reports whether an event shows that its session is an agent: that the session gets or asks a question,
// thinks or works. The sessions of programs that only display an agent have no such events. For the first question
// to a session, startsAgent returns false and adds the session to a.chats. It then returns false for the events of that
// session until the second question.
func (a *agents) startsAgent(e event.Envelope) bool {
	switch e.Event.(type) {
	case event.Heard, event.ThinkingStarted, event.ToolStatus, event.StateTold, event.Asked, event.Answered, event.TurnEnded, event.Fault:
	default:
		return false
	}
	chat := slices.Contains(a.chats, e.Session)
	if _, isQuestion := e.Event.(event.Heard); !isQuestion {
		return !chat // after a single question, the event belongs to the turn of that question
	}
	if chat {
		a.chats = slices.DeleteFunc(a.chats, func(s string) bool { return s == e.Session })
		return true
	}
	a.chats = append(a.chats, e.Session)
	a.chats = a.chats[max(len(a.chats)-maxChats, 0):]
	return false
}

// isAnswerable reports whether the question with an ID can be answered with yes or no over MQTT. No question can be
// answered if Perch has no user at the broker, because anybody on the network could then answer.
func (a *agents) isAnswerable(id string) bool {
	return a.o.User != "" && slices.ContainsFunc(a.o.Questions.Questions(), func(q agent.Question) bool { return q.ID == id })
}

// addAgent adds a device for a session. If there are maxAgents already, it removes the agent that would end first.
func (a *agents) addAgent(session string, at time.Time) *state.Agent {
	if len(a.views) >= maxAgents {
		oldest := slices.MinFunc(slices.Collect(maps.Values(a.views)), func(x, y *state.Agent) int {
			return cmp.Or(x.Ends().Compare(y.Ends()), strings.Compare(x.ID, y.ID))
		})
		a.remove(oldest.ID, at)
	}
	v := &state.Agent{Session: session, ID: topic.AgentID(session), Shown: agent.Idle, Seen: at}
	a.views[v.ID] = v
	a.removed = slices.DeleteFunc(a.removed, func(r removedAgent) bool { return r.id == v.ID })
	a.publishState(v, at)
	key := topic.AgentPrefix + v.ID
	a.announce(key, discovery.Agent(a.topics, v.ID, a.o.Version, a.announcedIDs(key)), nil)
	return v
}

// remove removes the device of an agent, and adds the agent to a.removed.
func (a *agents) remove(id string, at time.Time) {
	delete(a.views, id)
	a.announce(topic.AgentPrefix+id, discovery.RemovedAgent(a.topics, id, a.o.Version), nil)
	a.sendRetainedText(a.topics.Agent(id, "state"), "")
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

// forgetRemoved calls forget for each agent that was removed at least reconcileInterval ago, if the broker has
// been connected for at least reconcileInterval and so has received the removal.
func (a *agents) forgetRemoved(broker connection.Status, now time.Time) {
	for i := range a.removed {
		r := &a.removed[i]
		if broker.Connected && now.Sub(broker.Since) >= reconcileInterval && now.Sub(r.at) >= reconcileInterval {
			a.forget(r)
		}
	}
}

// resume adds an agent for each session without a robot that is not idle, up to maxAgents. It removes the other agents
// that were announced before the appliance started.
func (a *agents) resume(states []agent.State, now time.Time) {
	for _, s := range states {
		if s.Robot == "" && s.Session != "" && s.At(now) != agent.Idle && len(a.views) < maxAgents {
			v := a.addAgent(s.Session, now)
			v.State = s
			a.readQuestions(v, now)
		}
	}
	for _, key := range a.announcedDevices() {
		if id, isAgent := strings.CutPrefix(key, topic.AgentPrefix); isAgent && a.views[id] == nil {
			a.remove(id, now)
		}
	}
}

// readQuestions replaces an agent's questions with the questions that wait for an answer now, and publishes the change.
func (a *agents) readQuestions(v *state.Agent, now time.Time) {
	v.ClearQuestions(now)
	for _, q := range a.o.Questions.Questions() {
		if q.Robot == "" && q.Session == v.Session {
			v.AddQuestion(q.ID, q.Text, a.o.User != "", now)
		}
	}
	a.publishChanges(v, now)
}

// publishChanges publishes a new agent_state at once, and also a change of the oldest waiting question, which is the one
// that Home Assistant shows. It publishes other changes at most once per stateInterval.
func (a *agents) publishChanges(v *state.Agent, now time.Time) {
	shown := v.State.At(now)
	if shown != v.Shown || v.Changed && (now.Sub(v.Published) >= stateInterval || v.QuestionShownAt(now)) {
		v.Shown = shown
		a.publishState(v, now)
	}
}

// publishState publishes the state document of an agent.
func (a *agents) publishState(v *state.Agent, now time.Time) {
	v.Changed, v.Published = false, now
	a.sendRetained(a.topics.Agent(v.ID, "state"), v.Document())
}

// countWaiting returns how many agents wait for a person.
func (a *agents) countWaiting() (n int) {
	for _, v := range a.views {
		if v.Shown == agent.Notification {
			n++
		}
	}
	return n
}

// answerLane is the lane that handles answers to questions.
const answerLane = device.ID("answers")

// onMessage handles a message on "<agent>/<thing>/set".
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
	queued := a.lanes.Add(ctx, answerLane, device.Job{Do: func(context.Context) {
		if err := a.o.Questions.Reply(question, allow); err != nil {
			a.log.Warn("an answer over MQTT came too late", "session", id, "err", err)
		}
		m.Ack()
	}})
	if !queued {
		refuse(errors.New("too many answers came at once"))
	}
}

// parseAnswer returns the ID of the question that a message answers, and whether the answer is yes. Its errors are
// sentences for the log.
func (a *agents) parseAnswer(id, thing string, m connection.Incoming, now time.Time) (question string, allow bool, err error) {
	v := a.views[id]
	switch {
	case m.Retained:
		return "", false, errors.New("it was published retained, and would be given again at every connection; publish it without the retain flag")
	case v == nil:
		return "", false, errors.New("no agent has this id, or it was removed")
	case a.o.User == "":
		return "", false,
			errors.New("anybody at the broker might answer, since Perch has no user there; give it one, as mqtt.user, and let the broker refuse clients without a user")
	case thing != "answer":
		return "", false, fmt.Errorf("there is no %.40q to set", thing)
	}
	if question, allow, err = command.ParseAnswer(m.Payload); err == nil {
		question, err = v.FindQuestion(question, now)
	}
	return question, allow, err
}
