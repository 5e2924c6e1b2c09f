package homeassistant

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/homeassistant/command"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/state"
)

const (
	// stateInterval is the minimum time between two state documents with the same agent_state. moodInterval is the minimum
	// time between two moods with the same dominant feeling; it is longer, because Home Assistant stores each mood. The
	// limits do not apply when a discovery is published.
	stateInterval     = 100 * time.Millisecond
	moodInterval      = time.Second
	reconcileInterval = 10 * time.Second // time between two calls of hub.reconcile by the hub's timer

	// newEntityDelay is how long events are held after a robot's new entities were announced. Home Assistant drops events
	// that arrive before it has made their entities.
	newEntityDelay = 2 * time.Second
	maxHeld        = 50 // held events of one robot; events above this limit are published at once
)

// robots mirrors the robots that their owner has adopted.
type robots struct {
	announcements
	o          *Options
	views      map[device.ID]*state.Robot // the mirrored state of each adopted robot
	strangers  *strangers
	waiting    *waitingCommands
	characters []string // IDs of the characters that robots can use
}

// viewFor returns the mirrored state of an adopted robot, or nil for a stranger. It first adds the state of a robot
// that was just adopted, and removes the state of a robot that was forgotten.
func (r *robots) viewFor(id device.ID, now time.Time) *state.Robot {
	if hasView := r.views[id] != nil; hasView != r.o.Robots.Trusts(id) {
		r.reconcile(now)
	}
	return r.views[id]
}

// reconcile compares the mirrored states with the registry and publishes the differences. It is needed
// because the registry publishes no event for some changes.
func (r *robots) reconcile(now time.Time) {
	adopted, present := map[device.ID]bool{}, map[device.ID]bool{}
	for _, registered := range r.o.Robots.List() {
		if !r.o.Robots.Trusts(registered.ID) {
			present[registered.ID] = true
			continue
		}
		v := r.views[registered.ID]
		if v == nil {
			v = r.addRobot(registered)
		}
		adopted[registered.ID] = true
		old, character := v.Registered, r.o.Characters.Who(registered.ID, "")
		changed := r.findFirmware(v) || differ(old, registered) || v.Character != character
		v.Changed = v.Changed || changed || !old.LastSeen.Equal(registered.LastSeen)
		v.Registered, v.Character = registered, character
		if changed || v.Published.IsZero() {
			r.publishDiscovery(v)
		}
		r.publishFirmware(v) // the firmware catalogue publishes no event for a new image
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

// addRobot adds the mirrored state of a robot. The state has the values that the commands waiting for the robot set.
func (r *robots) addRobot(registered device.Robot) *state.Robot {
	v := &state.Robot{
		Registered: registered, State: agent.NewBoard().Robot(registered.ID), // the initial state, since no event was read yet
		Shown: agent.Idle, Transport: r.o.Transport, Senses: discovery.NewSenses(r.announcedIDs(string(registered.ID))),
	}
	for _, w := range r.waiting.byRobot[registered.ID] {
		if c, err := command.Parse(registered.ID, w.Thing, []byte(w.Payload), r.o.Robots.Resolve); err == nil {
			if change := command.StateChange(c); change != nil {
				change(v)
			}
		}
	}
	r.views[registered.ID] = v
	return v
}

// removeForgotten removes the devices of robots that were forgotten while no mirror was running.
func (r *robots) removeForgotten() {
	for _, key := range r.announcedDevices() {
		if id, err := device.ParseID(key); err == nil && !r.o.Robots.Trusts(id) {
			r.remove(id)
		}
	}
}

// remove removes the device of a robot from the broker and from Home Assistant, and deletes its waiting commands.
func (r *robots) remove(id device.ID) {
	r.announce(string(id), discovery.RemovedRobot(r.topics, id), nil)
	for _, thing := range []string{"status", "state", "led", "firmware", "mood"} {
		r.sendRetainedText(r.topics.Robot(id, thing), "")
	}
	r.ids.DeleteSoon(string(id))
	r.waiting.removeAll(id)
	delete(r.views, id)
}

// readChoices reads the list of characters, and publishes the discovery of the robots whose choices have changed.
func (r *robots) readChoices(now time.Time) {
	r.characters = r.o.Characters.Names()
	r.reconcile(now)
	for _, v := range r.views {
		r.publishDiscovery(v)
	}
}

// checkIn reads the registry's data of a robot that has just checked in, and publishes its status, and its discovery if
// that has changed.
func (r *robots) checkIn(v *state.Robot, now time.Time) {
	registered, err := r.o.Robots.Get(v.Registered.ID)
	if err != nil {
		return
	}
	changed := differ(v.Registered, registered)
	v.Register(registered)
	if changed {
		r.publishDiscovery(v)
	}
	r.publishStatus(v, now)
}

// differ reports whether the discovery of a robot has to be published after its registry data changed from
// old to current.
func differ(old, current device.Robot) bool {
	return old.Board != current.Board || old.Firmware != current.Firmware || old.BaseURL != current.BaseURL ||
		old.Settings != current.Settings
}

// tools returns the tools of a robot. After a firmware update these are the tools of the old firmware until
// the robot lists its tools again.
func (r *robots) tools(v *state.Robot) []device.Tool {
	if tools := r.o.Talk.Tools(v.Registered.ID); len(tools) > 0 {
		return tools
	}
	return v.Registered.Tools
}

// choices returns the options of a select: discovery.DefaultOption, others, and the present choice, which is missing from
// others if only the configuration names it.
func choices(present string, others ...string) []string {
	options := append([]string{discovery.DefaultOption}, others...)
	if present != "" && !slices.Contains(options, present) {
		options = append(options, present)
	}
	return options
}

// publishDiscovery publishes the discovery of a robot. If the state was published before, it is first published once
// more, without values that do not fit the new sliders. The mood, if the robot has one, is published too. The outbox skips
// an unchanged discovery.
func (r *robots) publishDiscovery(v *state.Robot) {
	id := v.Registered.ID
	card := discovery.Card{ID: id, Name: v.Registered.Settings.Name, Board: v.Registered.Board, Firmware: v.Registered.Firmware,
		Version: r.o.Version, BaseURL: v.Registered.BaseURL, Tools: r.tools(v), Senses: maps.Clone(v.Senses), Gestures: r.o.Gestures.Names(),
		Characters: choices(v.Character, r.characters...), Brains: choices(v.Registered.Settings.Brain, r.o.Brains()...),
		Languages: choices(v.Registered.Settings.Language, discovery.Languages()...)}
	if names := r.o.Music(); len(names) > 0 {
		card.Music = append([]string{discovery.MusicOff}, names...)
	}
	v.HasMusic = len(card.Music) > 0
	announced := r.announcedIDs(string(id))
	list, known := r.o.Voices()
	card.Voices = discovery.Voices(v.Registered.Settings.Voice, list, known, announced)
	d := discovery.Robot(r.topics, card, announced)
	if !v.Published.IsZero() { // Home Assistant reads the retained state again, so it must fit the new ranges of the sliders
		r.sendRetained(r.topics.Robot(id, "state"), v.Document().Within(card.Tools))
		v.Changed = true
	}
	v.Tools = card.Tools
	if v.Senses["mood"] {
		r.publishMood(v, time.Now())
	}
	r.announce(string(id), d, func(step int) []byte { return discovery.Robot(r.topics, card, announced).Payloads[step] })
}

// publishChanges publishes a new agent_state at once, and other changes at most once per stateInterval.
func (r *robots) publishChanges(v *state.Robot, now time.Time) {
	shown := v.State.At(now)
	if shown != v.Shown || v.Changed && now.Sub(v.Published) >= stateInterval {
		v.Shown = shown
		r.publishState(v, now)
	}
}

// publishState publishes the state document of a robot, and the state of its lights if it has any.
func (r *robots) publishState(v *state.Robot, now time.Time) {
	v.Changed, v.Published = false, now
	r.sendRetained(r.topics.Robot(v.Registered.ID, "state"), v.Document())
	if _, found := device.FindLights(r.tools(v)); found {
		r.sendRetained(r.topics.Robot(v.Registered.ID, "led"), cmp.Or(v.Light, &state.Light{})) // a nil Light is unknown
	}
}

// publishStatus publishes whether a robot counts as online.
func (r *robots) publishStatus(v *state.Robot, now time.Time) {
	status := "offline"
	if v.Online(now, r.o.Away) {
		status = "online"
	}
	r.sendRetainedText(r.topics.Robot(v.Registered.ID, "status"), status)
}

// endDownload publishes that a robot is no longer downloading firmware.
func (r *robots) endDownload(v *state.Robot) {
	v.EndDownload()
	r.publishFirmware(v)
}

func (r *robots) publishMood(v *state.Robot, now time.Time) {
	v.MoodChanged, v.MoodPublished = false, now
	r.sendRetained(r.topics.Robot(v.Registered.ID, "mood"), v.Mood)
}

// findFirmware sets the sense "firmware" of the robot: whether the catalogue has images and data about the robot. It
// reports whether the sense has changed.
func (r *robots) findFirmware(v *state.Robot) (changed bool) {
	installed, _ := r.o.Firmware.Update(v.Registered.ID)
	changed = v.Senses["firmware"] != (installed != "")
	v.Senses["firmware"] = installed != ""
	return changed
}

// publishFirmware publishes the installed and the latest firmware version of a robot, if the catalogue has images and
// data about the robot.
func (r *robots) publishFirmware(v *state.Robot) {
	installed, latest := r.o.Firmware.Update(v.Registered.ID)
	if installed != "" {
		r.sendRetained(r.topics.Robot(v.Registered.ID, "firmware"), v.Update(installed, latest))
	}
}

// publishSense publishes an event about what a robot senses, or holds the event until Home Assistant has its entity.
func (r *robots) publishSense(v *state.Robot, thing string, document any) {
	if !v.HeldUntil.IsZero() && len(v.Held) < maxHeld {
		v.Held = append(v.Held, state.HeldEvent{Thing: thing, Document: document})
		return
	}
	r.sendEvent(r.topics.Robot(v.Registered.ID, thing), document)
}

// advance publishes the changes of a robot that are due at the time now.
func (r *robots) advance(v *state.Robot, now time.Time) {
	if v.DetectLongPress(now) {
		r.publishSense(v, "touch", state.Event{Type: "long_press_start"})
	}
	if !v.HeldUntil.IsZero() && !now.Before(v.HeldUntil) {
		for _, held := range v.Held {
			r.sendEvent(r.topics.Robot(v.Registered.ID, held.Thing), held.Document)
		}
		v.Held, v.HeldUntil = nil, time.Time{}
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

// nextChange returns the time at which advance has to be called next for a robot, or the zero time if no
// change is due.
func (r *robots) nextChange(v *state.Robot, now time.Time) time.Time {
	next := state.Earliest(v.NextChange(), v.HeldUntil)
	if v.Changed {
		next = state.Earliest(next, v.Published.Add(stateInterval))
	}
	if v.MoodChanged {
		next = state.Earliest(next, v.MoodPublished.Add(moodInterval))
	}
	if r.o.Away > 0 && !v.State.Online && v.Online(now, r.o.Away) {
		next = state.Earliest(next, v.LastSeen().Add(r.o.Away))
	}
	return next
}

// countOnline returns how many robots are connected.
func (r *robots) countOnline() (n int) {
	for _, v := range r.views {
		if v.State.Online {
			n++
		}
	}
	return n
}
