package homeassistant

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/state"
)

const (
	stateInterval = 100 * time.Millisecond // between documents without a new agent_state
	moodInterval  = time.Second            // between moods with the same feeling: Home Assistant stores each

	reconcileInterval = 10 * time.Second
)

// robots are the robots that their owner has adopted.
type robots struct {
	announcements
	o          *Options
	views      map[device.ID]*state.Robot
	strangers  *strangers
	waiting    *waitingCommands
	characters []string // that robots can have
}

// viewFor returns a robot's view, or nil for a stranger. A robot gets one as soon as its owner has
// adopted it, and loses it as soon as its owner has forgotten it.
func (r *robots) viewFor(id device.ID, now time.Time) *state.Robot {
	if known := r.views[id] != nil; known != r.o.Robots.Trusts(id) {
		r.reconcile(now)
	}
	return r.views[id]
}

// reconcile publishes what has changed in the registry, which reports no change of some kinds.
func (r *robots) reconcile(now time.Time) {
	adopted, present := map[device.ID]bool{}, map[device.ID]bool{}
	for _, registered := range r.o.Robots.List() {
		if !r.o.Robots.Trusts(registered.ID) {
			present[registered.ID] = true
			continue
		}
		v := r.views[registered.ID]
		if v == nil {
			v = r.enter(registered)
		}
		adopted[registered.ID] = true
		was, character := v.Registered, r.o.Characters.Who(registered.ID, "")
		changed := was.Board != registered.Board || was.Firmware != registered.Firmware || was.BaseURL != registered.BaseURL ||
			was.Settings.Name != registered.Settings.Name || v.Character != character
		v.Changed = v.Changed || changed || was.Settings.Transport != registered.Settings.Transport || !was.LastSeen.Equal(registered.LastSeen)
		v.Registered, v.Character = registered, character
		if changed || v.Published.IsZero() {
			r.publishDiscovery(v)
		}
		r.publishFirmware(v) // the catalogue publishes no event for a new image
		r.publishStatus(v, now)
		if v.Published.IsZero() {
			r.publishState(v, now)
		}
	}
	for id := range r.views {
		if !adopted[id] {
			r.remove(id)
		}
	}
	r.strangers.set(present)
}

// enter begins to mirror a robot.
func (r *robots) enter(registered device.Robot) *state.Robot {
	v := &state.Robot{
		Registered: registered, State: agent.NewBoard().Robot(registered.ID), // the events so far are not yet read
		Shown: agent.Idle, Transport: r.o.Transport, Senses: discovery.NewSenses(r.before(string(registered.ID))),
	}
	r.views[registered.ID] = v
	return v
}

// removeForgotten removes the devices of robots that were forgotten while MQTT was off.
func (r *robots) removeForgotten() {
	for _, key := range r.devices() {
		if id, err := device.ParseID(key); err == nil && !r.o.Robots.Trusts(id) {
			r.remove(id)
		}
	}
}

// remove removes a robot from the broker and from Home Assistant.
func (r *robots) remove(id device.ID) {
	r.announce(string(id), discovery.RemovedRobot(r.topics, id), nil)
	for _, thing := range []string{"status", "state", "led", "firmware", "mood"} {
		r.status(r.topics.Robot(id, thing), "")
	}
	r.ids.DeleteSoon(string(id))
	r.waiting.removeAll(id)
	delete(r.views, id)
}

// readCharacters reads the list of characters and announces what has changed.
func (r *robots) readCharacters(now time.Time) {
	r.characters = r.o.Characters.Names()
	r.reconcile(now)
	for _, v := range r.views {
		r.publishDiscovery(v)
	}
}

// checkIn publishes what the registry knows of a robot that has just checked in.
func (r *robots) checkIn(v *state.Robot, now time.Time) {
	registered, err := r.o.Robots.Get(v.Registered.ID)
	if err != nil {
		return
	}
	v.Register(registered)
	r.publishDiscovery(v)
	r.publishStatus(v, now)
}

// tools returns a robot's tools. Until it has listed them after an update they are the earlier
// firmware's.
func (r *robots) tools(v *state.Robot) []device.Tool {
	if tools := r.o.Talk.Tools(v.Registered.ID); len(tools) > 0 {
		return tools
	}
	return v.Registered.Tools
}

// choices returns the characters that a robot can have: the household's, the others, and its own if
// that is a file which only the configuration names.
func (r *robots) choices(v *state.Robot) []string {
	all := append([]string{agent.DefaultCharacter}, r.characters...)
	if v.Character != "" && !slices.Contains(all, v.Character) {
		all = append(all, v.Character)
	}
	return all
}

// publishDiscovery publishes a robot's discovery. The outbox skips it if it has not changed.
func (r *robots) publishDiscovery(v *state.Robot) {
	id := v.Registered.ID
	card := discovery.Card{ID: id, Name: v.Registered.Settings.Name, Board: v.Registered.Board, Firmware: v.Registered.Firmware,
		Version: r.o.Version, BaseURL: v.Registered.BaseURL, Tools: r.tools(v), Senses: maps.Clone(v.Senses), Gestures: r.o.Gestures.Names(),
		Characters: r.choices(v)}
	before := r.before(string(id))
	d := discovery.Robot(r.topics, card, before)
	if !v.Published.IsZero() { // Home Assistant reads the retained document again, with the new ranges
		r.state(r.topics.Robot(id, "state"), v.Document().Within(card.Tools))
		v.Changed = true
	}
	v.Tools = card.Tools
	if v.Senses["mood"] {
		r.publishMood(v, time.Now())
	}
	r.announce(string(id), d, func(step int) []byte { return discovery.Robot(r.topics, card, before).Payloads[step] })
}

// publishChanges publishes a new agent_state at once, and other changes of the document each stateInterval.
func (r *robots) publishChanges(v *state.Robot, now time.Time) {
	shown := v.State.At(now)
	if shown != v.Shown || v.Changed && now.Sub(v.Published) >= stateInterval {
		v.Shown = shown
		r.publishState(v, now)
	}
}

func (r *robots) publishState(v *state.Robot, now time.Time) {
	v.Changed, v.Published = false, now
	r.state(r.topics.Robot(v.Registered.ID, "state"), v.Document())
	if _, found := device.FindLights(r.tools(v)); found {
		r.state(r.topics.Robot(v.Registered.ID, "led"), cmp.Or(v.Light, &state.Light{})) // unknown if nil
	}
}

// publishStatus publishes whether a robot counts as there.
func (r *robots) publishStatus(v *state.Robot, now time.Time) {
	status := "offline"
	if v.Online(now, r.o.Away) {
		status = "online"
	}
	r.status(r.topics.Robot(v.Registered.ID, "status"), status)
}

// endDownload publishes that a robot downloads no firmware any more.
func (r *robots) endDownload(v *state.Robot) {
	v.EndDownload()
	r.publishFirmware(v)
}

func (r *robots) publishMood(v *state.Robot, now time.Time) {
	v.MoodChanged, v.MoodPublished = false, now
	r.state(r.topics.Robot(v.Registered.ID, "mood"), v.Mood)
}

// publishFirmware publishes the firmware that a robot runs and could run.
func (r *robots) publishFirmware(v *state.Robot) {
	installed, latest := r.o.Firmware.Update(v.Registered.ID)
	r.state(r.topics.Robot(v.Registered.ID, "firmware"), v.Update(installed, latest))
}

// advance publishes what has changed in a robot without an event.
func (r *robots) advance(v *state.Robot, now time.Time) {
	if v.LongTouch(now) {
		r.event(r.topics.Robot(v.Registered.ID, "touch"), state.Event{Type: "long_press_start"})
	}
	if v.Expire(now) {
		r.publishFirmware(v)
	}
	if v.MoodChanged && now.Sub(v.MoodPublished) >= moodInterval {
		r.publishMood(v, now)
	}
	r.publishChanges(v, now)
	r.publishStatus(v, now)
}

// nextChange returns when a robot is to advance next, and the zero time for never.
func (r *robots) nextChange(v *state.Robot, now time.Time) time.Time {
	first := v.NextChange()
	if v.Changed {
		first = state.Earliest(first, v.Published.Add(stateInterval))
	}
	if v.MoodChanged {
		first = state.Earliest(first, v.MoodPublished.Add(moodInterval))
	}
	if r.o.Away > 0 && !v.State.Online && v.Online(now, r.o.Away) {
		first = state.Earliest(first, v.LastSeen().Add(r.o.Away))
	}
	return first
}

// online returns how many robots can be reached.
func (r *robots) online() (n int) {
	for _, v := range r.views {
		if v.State.Online {
			n++
		}
	}
	return n
}
