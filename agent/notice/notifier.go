package notice

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
)

// Announcement is a notification for one robot.
type Announcement struct {
	ID     string // ID of the notification
	Text   string
	Speak  bool // if false, the text is only shown
	Urgent bool // whether the announcement may interrupt the robot
}

// robots makes robots announce notifications to people.
type robots interface {
	// Reachable returns the robots that can be reached: their channel is open and they have received
	// the response to their hello, or they are connected by MQTT.
	Reachable() []device.ID
	// Announce passes an announcement to the robot's session. The session publishes
	// NotificationChanged with Shown when the robot has shown the text, and with Spoken
	// when the speech has been played completely. The announcement replaces a waiting
	// announcement with the same ID. Announce returns an error if the robot cannot be
	// reached.
	Announce(ctx context.Context, id device.ID, a Announcement) error
	// KeepOpen keeps the robot's channel open until a time. The zero time ends the hold.
	KeepOpen(id device.ID, until time.Time)
}

// Options configure a Notifier. All fields but Clock are required.
type Options struct {
	Store  *Store
	Timers *Timers
	Bus    *event.Bus
	Clock  clock                    // nil means the system clock
	Missed func(agent.Timer) string // returns the sentence for an alarm that did not ring because the appliance was off
	Log    *slog.Logger
}

// Notifier makes robots announce notifications, and timers when they ring. A notification
// that no reachable robot announces waits for the next robot that connects. It is offered
// until a robot reports the announcement, a person acknowledges it, or it expires.
type Notifier struct{ o Options }

// New returns a notifier. Run starts it.
func New(o Options) *Notifier {
	o.Clock = cmp.Or[clock](o.Clock, systemClock{time.Now()})
	return &Notifier{o}
}

// Notify stores a notification durably, publishes it and returns it with its ID. At most 40
// notifications wait for one robot or session, and at most 500 are stored: one more makes the
// oldest of low urgency expire, or else the oldest of all. Errors wrap ErrInvalid or come from
// the store.
func (s *Notifier) Notify(n Notification) (Notification, error) {
	now := s.o.Clock.Now()
	n, err := n.prepare(now)
	if err != nil {
		return Notification{}, err
	}
	dropped, err := s.o.Store.insert(n, now)
	if err != nil {
		return Notification{}, err
	}
	s.publish(n)
	s.publishExpired(dropped...)
	return n, nil
}

// NotifyAll makes all robots speak a text. An empty urgency means UrgencyNormal.
func (s *Notifier) NotifyAll(text, urgency string) error {
	_, err := s.Notify(Notification{Text: text, Urgency: urgency, Speak: true})
	return err
}

func (s *Notifier) publish(n Notification) {
	s.o.Bus.Publish(n.Robot, n.SessionID, n.Event())
}

// publishExpired publishes that notifications have expired.
func (s *Notifier) publishExpired(expired ...Notification) {
	for _, n := range expired {
		s.o.Bus.Publish(n.Robot, "", event.NotificationChanged{ID: n.ID, State: Expired})
	}
}

// Acknowledge ends a notification durably, because a person has noticed it. It returns
// ErrNotFound if the notification is not stored.
func (s *Notifier) Acknowledge(id string) error {
	n, err := s.o.Store.Change(id, Acknowledged)
	if err != nil {
		return err
	}
	s.o.Bus.Publish(n.Robot, "", event.NotificationChanged{ID: id, State: Acknowledged})
	return nil
}

// Run announces notifications until ctx ends or the bus is closed, and returns nil. It logs
// failures of the store and retries; notifications that cannot be stored are still announced.
func (s *Notifier) Run(ctx context.Context, r robots) error {
	events, stop := s.o.Bus.Read().Events(ctx)
	defer stop()
	d := newDispatcher(s, r)
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		if wait, ok := d.dispatchDue(ctx); ok {
			alarm.Reset(wait)
		} else {
			alarm.Stop()
		}
		if !d.await(ctx, events, alarm.C) {
			return nil
		}
	}
}
