package homeassistant

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/connection"
)

// Paces of the mirror.
const (
	coalesce   = 100 * time.Millisecond // between documents of a robot without a new agent_state
	longPress  = 2 * time.Second
	lookEvery  = 10 * time.Second // at the registry, which publishes nothing when a robot is forgotten
	birthDelay = 3 * time.Second  // of which a random part, so that not all devices answer Home Assistant at once
)

// hub is the one goroutine that owns what is mirrored. It waits for nothing
// but its inputs, and for the disk where a command is to be kept.
type hub struct {
	*Mirror
	views   map[device.ID]*view
	looks   int // at the registry
	notices recentNotices
	refused refusals
	kept    kept
	waiting map[string]bool // the ids of notifications for robots that were offline
	states  *agent.Follower
	cast    []string // the characters that robots can have
	born    time.Time
	info    bridgeInfo // as last published
	bridged bool       // the appliance was announced,
	url     string     // with this address

	strangers strangers
	agents    agents
}

func newHub(m *Mirror) *hub {
	return &hub{Mirror: m, views: map[device.ID]*view{}, notices: recentNotices{byID: map[string]publishedNotice{}},
		refused: refusals{m.o.Log, map[device.ID]*refused{}}, kept: newKept(m.o.Kept), waiting: map[string]bool{},
		strangers: strangers{here: map[device.ID]bool{}, noted: map[device.ID]bool{}, pace: newAllowance()},
		agents:    agents{views: map[string]*agentView{}, pace: newAllowance()}}
}

// run mirrors until ctx ends or the bus is closed.
func (h *hub) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	var pump sync.WaitGroup
	defer pump.Wait()
	defer stop()
	events := make(chan event.Envelope)
	reader := h.begin(time.Now())
	pump.Go(func() { reader.Pump(ctx, events) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		timer.Reset(h.wait(time.Now()))
		select {
		case e, open := <-events:
			if !open {
				<-ctx.Done() // the appliance is stopping
				return
			}
			h.take(ctx, e)
		case m := <-h.connect.Arrived:
			h.arrived(ctx, m)
		case call := <-h.calls:
			call()
		case <-look.C:
			h.look(time.Now())
		case <-timer.C:
			h.tick(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// begin takes everything as it is, and returns a reader of the events after it.
func (h *hub) begin(now time.Time) *event.Reader {
	h.states = h.o.Board.Follow(now)
	h.cast = h.o.Characters.Names()
	h.forgetUnknown()
	h.out.Put(connection.Message{Topic: h.names.Bridge("status"), Payload: []byte("online"), Retained: true, QoS: 1})
	h.bridge() // which the robots are behind
	h.look(now)
	h.rereadNotices(now)
	for _, s := range h.states.States() {
		if v := h.views[s.Robot]; v != nil {
			v.state, v.shown = s, s.At(now)
			h.available(v, now)
			h.show(v, now)
		}
	}
	h.beginAgents(now)
	h.bridge()
	return h.states.Reader(h.o.Bus)
}

// look compares what is mirrored with the registry.
func (h *hub) look(now time.Time) {
	h.looks++
	strangers := map[device.ID]bool{}
	for _, r := range h.o.Robots.List() {
		if !h.o.Robots.Trusts(r.ID) {
			strangers[r.ID] = true // a number, until its owner adopts it
			continue
		}
		v := h.views[r.ID]
		if v == nil {
			v = h.enter(r)
		}
		v.looked = h.looks
		who := h.o.Characters.Who(r.ID, "")
		changed := v.robot.Board != r.Board || v.robot.Firmware != r.Firmware || v.robot.BaseURL != r.BaseURL ||
			v.robot.Settings.Name != r.Settings.Name || v.who != who
		v.dirty = v.dirty || changed || v.robot.Settings.Transport != r.Settings.Transport || !v.robot.LastSeen.Equal(r.LastSeen)
		v.robot, v.who = r, who
		if changed || v.card.ID == "" {
			h.announce(v)
		}
		h.showUpdate(v, now) // the catalogue publishes no event for a new image
		h.available(v, now)
		if v.published.IsZero() {
			h.show(v, now)
		}
	}
	for id, v := range h.views {
		if v.looked != h.looks {
			h.forget(id)
		}
	}
	h.strangers.are(strangers)
	h.forgetOldRemoved(now)
	h.bridge()
}

// take brings in an event.
func (h *hub) take(ctx context.Context, e event.Envelope) {
	if lost, is := e.Event.(event.Missed); is {
		h.recover(lost, e)
		return
	}
	h.publishNotice(e)
	if e.Robot == "" {
		if c, is := e.Event.(event.Changed); is && c.What == "characters" {
			h.recast(e.At)
		}
		h.takeAgent(e)
		return
	}
	v := h.meet(e)
	for _, c := range h.states.Take(e) {
		h.change(c)
	}
	if v == nil {
		h.came(e)
		return
	}
	h.press(v, e.At)
	h.happened(ctx, v, e)
	h.settle(v, e.At)
}

// meet is the view of an event's robot, which may be new. A stranger has none.
func (h *hub) meet(e event.Envelope) *view {
	v, trusted := h.views[e.Robot], h.o.Robots.Trusts(e.Robot)
	if (v != nil) != trusted { // its owner has adopted it, or has forgotten it
		h.look(e.At)
		v = h.views[e.Robot]
	}
	return v
}

// recover goes on from the board after events were lost.
func (h *hub) recover(lost event.Missed, e event.Envelope) {
	h.o.Log.Warn("the MQTT mirror fell behind; events were lost", "events", lost.N)
	for _, c := range h.states.Take(e) {
		if v := h.views[c.State.Robot]; v != nil {
			v.state, v.dirty = c.State, true
			h.settle(v, e.At)
			h.available(v, e.At)
		} else if v := h.agents.views[c.State.Key()]; v != nil {
			v.state = c.State
		}
	}
	for _, v := range h.agents.views {
		h.askedBefore(v, e.At)
		h.settleAgent(v, e.At)
	}
	h.rereadNotices(e.At)
	h.recast(e.At)
	h.bridge()
}

// change brings in a session's next state. What an event has changed is
// published with the rest of the event.
func (h *hub) change(c agent.Change) {
	if v := h.agents.views[c.State.Key()]; v != nil && c.State.Robot == "" {
		v.state = c.State
		if c.By == nil {
			h.settleAgent(v, c.At)
		}
		return
	}
	v := h.views[c.State.Robot]
	if v == nil {
		return
	}
	before := v.state
	v.state = c.State
	if c.By == nil {
		h.settle(v, c.At)
		return
	}
	v.seen = c.At
	if before.Emotion != v.state.Emotion || before.Session != v.state.Session || before.Online != v.state.Online ||
		before.Talking != v.state.Talking {
		v.dirty = true
	}
	if before.Online != v.state.Online {
		h.available(v, c.At)
		h.bridge()
	}
}

// press publishes that a head is touched for long.
func (h *hub) press(v *view, at time.Time) {
	if !v.pressed.IsZero() && !v.held && !v.pressed.Add(longPress).After(at) {
		v.held = true
		h.touch(v, "long_press_start")
	}
}

// settle publishes a new agent_state at once, and anything else in its time.
func (h *hub) settle(v *view, at time.Time) {
	shown := v.state.At(at)
	switch {
	case shown != v.shown:
		v.shown = shown
		h.show(v, at)
	case v.dirty && at.Sub(v.published) >= coalesce:
		h.show(v, at)
	}
}

// show publishes a robot's document.
func (h *hub) show(v *view, at time.Time) {
	v.dirty, v.published = false, at
	h.putJSON(h.names.Robot(v.robot.ID, "state"), v.document(), true, 1)
	if _, found := device.FindLights(h.tools(v)); found {
		h.putJSON(h.names.Robot(v.robot.ID, "led"), cmp.Or(v.led, &light{}), true, 1) // unknown where nil
	}
}

// available publishes whether a robot counts as there.
func (h *hub) available(v *view, now time.Time) {
	word := "offline"
	if v.online(now, h.o.Away) {
		word = "online"
	}
	if word != v.status {
		v.status = word
		h.out.Put(connection.Message{Topic: h.names.Robot(v.robot.ID, "status"), Payload: []byte(word), Retained: true, QoS: 1})
	}
}

func (h *hub) putJSON(topic string, v any, retained bool, qos byte) {
	h.out.Put(connection.Message{Topic: topic, Payload: encode(v), Retained: retained, QoS: qos})
}

// encode writes what this package made itself, which can always be written.
func encode(v any) []byte {
	payload, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return payload
}

// wait is the time until something is due.
func (h *hub) wait(now time.Time) time.Duration {
	first := earliest(now.Add(time.Hour), h.states.Due(), h.born, h.strangers.due)
	for _, v := range h.views {
		first = earliest(first, v.due(h.o.Away))
	}
	for _, v := range h.agents.views {
		first = earliest(first, v.due())
	}
	return max(first.Sub(now), 0)
}

// earliest is the first of some times, of which the zero time is none.
func earliest(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

// tick does what is due.
func (h *hub) tick(now time.Time) {
	for _, c := range h.states.Pass(now) {
		h.change(c)
	}
	for _, v := range h.views {
		h.press(v, now)
		h.passCharacter(v, now)
		h.settle(v, now)
		h.available(v, now)
		if until := v.download.until; !until.IsZero() && !until.After(now) {
			h.showUpdate(v, now)
		}
	}
	h.tickAgents(now)
	if due := h.strangers.due; !due.IsZero() && !now.Before(due) {
		h.bridge()
	}
	if !h.born.IsZero() && !now.Before(h.born) {
		h.born = time.Time{}
		h.out.Republish()
	}
}

// arrived takes a message from the broker.
func (h *hub) arrived(ctx context.Context, m connection.Incoming) {
	if m.Topic == h.names.Birth() {
		// A retained one was there before this connection, which has announced everything.
		if !m.Retained && strings.TrimSpace(string(m.Payload)) == "online" && h.born.IsZero() {
			h.born = time.Now().Add(500*time.Millisecond + rand.N(birthDelay))
		}
		return
	}
	if verb, ok := h.names.ParseRequest(m.Topic); ok {
		h.request(ctx, verb, m)
		return
	}
	h.command(ctx, m)
}

// offline reports whether an error is a robot's closed channel.
func offline(err error) bool {
	var c interface{ Code() string }
	return errors.As(err, &c) && c.Code() == "robot_offline"
}
