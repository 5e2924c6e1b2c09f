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
	maxNotices     = 500       // remembered notifications
	noticeLifetime = time.Hour // how long the message about a notification may wait for the broker
)

// notices publishes a message for each step in the life of a notification, such as received, shown or spoken. It
// publishes on the topic of the robot, and on the topic of the bridge if the notification is for all robots. It
// remembers the notifications, because events about later steps contain only an ID.
type notices struct {
	publisher
	o     *Options
	byID  map[string]notice.Notification
	order []string // keys of byID, oldest first
	// queued holds the IDs of notifications that came by an MQTT command while their robot was offline, and whose outcome
	// was not published yet.
	queued map[string]bool
}

func newNotices(o *Options, p publisher) *notices {
	return &notices{publisher: p, o: o, byID: map[string]notice.Notification{}, queued: map[string]bool{}}
}

// reload remembers the open notifications of the store. Their events were published before the appliance started, or
// were lost.
func (n *notices) reload(now time.Time) {
	for _, open := range n.o.Notices.Open(now) {
		n.remember(open)
	}
}

// remember adds a notification, and forgets the oldest if there are more than maxNotices.
func (n *notices) remember(added notice.Notification) {
	if _, known := n.byID[added.ID]; !known {
		n.order = append(n.order, added.ID)
	}
	n.byID[added.ID] = added
	if len(n.order) > maxNotices {
		delete(n.byID, n.order[0])
		n.order = n.order[1:]
	}
}

// publishNew publishes a new notification. mirrored tells whether the notification is for a single robot that is
// mirrored.
func (n *notices) publishNew(e event.Envelope, ev event.Notification, mirrored bool) {
	received := notice.Notification{ID: ev.ID, Robot: e.Robot, Text: ev.Text, Urgency: ev.Urgency, ActionURL: ev.ActionURL, Speak: ev.Speak,
		Expires: ev.ExpiresAt}
	n.remember(received)
	n.publish(e, notice.Received, received, mirrored)
}

// publishStep publishes a later step in the life of a notification. If an MQTT command queued the
// notification and this is its last step, it also publishes the outcome of the command.
func (n *notices) publishStep(e event.Envelope, ev event.NotificationChanged, mirrored bool) {
	changed, known := n.byID[ev.ID]
	if !known { // it was forgotten because it is old
		changed = notice.Notification{ID: ev.ID, Robot: e.Robot}
	}
	n.publish(e, discovery.ListedOrOther(ev.State, discovery.NotificationTypes()), changed, mirrored)
	if !n.queued[ev.ID] || ev.State == notice.Shown && changed.Speak {
		return
	}
	delete(n.queued, ev.ID)
	c := event.Command{Thing: "notify", State: event.CommandDone}
	if ev.State == notice.Expired {
		c = event.Command{Thing: "notify", State: event.CommandRejected, Reason: "it has waited too long"}
	}
	n.o.Bus.Publish(e.Robot, "", c)
}

// publish publishes a message about a notification. The message waits for the broker for up to noticeLifetime;
// the message about the step notice.Received waits at most until the notification expires.
func (n *notices) publish(e event.Envelope, step string, about notice.Notification, mirrored bool) {
	expires := e.At.Add(noticeLifetime)
	if step == notice.Received && !about.Expires.IsZero() && about.Expires.Before(expires) {
		expires = about.Expires
	}
	payload := encode(state.Notification{Type: step, ID: about.ID, Text: about.Text, Urgency: about.Urgency, ActionURL: about.ActionURL,
		Robot: string(e.Robot)})
	if about.Robot == "" {
		n.out.AddNotice(connection.Message{Topic: n.topics.Bridge("notification"), Payload: payload, QoS: 1}, expires)
	}
	if mirrored {
		n.out.AddNotice(connection.Message{Topic: n.topics.Robot(e.Robot, "notification"), Payload: payload, QoS: 1}, expires)
	}
}
