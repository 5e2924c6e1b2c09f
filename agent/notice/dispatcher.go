package notice

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
)

const (
	checkEvery     = time.Minute // while a notification waits: the wall clock may have jumped
	mostJump       = 2 * time.Second
	announceWithin = 5 * time.Second
)

// dispatcher is the state of a running Notifier. It is not safe for concurrent use.
type dispatcher struct {
	*Notifier
	robots  robots
	open    map[device.ID]string // the reachable robots, each with its session if that is known
	waiting map[string]*waiting  // all notifications
	holds   map[device.ID]time.Time
	refused map[device.ID]time.Duration // robots that get no offers until then, on the running clock

	lastSeq  uint64             // Seq of the last handled event
	listed   map[device.ID]bool // the robots that were open at listedAt
	listedAt uint64             // Seq when robots were last listed

	wall        time.Time     // both clocks at the same moment, to detect a jump
	running     time.Duration // of the wall clock
	storeDown   bool          // the store fails, which was logged
	storeFailed bool          // the store has failed in this pass
}

// waiting is a notification with the open robots that it was offered to.
type waiting struct {
	Notification
	offered  map[device.ID]bool
	unstored bool // not stored because of a fault
	unsaved  bool // the store has an earlier state
}

func newWaiting(n Notification) *waiting {
	return &waiting{Notification: n, offered: map[device.ID]bool{}}
}

func newDispatcher(n *Notifier, r robots) *dispatcher {
	d := &dispatcher{
		Notifier: n, robots: r, open: map[device.ID]string{}, waiting: map[string]*waiting{},
		holds: map[device.ID]time.Time{}, refused: map[device.ID]time.Duration{},
		wall: n.o.Clock.Now(), running: n.o.Clock.Running(),
	}
	d.reread()
	return d
}

// await returns when there is something to do. It first handles all events published
// until then, so that a robot that just said hello again is not mistaken for its earlier
// session. It returns false at the end of ctx or of the events.
func (d *dispatcher) await(ctx context.Context, events <-chan event.Envelope, alarm <-chan time.Time) bool {
	for wake := false; !wake; {
		select {
		case e, open := <-events:
			if !open {
				return false
			}
			wake = d.handleEvent(e)
		case <-d.o.Timers.changed:
			wake = true
		case <-alarm:
			wake = true
		case <-ctx.Done():
			return false
		}
	}
	for until := d.o.Bus.Seq(); d.lastSeq < until; {
		e, open := <-events
		if !open {
			return false
		}
		d.handleEvent(e)
	}
	return true
}

// reread reads everything, at the start and after missed events. All offers are then
// forgotten: a repeated announcement is better than none.
func (d *dispatcher) reread() {
	ids := d.robots.Open()
	d.listedAt = d.o.Bus.Seq()
	open := map[device.ID]string{}
	d.listed = map[device.ID]bool{}
	for _, id := range ids {
		open[id], d.listed[id] = d.open[id], true
	}
	d.open = open
	clear(d.holds)
	clear(d.refused)
	d.refresh()
	for _, w := range d.waiting {
		clear(w.offered)
	}
}

func (d *dispatcher) refresh() {
	stored := map[string]bool{}
	for _, n := range d.o.Store.all() {
		stored[n.ID] = true
		if w, known := d.waiting[n.ID]; known {
			if w.unsaved {
				n.State = w.State
			}
			w.Notification = n
			continue
		}
		d.waiting[n.ID] = newWaiting(n)
	}
	maps.DeleteFunc(d.waiting, func(id string, w *waiting) bool {
		if stored[id] || w.unstored {
			return false
		}
		_, there, err := d.o.Store.lookup(id) // an unreadable store says nothing
		return err == nil && !there
	})
}

// handleEvent applies an event, and reports whether there may be something to do.
func (d *dispatcher) handleEvent(e event.Envelope) bool {
	d.lastSeq = max(d.lastSeq, e.Seq)
	switch ev := e.Event.(type) {
	case event.RobotOnline, event.RobotOffline, event.RobotConnected, event.RobotDisconnected:
		d.session(e)
		return true
	case event.Notification:
		return d.received(e, ev)
	case event.NotificationChanged:
		return d.changed(ev)
	case event.Missed, event.RobotAdopted: // an adopted robot may be connected already
		d.reread()
		return true
	}
	return false
}

// session handles a session that has just said hello or has ended. Notifications that
// were offered to it and not announced are offered to the next one. If the robot was
// listed after the event, it already has its next session.
func (d *dispatcher) session(e event.Envelope) {
	if e.Seq > d.listedAt || !d.listed[e.Robot] {
		d.closed(e.Robot)
	}
	if _, opened := e.Event.(event.RobotOnline); opened {
		d.open[e.Robot] = e.Session
		return
	}
	// A robot connected by MQTT is reachable without a session.
	if _, known := d.open[e.Robot]; !known && slices.Contains(d.robots.Open(), e.Robot) {
		d.open[e.Robot] = ""
	}
}

func (d *dispatcher) closed(id device.ID) {
	delete(d.open, id)
	delete(d.holds, id)
	delete(d.refused, id)
	for _, w := range d.waiting {
		delete(w.offered, id)
	}
}

// received adds a new notification, unless refresh has already read it.
func (d *dispatcher) received(e event.Envelope, ev event.Notification) bool {
	n, there, err := d.o.Store.lookup(ev.ID)
	switch {
	case err != nil:
		d.fault(err)
		n = Notification{ID: ev.ID, Text: ev.Text, Urgency: ev.Urgency, ActionURL: ev.ActionURL, Robot: e.Robot, SessionID: e.Session,
			Speak: ev.Speak, Received: e.At.Round(0), Expires: ev.ExpiresAt}
	case !there:
		return false
	}
	known, ok := d.waiting[ev.ID]
	if ok && known.Received.Equal(n.Received) && known.Text == n.Text {
		return false
	}
	// Earlier reports of robots were about the previous notification of this id.
	n.State = Received
	d.waiting[ev.ID] = newWaiting(n)
	return true
}

// changed applies a step of a notification, as a session or a screen reports it.
func (d *dispatcher) changed(e event.NotificationChanged) bool {
	w, known := d.waiting[e.ID]
	if !known {
		return false
	}
	switch e.State {
	case Acknowledged, Expired:
		delete(d.waiting, e.ID)
	case Shown, Spoken:
		if step(e.State) > step(w.State) {
			w.State, w.unsaved = e.State, true
			d.save(w)
		}
	}
	return true
}

func (d *dispatcher) save(w *waiting) {
	_, err := d.o.Store.Change(w.ID, w.State)
	if err == nil || errors.Is(err, ErrNotFound) {
		w.unsaved = false
		return
	}
	d.fault(err)
}

// dispatchDue does everything that is due, and returns the time until the next call.
func (d *dispatcher) dispatchDue(ctx context.Context) (wait time.Duration, some bool) {
	d.storeFailed = false
	d.followClock()
	d.fault(d.o.Timers.correctDue())
	for _, due := range d.o.Timers.dueTimers() {
		d.ring(due)
	}
	d.retryStore()
	d.expire()
	d.offer(ctx)
	d.holdChannels()
	d.storeDown = d.storeFailed
	return d.next()
}

// followClock corrects all times if the wall clock has jumped since the last call.
func (d *dispatcher) followClock() {
	wall, running := d.o.Clock.Now(), d.o.Clock.Running()
	by := wall.Sub(d.wall) - (running - d.running)
	if by.Abs() <= mostJump {
		return
	}
	d.wall, d.running = wall, running
	d.fault(d.o.Timers.clockJumped(by))
	d.o.Store.clockJumped(by)
	d.refresh()
}

// ring turns a due timer into a notification, which is stored before the timer is
// removed, so that a crash cannot lose it. A robot that rings by itself needs no
// notification.
func (d *dispatcher) ring(r agent.Timer) {
	d.o.Timers.markRung(r.ID)
	d.o.Bus.Publish(r.Robot, "", event.TimerRang{ID: r.ID, Text: r.Text, OnRobot: r.OnRobot})
	if r.OnRobot {
		return
	}
	now := d.o.Clock.Now()
	n, err := Notification{ID: r.ID, Text: r.Text, Urgency: UrgencyHigh, Robot: r.Robot, Speak: true}.prepare(now)
	if err != nil {
		d.fault(err) // the table was edited by hand
		return
	}
	w := newWaiting(n)
	d.waiting[n.ID] = w
	d.persist(w)
	d.publish(n)
}

func (d *dispatcher) persist(w *waiting) {
	dropped, err := d.o.Store.insert(w.Notification, d.o.Clock.Now())
	d.fault(err)
	w.unstored = err != nil
	d.publishExpired(dropped...)
}

// retryStore stores what could not be stored, and removes rung timers.
func (d *dispatcher) retryStore() {
	for _, w := range d.waiting {
		if w.unstored && !w.announced() {
			d.persist(w)
		}
		if w.unsaved {
			d.save(w)
		}
	}
	for _, id := range d.o.Timers.rung() {
		if w, waits := d.waiting[id]; waits && w.unstored && !w.announced() {
			continue // the timer is its only stored copy
		}
		d.fault(d.o.Timers.remove(id))
	}
}

func (d *dispatcher) expire() {
	now := d.o.Clock.Now()
	for id, w := range d.waiting {
		if now.Before(w.Expires) {
			continue
		}
		_, err := d.o.Store.Change(id, Expired)
		switch {
		case err == nil || w.unstored:
			d.publishExpired(w.Notification)
		case !errors.Is(err, ErrNotFound): // not found: it was already ended and published elsewhere
			d.fault(err)
			continue
		}
		delete(d.waiting, id)
	}
}

// offer hands unannounced notifications to robots, urgent ones first.
func (d *dispatcher) offer(ctx context.Context) {
	list := slices.Collect(maps.Values(d.waiting))
	slices.SortFunc(list, func(a, b *waiting) int {
		return cmp.Or(b.urgent()-a.urgent(), a.Received.Compare(b.Received), cmp.Compare(a.ID, b.ID))
	})
	for _, w := range list {
		if w.announced() {
			continue
		}
		for _, id := range d.recipients(w) {
			if _, open := d.open[id]; open && !w.offered[id] && d.o.Clock.Running() >= d.refused[id] {
				d.announce(ctx, id, w)
			}
		}
	}
}

// urgent is 1 for a notification that interrupts, and otherwise 0.
func (w *waiting) urgent() int {
	if w.Urgency == UrgencyHigh {
		return 1
	}
	return 0
}

// recipients returns the robots for a notification. One for all robots is offered to
// those with an open channel. Others get it only after those have closed their
// channels without announcing it.
func (d *dispatcher) recipients(w *waiting) []device.ID {
	switch {
	case w.Robot != "":
		return []device.ID{w.Robot}
	case w.SessionID != "":
		for id, session := range d.open {
			if session == w.SessionID {
				return []device.ID{id}
			}
		}
		return nil
	case len(w.offered) > 0:
		return nil
	}
	return slices.Sorted(maps.Keys(d.open))
}

func (d *dispatcher) announce(ctx context.Context, id device.ID, w *waiting) {
	ctx, cancel := context.WithTimeout(ctx, announceWithin)
	defer cancel()
	err := d.robots.Announce(ctx, id, Announcement{ID: w.ID, Text: w.Text, Speak: w.Speak, Urgent: w.Urgency == UrgencyHigh})
	switch {
	case err == nil:
		w.offered[id] = true
	case slices.Contains(d.robots.Open(), id):
		d.refused[id] = d.o.Clock.Running() + checkEvery
	default:
		d.closed(id)
	}
}

// holdChannels holds the channels of robots that will soon announce a timer.
func (d *dispatcher) holdChannels() {
	for id := range d.open {
		until := d.o.Timers.holdUntil(id)
		if until.Sub(d.holds[id]).Abs() > mostDrift {
			d.holds[id] = until
			d.robots.KeepOpen(id, until)
		}
	}
}

// next returns the time until the next call. It is short while a notification waits,
// because clocks jump and stores recover.
func (d *dispatcher) next() (wait time.Duration, some bool) {
	wait, some = d.o.Timers.next()
	if !some || wait > checkEvery {
		wait = checkEvery
	}
	now := d.o.Clock.Now()
	for _, w := range d.waiting {
		some = true
		if left := w.Expires.Sub(now); left > 0 { // otherwise the store has failed to end it
			wait = min(wait, left)
		}
	}
	return wait, some
}

// fault logs an error of the store, once until the store works again.
func (d *dispatcher) fault(err error) {
	if err == nil {
		return
	}
	if !d.storeDown {
		d.o.Log.Error("notifications and timers cannot be stored; they are announced all the same", "err", err)
	}
	d.storeDown, d.storeFailed = true, true
}
