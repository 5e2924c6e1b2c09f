package notice

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"perch/device"
	"perch/event"
)

// Announcement is a notification for one robot.
type Announcement struct {
	ID     string // of the notification
	Text   string
	Speak  bool // if false, it is only shown
	Urgent bool // it may interrupt
}

// robots announce notifications to people.
type robots interface {
	// Open lists the reachable robots: those whose channel is open and whose hello was
	// answered, and those connected by MQTT.
	Open() []device.ID
	// Announce passes an announcement to the robot's session, which publishes
	// NotificationChanged: shown when the robot shows it, spoken when it was played
	// completely. It replaces a waiting announcement of the same id. Announce fails if
	// the channel is closed.
	Announce(ctx context.Context, id device.ID, a Announcement) error
	// KeepOpen keeps the robot's channel open until then. The zero time ends the hold.
	KeepOpen(id device.ID, until time.Time)
}

// Options of a Notifier.
type Options struct {
	Store  *Store
	Timers *Timers
	Bus    *event.Bus
	Clock  clock // nil means the system clock
	Log    *slog.Logger
}

// Notifier has robots announce notifications, and timers when they ring. A
// notification that no connected robot announces waits for the next robot that
// says hello. Each is announced at least once, and not again once a robot has
// reported it as announced.
type Notifier struct{ o Options }

// New returns a notifier that is not running yet.
func New(o Options) *Notifier {
	o.Clock = cmp.Or[clock](o.Clock, systemClock{time.Now()})
	return &Notifier{o}
}

// Notify stores a notification durably, publishes it and returns it with its id.
// The robot it names announces it; without a robot, all robots with an open channel do. It
// waits for the next hello if nobody can announce it. At most 40 wait for one robot: beyond
// that the oldest of low urgency expires, or else the oldest. Errors wrap ErrInvalid.
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

// NotifyAll has all robots speak a text. An empty urgency is normal.
func (s *Notifier) NotifyAll(text, urgency string) error {
	_, err := s.Notify(Notification{Text: text, Urgency: urgency, Speak: true})
	return err
}

func (s *Notifier) publish(n Notification) {
	s.o.Bus.Publish(n.Robot, n.SessionID, n.Event())
}

func (s *Notifier) publishExpired(expired ...Notification) {
	for _, n := range expired {
		s.o.Bus.Publish(n.Robot, "", event.NotificationChanged{ID: n.ID, State: Expired})
	}
}

// Acknowledge ends a notification durably, because a person has noticed it. It may
// return ErrNotFound.
func (s *Notifier) Acknowledge(id string) error {
	n, err := s.o.Store.Change(id, Acknowledged)
	if err != nil {
		return err
	}
	s.o.Bus.Publish(n.Robot, "", event.NotificationChanged{ID: id, State: Acknowledged})
	return nil
}

// Run announces until ctx or the bus ends. It logs faults of the store and retries;
// notifications that cannot be stored are still announced.
func (s *Notifier) Run(ctx context.Context, r robots) error {
	ctx, stop := context.WithCancel(ctx)
	events := make(chan event.Envelope)
	var pump sync.WaitGroup
	defer pump.Wait()
	defer stop()
	reader := s.o.Bus.Read()
	pump.Go(func() { reader.Pump(ctx, events) })
	d := newDispatcher(s, r)
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		if wait, some := d.dispatchDue(ctx); some {
			alarm.Reset(wait)
		} else {
			alarm.Stop()
		}
		if !d.await(ctx, events, alarm.C) {
			return nil
		}
	}
}
