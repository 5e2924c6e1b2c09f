package notice

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"perch/device"
	"perch/event"
)

// Announcement is something to be told by one robot.
type Announcement struct {
	ID     string // of the notification
	Text   string
	Speak  bool // else it is only shown
	Urgent bool // it may interrupt
}

// robots are those that can tell people something.
type robots interface {
	// Open are the robots whose channel is open and whose hello was answered.
	Open() []device.ID
	// Announce hands something to the robot's session, which publishes
	// NotificationChanged as shown when it shows, and as spoken when it was
	// played to its end. An announcement whose id waits there already takes
	// its place. An error is a channel that is closed.
	Announce(ctx context.Context, id device.ID, a Announcement) error
	// Hold keeps the robot's channel open until then; the zero time lets go.
	Hold(id device.ID, until time.Time)
}

// HeraldOptions are what a herald works with.
type Options struct {
	Notices *Store
	Timers  *Timers
	Bus     *event.Bus
	Clock   clock // nil is the machine's
	Log     *slog.Logger
}

// Herald tells people what there is to tell: notifications, and timers at
// their time. What no robot can tell now it tells by the one that next says
// hello. Each is told at least once, and not again once it was told.
type Notifier struct {
	notices *Store
	timers  *Timers
	bus     *event.Bus
	clock   clock
	log     *slog.Logger
}

// NewHerald returns a herald that has yet to be run.
func New(o Options) *Notifier {
	if o.Clock == nil {
		o.Clock = newMachine()
	}
	return &Notifier{notices: o.Notices, timers: o.Timers, bus: o.Bus, clock: o.Clock, log: o.Log}
}

// Notify keeps a notification durably, publishes it and returns it with its
// id. It is told by its robot or, where none is named, by every robot whose
// channel is open. Where none is, it waits for the next hello. At most 20 wait
// for one robot; then the oldest of low urgency expires, and else the oldest.
// Notify wraps ErrNotice for what cannot be a notification.
func (h *Notifier) Notify(n Notification) (Notification, error) {
	now := h.clock.Now()
	n, err := n.prepare(now)
	if err != nil {
		return Notification{}, err
	}
	gone, err := h.notices.keep(n, now)
	if err != nil {
		return Notification{}, err
	}
	h.publish(n)
	h.expired(gone...)
	return n, nil
}

// NotifyAll is Notify for a text that every robot speaks.
func (h *Notifier) NotifyAll(text, urgency string) error {
	_, err := h.Notify(Notification{Text: text, Urgency: urgency, Speak: true})
	return err
}

func (h *Notifier) publish(n Notification) {
	h.bus.Publish(n.Robot, n.SessionID, n.Event())
}

func (h *Notifier) expired(gone ...Notification) {
	for _, n := range gone {
		h.bus.Publish(n.Robot, "", event.NotificationChanged{ID: n.ID, State: Expired})
	}
}

// Acknowledge ends a notification that somebody has taken note of. It returns
// ErrNoNotice where there is none.
func (h *Notifier) Acknowledge(id string) error {
	n, err := h.notices.Change(id, Acknowledged)
	if err != nil {
		return err
	}
	h.bus.Publish(n.Robot, "", event.NotificationChanged{ID: id, State: Acknowledged})
	return nil
}

// Run tells until ctx ends or the bus is closed, and returns nil then. Faults
// of the store are logged and waited out: what cannot be written is told all
// the same.
func (h *Notifier) Run(ctx context.Context, r robots) error {
	ctx, stop := context.WithCancel(ctx)
	events := make(chan event.Envelope)
	var pump sync.WaitGroup
	defer pump.Wait()
	defer stop()
	reader := h.bus.Read()
	pump.Go(func() { reader.Pump(ctx, events) })
	t := newTelling(h, r)
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		if wait, some := t.pass(ctx); some {
			alarm.Reset(wait)
		} else {
			alarm.Stop()
		}
		if !t.await(ctx, events, alarm.C) {
			return nil
		}
	}
}

// await returns when there is something to do, and all that was published
// until then is known: a robot that has just said hello again must not be
// taken for the session it had before. It reports false at the end.
func (t *telling) await(ctx context.Context, events <-chan event.Envelope, alarm <-chan time.Time) bool {
	for news := false; !news; {
		select {
		case e, open := <-events:
			if !open {
				return false
			}
			news = t.take(e)
		case <-t.timers.changed:
			news = true
		case <-alarm:
			news = true
		case <-ctx.Done():
			return false
		}
	}
	for until := t.bus.Seq(); t.seen < until; {
		e, open := <-events
		if !open {
			return false
		}
		t.take(e)
	}
	return true
}

// fault logs what goes wrong in the store, once until all is well again.
func (t *telling) fault(err error) {
	if err == nil {
		return
	}
	if !t.ailing {
		t.log.Error("what there is to tell cannot be kept; it is told all the same", "err", err)
	}
	t.ailing, t.failed = true, true
}
