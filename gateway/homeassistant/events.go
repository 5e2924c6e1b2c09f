package homeassistant

import (
	"context"
	"encoding/json"
	"time"

	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/homeassistant/connection"
	"perch/gateway/homeassistant/discovery"
	"perch/limit"
	"perch/plain"
)

// happening is a message on one of a robot's event topics.
type happening struct {
	Type    string          `json:"event_type"`
	Name    string          `json:"name,omitempty"` // of what the list of types does not have
	Session string          `json:"session_id,omitempty"`
	Text    *string         `json:"text,omitempty"` // only where transcripts are shared
	ID      string          `json:"id,omitempty"`
	Answer  string          `json:"answer,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	End     string          `json:"end,omitempty"`
	Thing   string          `json:"thing,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`

	// Of an entry of the diary: its number and hash, and whose it is.
	Seq   uint64 `json:"seq,omitempty"`
	Hash  string `json:"hash,omitempty"`
	Agent string `json:"agent,omitempty"`
}

// happened brings in what an event says of a robot, and does what it calls for.
func (h *hub) happened(ctx context.Context, v *view, e event.Envelope) {
	id := v.robot.ID
	switch ev := e.Event.(type) {
	case event.RobotOnline:
		v.channel = channel{}
	case event.RobotOffline, event.RobotConnected, event.RobotDisconnected:
		v.listed, v.usedTools = false, false
	case event.RobotSeen:
		h.checkedIn(v, e.At)
		if !ev.Waiting { // else it is another client that names itself by the robot's MAC
			h.endDownload(v, e.At)
		}
	case event.RobotRenamed, event.Changed: // by its owner
		h.look(e.At)
	case event.RobotStatus:
		v.readings.reported(ev)
		v.dirty = true
	case event.ToolsListed:
		v.listed = true
		h.announce(v)
		h.release(ctx, v)
		h.read(ctx, v)
	case event.ToolStatus:
		v.usedTools = v.usedTools || ev.Status != event.ToolRunning
		h.putJSON(h.names.Robot(id, "tool"), newToolDocument(e.Session, ev), false, 0)
	case event.TurnEnded:
		if v.usedTools { // a person may have asked for it to be louder
			h.read(ctx, v)
		}
		v.usedTools = false
	case event.Heard:
		if v.lastHeard = h.shared(ev.Text); v.lastHeard != nil {
			v.dirty = true
		}
	case event.Perceived:
		h.perceive(v, ev, e.At)
	case event.Mood:
		if v.senses.Add("mood") {
			h.announce(v)
		}
		if v.feel(ev) {
			h.showMood(v, e.At)
		}
	case event.Gesture:
		h.gesture(v, ev, e.At)
	case event.Recorded:
		h.putJSON(h.names.Robot(id, "diary"), h.diary(ev), false, 1)
	case event.FirmwareProgress:
		if ev.Size > 0 {
			v.download = download{int(100 * min(max(ev.Bytes, 0), ev.Size) / ev.Size), e.At.Add(downloadLives)}
			h.showUpdate(v, e.At)
		}
	case event.FirmwareOffered, event.FirmwareRolledBack:
		h.endDownload(v, e.At)
	case event.FirmwareInstalled:
		h.checkedIn(v, e.At)
		h.installed(v, e.At, event.Command{State: event.CommandDone})
	case event.FirmwareFailed:
		h.installed(v, e.At, event.Command{State: event.CommandRejected, Reason: plain.Clip(ev.Why, 300)})
	}
	if c, ok := v.conversation(e.Event, h.shared); ok {
		c.Session = e.Session
		h.putJSON(h.names.Robot(id, "conversation"), c, false, 1)
	}
}

// checkedIn reads what the registry has of a robot.
func (h *hub) checkedIn(v *view, at time.Time) {
	r, err := h.o.Robots.Get(v.robot.ID)
	if err != nil {
		return
	}
	if r.Board != v.robot.Board { // another kind of robot under the same MAC
		v.senses, v.readings, v.led = discovery.NewSenses(nil), readings{}, nil
	}
	v.robot, v.dirty = r, true
	h.announce(v)
	h.available(v, at)
}

// conversation is what belongs on the topic of that name.
func (v *view) conversation(e event.Event, shared func(string) *string) (c happening, ok bool) {
	switch e := e.(type) {
	case event.ListeningStarted:
		first := !v.woken
		v.woken = true
		return happening{Type: "wake"}, first
	case event.Heard:
		return happening{Type: "heard", Text: shared(e.Text)}, true
	case event.Misheard:
		return happening{Type: "misheard"}, true
	case event.Said:
		return happening{Type: "replied", Text: shared(e.Text)}, true
	case event.Asked:
		return happening{Type: "asked", ID: e.ID, Text: shared(e.Text)}, true
	case event.Answered:
		return happening{Type: "answered", ID: e.ID, Answer: e.Answer}, true
	case event.ToolStatus:
		return happening{Type: "tool_called", ID: e.ID, Tool: e.Name}, e.Status == event.ToolRunning
	case event.TurnEnded:
		return happening{Type: "turn_ended", End: e.End, Reason: e.Reason}, true
	case event.Fault:
		return happening{Type: "error", Name: e.Part, Reason: e.Cause}, true
	case event.Command:
		return happening{Type: discovery.Listed(e.State, discovery.ConversationTypes()), Thing: e.Thing, Reason: e.Reason}, true
	case event.TimerRang:
		return happening{Type: discovery.Other, Name: event.Kind(e), ID: e.ID}, true
	}
	return c, false
}

// shared is a transcript, where it may leave the appliance.
func (h *hub) shared(text string) *string {
	if !h.o.ShareTranscripts {
		return nil
	}
	return &text
}

// Limits of an event of perception.
const mostIdentity = 100 // bytes

// perceive publishes what a robot sensed, and keeps what lasts.
func (h *hub) perceive(v *view, p event.Perceived, at time.Time) {
	if len(p.Name) > limit.Word || len(p.Data) > limit.Question || len(p.Data) > 0 && !json.Valid(p.Data) {
		h.refused.log(v.robot.ID, at, "the robot perceived something that is too big, or no JSON; it is not published", "event",
			plain.Clip(p.Name, limit.Word))
		return
	}
	news := v.senses.Add("perception")
	switch p.Name {
	case "face_detected":
		v.face, v.dirty = new(true), true
		news = v.senses.Add("face") || news
	case "face_lost":
		v.face, v.identity, v.dirty = new(false), nil, true
		news = v.senses.Add("face") || news
	case "face_recognized":
		var who struct{ Identity string }
		if json.Unmarshal(p.Data, &who) == nil && len(who.Identity) <= mostIdentity {
			v.face, v.identity, v.dirty = new(true), known(who.Identity), true
			news = v.senses.Add("identity") || news
		}
	case "head_pet_started", "head_pet_ended":
		news = v.senses.Add("touch") || news
	}
	if news {
		h.announce(v) // before the event, or Home Assistant does not know where it belongs
	}
	h.putJSON(h.names.Robot(v.robot.ID, "perception"), happening{Type: discovery.Listed(p.Name, discovery.PerceptionTypes()), Name: p.Name, Data: p.Data}, false, 1)
	switch {
	case p.Name == "head_pet_started" && v.pressed.IsZero():
		v.pressed, v.held = at, false
		h.touch(v, "press_start")
	case p.Name == "head_pet_ended" && !v.pressed.IsZero():
		if v.held {
			h.touch(v, "long_press_end")
		}
		v.pressed = time.Time{}
		h.touch(v, "press_end")
	}
}

func (h *hub) touch(v *view, what string) {
	h.putJSON(h.names.Robot(v.robot.ID, "touch"), happening{Type: what}, false, 1)
}

// notices is where notifications are kept.
type notices interface {
	Open(now time.Time) []notice.Notification
}

// recentNotices are the texts of notifications that were published, for their
// later steps hold an id alone.
type recentNotices struct {
	byID  map[string]publishedNotice
	order []string
}

type publishedNotice struct {
	robot device.ID
	event.Notification
}

// mostRemembered bounds the remembered texts of notifications.
const mostRemembered = 500

// noticeLives is how long what became of a notification is worth telling.
const noticeLives = time.Hour

// step is one in a notification's life, as it is published.
type step struct {
	Type      string `json:"event_type"`
	ID        string `json:"id"`
	Text      string `json:"text"`
	Urgency   string `json:"urgency"`
	ActionURL string `json:"action_url"`
	Robot     string `json:"robot,omitempty"` // that did it
}

// publishNotice publishes a notification and what becomes of it: on its robot's
// topic, and on the bridge's for one that is for all.
func (h *hub) publishNotice(e event.Envelope) {
	switch ev := e.Event.(type) {
	case event.Notification:
		h.notices.remember(publishedNotice{e.Robot, ev})
		h.step(e, notice.Received, publishedNotice{e.Robot, ev})
	case event.NotificationChanged:
		n, known := h.notices.byID[ev.ID]
		if !known { // from before this run, or long ago
			n = publishedNotice{e.Robot, event.Notification{ID: ev.ID}}
		}
		h.step(e, discovery.Listed(ev.State, discovery.NotificationTypes()), n)
		h.endWaiting(e.Robot, ev)
	}
}

// rereadNotices takes the notifications that are kept, which were published in an
// earlier run or in events that were lost.
func (h *hub) rereadNotices(now time.Time) {
	for _, n := range h.o.Notices.Open(now) {
		h.notices.remember(publishedNotice{n.Robot, n.Event()})
	}
}

// endWaiting publishes what became of a notification for a robot that was offline.
func (h *hub) endWaiting(id device.ID, n event.NotificationChanged) {
	if !h.waiting[n.ID] || n.State == notice.Shown && h.notices.byID[n.ID].Speak {
		return
	}
	delete(h.waiting, n.ID)
	c := event.Command{Thing: "notify", State: event.CommandDone}
	if n.State == notice.Expired {
		c = event.Command{Thing: "notify", State: event.CommandRejected, Reason: "it has waited too long"}
	}
	h.o.Bus.Publish(id, "", c)
}

func (h *hub) step(e event.Envelope, state string, n publishedNotice) {
	expires := e.At.Add(noticeLives)
	if state == notice.Received && !n.ExpiresAt.IsZero() && n.ExpiresAt.Before(expires) {
		expires = n.ExpiresAt
	}
	payload := encode(step{state, n.ID, n.Text, n.Urgency, n.ActionURL, string(e.Robot)})
	if n.robot == "" {
		h.out.PutNotice(connection.Message{Topic: h.names.Bridge("notification"), Payload: payload, QoS: 1}, expires)
	}
	if h.views[e.Robot] != nil {
		h.out.PutNotice(connection.Message{Topic: h.names.Robot(e.Robot, "notification"), Payload: payload, QoS: 1}, expires)
	}
}

func (n *recentNotices) remember(one publishedNotice) {
	if _, again := n.byID[one.ID]; !again {
		n.order = append(n.order, one.ID)
	}
	n.byID[one.ID] = one
	if len(n.order) > mostRemembered {
		delete(n.byID, n.order[0])
		n.order = n.order[1:]
	}
}
