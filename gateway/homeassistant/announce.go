package homeassistant

import (
	"crypto/sha256"
	"maps"
	"reflect"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
	"perch/gateway/homeassistant/connection"
	"perch/gateway/homeassistant/discovery"
)

// enter begins to mirror a robot.
func (h *hub) enter(r device.Robot) *view {
	// Its events, if there were any, are on their way.
	v := &view{robot: r, rendering: rendering{state: agent.NewBoard().Robot(r.ID), shown: agent.Idle}, senses: discovery.NewSenses(h.announcedBefore(string(r.ID))), transport: h.o.Transport}
	h.views[r.ID] = v
	return v
}

// announce publishes a robot's discovery where it has changed.
func (h *hub) announce(v *view) {
	id := v.robot.ID
	card := discovery.Card{ID: id, Name: v.robot.Settings.Name, Board: v.robot.Board, Firmware: v.robot.Firmware, Version: h.o.Version,
		BaseURL: v.robot.BaseURL, Tools: h.tools(v), Senses: maps.Clone(v.senses), Gestures: h.o.Gestures.Names(), Characters: h.choice(v)}
	if reflect.DeepEqual(card, v.card) { // robots check in more often than they change
		return
	}
	v.card = card
	before := h.announcedBefore(string(id))
	a := discovery.Robot(h.names, card, before)
	last := sha256.Sum256(a.Payloads[len(a.Payloads)-1])
	if last == v.announced {
		return
	}
	if !v.published.IsZero() { // Home Assistant reads the latest once more
		shown := v.document()
		shown.unknownOutside(card.Tools)
		h.putJSON(h.names.Robot(id, "state"), shown, true, 1)
		v.dirty = true
	}
	v.announced, v.tools = last, card.Tools
	if v.senses["mood"] {
		h.showMood(v, time.Now()) // likewise
	}
	h.publishDiscovery(a, func(step int) []byte { return discovery.Robot(h.names, card, before).Payloads[step] })
	h.remember(string(id), a.IDs)
}

// tools are a robot's, or those it listed under an earlier firmware: what an
// update leaves out is known once it has listed them again.
func (h *hub) tools(v *view) []device.Tool {
	if tools := h.o.Talk.Tools(v.robot.ID); len(tools) > 0 {
		return tools
	}
	return v.robot.Tools
}

// bridge publishes the appliance's own discovery, where its address is another than
// before, and its bridge/info.
func (h *hub) bridge() {
	if url := h.o.URL(); !h.bridged || url != h.url {
		h.bridged, h.url = true, url
		a := discovery.Bridge(h.names, h.o.Version, url, h.announcedBefore("bridge"))
		h.publishDiscovery(a, nil)
		h.remember("bridge", a.IDs)
	}
	info := bridgeInfo{ID: h.o.ID, Version: h.o.Version, Strangers: h.strangers.count(time.Now()), Started: h.o.Started.UTC().Truncate(time.Second)}
	for _, v := range h.views {
		if v.state.Online {
			info.Robots++
		}
	}
	for _, v := range h.agents.views {
		if v.shown == agent.Notification {
			info.Waiting++
		}
	}
	info.Host, info.Taken = h.o.Host()
	if info != h.info {
		h.info = info
		h.putJSON(h.names.Bridge("info"), info, true, 1)
	}
}

// publishDiscovery publishes one device's messages. Where again can make their
// payloads a second time, they are not stored.
func (h *hub) publishDiscovery(a discovery.Announcement, again func(step int) []byte) {
	steps := make([]connection.Message, len(a.Payloads))
	for i, p := range a.Payloads {
		steps[i] = connection.Message{Topic: a.Topic, Payload: p, Retained: true, QoS: 1}
		if again != nil {
			steps[i].Again = func() []byte { return again(i) }
		}
	}
	h.out.PutSteps(steps)
}

func (h *hub) announcedBefore(key string) []string {
	ids, _, err := h.o.Announced.Get(key)
	if err != nil {
		h.o.Log.Warn("what was announced to Home Assistant cannot be read; what has vanished since may stay there", "err", err)
	}
	return ids
}

func (h *hub) remember(key string, ids []string) {
	if !slices.Equal(h.announcedBefore(key), ids) {
		h.o.Announced.PutSoon(key, ids)
	}
}

// forgetUnknown removes the devices of robots that were forgotten while MQTT was off.
func (h *hub) forgetUnknown() {
	for _, key := range h.announcedKeys() {
		if id, err := device.ParseID(key); err == nil && !h.o.Robots.Trusts(id) { // others are the bridge's, or an agent's
			h.forget(id)
		}
	}
}

// announcedKeys are a list, because forgetting one changes the table.
func (h *hub) announcedKeys() []string {
	return slices.Sorted(maps.Keys(maps.Collect(h.o.Announced.All())))
}

// forget removes a robot from the broker and from Home Assistant.
func (h *hub) forget(id device.ID) {
	h.publishDiscovery(discovery.RemovedRobot(h.names, id), nil)
	for _, thing := range []string{"status", "state", "led", "firmware", "mood"} {
		h.out.Put(connection.Message{Topic: h.names.Robot(id, thing), Retained: true, QoS: 1})
	}
	h.o.Announced.DeleteSoon(string(id))
	h.kept.drop(id)
	delete(h.views, id)
}
