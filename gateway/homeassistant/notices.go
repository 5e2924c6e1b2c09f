package homeassistant

import (
	"time"

	"perch/agent/notice"
	"perch/event"
	"perch/gateway/homeassistant/connection"
	"perch/gateway/homeassistant/discovery"
	"perch/gateway/homeassistant/state"
)

const (
	maxNotices    = 500       // notifications whose texts are remembered
	noticeExpires = time.Hour // a step in a notification's life is not published later
)

// notices publishes notifications and the steps in their lives: on their robot's topic, and on the
// bridge's those for all robots. It remembers their texts, because later events hold an id alone.
type notices struct {
	publisher
	o     *Options
	byID  map[string]notice.Notification
	order []string
	// queued are ids of notifications that were commanded for a robot that was offline.
	queued map[string]bool
}

func newNotices(o *Options, p publisher) *notices {
	return &notices{publisher: p, o: o, byID: map[string]notice.Notification{}, queued: map[string]bool{}}
}

// reread remembers the stored notifications, which were published in an earlier run or in events
// that were lost.
func (n *notices) reread(now time.Time) {
	for _, one := range n.o.Notices.Open(now) {
		n.remember(one)
	}
}

func (n *notices) remember(one notice.Notification) {
	if _, known := n.byID[one.ID]; !known {
		n.order = append(n.order, one.ID)
	}
	n.byID[one.ID] = one
	if len(n.order) > maxNotices {
		delete(n.byID, n.order[0])
		n.order = n.order[1:]
	}
}

// received publishes a new notification. mirrored tells whether its robot is.
func (n *notices) received(e event.Envelope, ev event.Notification, mirrored bool) {
	one := notice.Notification{ID: ev.ID, Robot: e.Robot, Text: ev.Text, Urgency: ev.Urgency, ActionURL: ev.ActionURL, Speak: ev.Speak,
		Expires: ev.ExpiresAt}
	n.remember(one)
	n.publish(e, notice.Received, one, mirrored)
}

// changed publishes a step in a notification's life, and ends the command that has waited for it.
func (n *notices) changed(e event.Envelope, ev event.NotificationChanged, mirrored bool) {
	one, known := n.byID[ev.ID]
	if !known { // from long ago
		one = notice.Notification{ID: ev.ID, Robot: e.Robot}
	}
	n.publish(e, discovery.Listed(ev.State, discovery.NotificationTypes()), one, mirrored)
	if !n.queued[ev.ID] || ev.State == notice.Shown && one.Speak {
		return
	}
	delete(n.queued, ev.ID)
	c := event.Command{Thing: "notify", State: event.CommandDone}
	if ev.State == notice.Expired {
		c = event.Command{Thing: "notify", State: event.CommandRejected, Reason: "it has waited too long"}
	}
	n.o.Bus.Publish(e.Robot, "", c)
}

func (n *notices) publish(e event.Envelope, step string, one notice.Notification, mirrored bool) {
	expires := e.At.Add(noticeExpires)
	if step == notice.Received && !one.Expires.IsZero() && one.Expires.Before(expires) {
		expires = one.Expires
	}
	payload := encode(state.Notification{Type: step, ID: one.ID, Text: one.Text, Urgency: one.Urgency, ActionURL: one.ActionURL, Robot: string(e.Robot)})
	if one.Robot == "" {
		n.out.AddNotice(connection.Message{Topic: n.topics.Bridge("notification"), Payload: payload, QoS: 1}, expires)
	}
	if mirrored {
		n.out.AddNotice(connection.Message{Topic: n.topics.Robot(e.Robot, "notification"), Payload: payload, QoS: 1}, expires)
	}
}
