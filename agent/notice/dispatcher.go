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
	// checkInterval is the longest time between two passes (see dispatchDue) while a
	// notification or timer waits, because the wall clock may jump and the store may recover.
	checkInterval   = time.Minute
	maxClockDrift   = 2 * time.Second // a larger difference between the clocks is a jump of the wall clock
	announceTimeout = 5 * time.Second
)

// dispatcher is the state of a running Notifier. It is not safe for concurrent use.
type dispatcher struct {
	*Notifier
	robots  robots
	open    map[device.ID]string        // session of each reachable robot; "" if the robot has none, or the session is unknown
	waiting map[string]*waiting         // the notifications that have not ended, by ID
	holds   map[device.ID]time.Time     // until when a robot's channel is held open
	refused map[device.ID]time.Duration // when, on the running clock, a robot that has refused a notification is offered others again

	lastSeq  uint64             // sequence number of the last handled event
	listed   map[device.ID]bool // the robots that were reachable at listedAt
	listedAt uint64             // sequence number of the bus when the robots were last listed

	wall        time.Time     // wall clock at the start or at its last jump
	running     time.Duration // running clock at the same moment
	storeDown   bool          // whether the store is failing, which has been logged
	storeFailed bool          // whether the store has failed in the current pass
}

// waiting is a notification that has not ended.
type waiting struct {
	Notification
	offered  map[device.ID]bool // the reachable robots that have accepted the notification
	unstored bool               // whether the notification could not be stored
	unsaved  bool               // whether the latest state of the notification could not be stored
}

// newWaiting returns a notification that has not been offered to any robot.
func newWaiting(n Notification) *waiting {
	return &waiting{Notification: n, offered: map[device.ID]bool{}}
}

// newDispatcher returns a dispatcher with the stored notifications and the reachable robots.
func newDispatcher(n *Notifier, r robots) *dispatcher {
	d := &dispatcher{
		Notifier: n, robots: r, open: map[device.ID]string{}, waiting: map[string]*waiting{},
		holds: map[device.ID]time.Time{}, refused: map[device.ID]time.Duration{},
		wall: n.o.Clock.Now(), running: n.o.Clock.Running(),
	}
	d.reload()
	return d
}

// await waits until an event, a changed timer or a value of alarm requires a pass. Before it
// returns, it handles all published events: otherwise a robot that has just reconnected
// could be mistaken for its earlier session. It returns false when ctx or the events end.
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

// reload lists the robots and reads the store, at the start, after missed events, and when a
// robot is adopted. It forgets all offers, because a repeated announcement is better than a
// missing one.
func (d *dispatcher) reload() {
	ids := d.robots.Reachable()
	d.listedAt = d.o.Bus.Seq()
	open := map[device.ID]string{}
	d.listed = map[device.ID]bool{}
	for _, id := range ids {
		open[id], d.listed[id] = d.open[id], true
	}
	d.open = open
	clear(d.holds)
	clear(d.refused)
	d.readStore()
	for _, w := range d.waiting {
		clear(w.offered)
	}
}

// readStore replaces d.waiting by the stored notifications and the notifications that could
// not be stored. A state that could not be stored remains.
func (d *dispatcher) readStore() {
	stored := map[string]bool{}
	for _, n := range d.o.Store.all() {
		stored[n.ID] = true
		if w, ok := d.waiting[n.ID]; ok {
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
		_, ok, err := d.o.Store.lookup(id) // Store.all skips notifications that cannot be read; these remain
		return err == nil && !ok
	})
}

// handleEvent applies an event, and reports whether it requires a pass.
func (d *dispatcher) handleEvent(e event.Envelope) bool {
	d.lastSeq = max(d.lastSeq, e.Seq)
	switch ev := e.Event.(type) {
	case event.RobotOnline, event.RobotOffline, event.RobotConnected, event.RobotDisconnected:
		d.handleConnection(e)
		return true
	case event.Notification:
		return d.handleNotification(e, ev)
	case event.NotificationChanged:
		return d.handleChange(ev)
	case event.Missed, event.RobotAdopted: // the adopted robot may already be connected
		d.reload()
		return true
	}
	return false
}

// handleConnection handles the start or end of a robot's session or MQTT connection.
// Notifications that the earlier session has not announced are offered again. An event that
// is older than the list of reachable robots does not end the listed session.
func (d *dispatcher) handleConnection(e event.Envelope) {
	if e.Seq > d.listedAt || !d.listed[e.Robot] {
		d.removeRobot(e.Robot)
	}
	if _, opened := e.Event.(event.RobotOnline); opened {
		d.open[e.Robot] = e.Session
		return
	}
	// A robot that is connected by MQTT is reachable without a session.
	if _, ok := d.open[e.Robot]; !ok && slices.Contains(d.robots.Reachable(), e.Robot) {
		d.open[e.Robot] = ""
	}
}

// removeRobot removes a robot that can no longer be reached.
func (d *dispatcher) removeRobot(id device.ID) {
	delete(d.open, id)
	delete(d.holds, id)
	delete(d.refused, id)
	for _, w := range d.waiting {
		delete(w.offered, id)
	}
}

// handleNotification adds a new notification, unless readStore has already read it. It
// reports whether it added the notification.
func (d *dispatcher) handleNotification(e event.Envelope, ev event.Notification) bool {
	n, ok, err := d.o.Store.lookup(ev.ID)
	switch {
	case err != nil:
		d.logFault(err)
		n = Notification{ID: ev.ID, Text: ev.Text, Urgency: ev.Urgency, ActionURL: ev.ActionURL, Robot: e.Robot, SessionID: e.Session,
			Speak: ev.Speak, Received: e.At.Round(0), Expires: ev.ExpiresAt}
	case !ok:
		return false
	}
	before, ok := d.waiting[ev.ID]
	if ok && before.Received.Equal(n.Received) && before.Text == n.Text {
		return false
	}
	// If the stored state is a later one, it belongs to the previous notification with this
	// ID.
	n.State = Received
	d.waiting[ev.ID] = newWaiting(n)
	return true
}

// handleChange applies a new state that a session, a screen or a person has reported. It
// reports whether the notification was waiting.
func (d *dispatcher) handleChange(e event.NotificationChanged) bool {
	w, ok := d.waiting[e.ID]
	if !ok {
		return false
	}
	switch e.State {
	case Acknowledged, Expired:
		delete(d.waiting, e.ID)
	case Shown, Spoken:
		if stateIndex(e.State) > stateIndex(w.State) {
			w.State, w.unsaved = e.State, true
			d.saveState(w)
		}
	}
	return true
}

// saveState stores the state of a notification.
func (d *dispatcher) saveState(w *waiting) {
	_, err := d.o.Store.Change(w.ID, w.State)
	if err == nil || errors.Is(err, ErrNotFound) {
		w.unsaved = false
		return
	}
	d.logFault(err)
}

// dispatchDue makes a pass: it does everything that is due. It returns the time until the
// next pass; ok is false if no further pass is needed before an event.
func (d *dispatcher) dispatchDue(ctx context.Context) (wait time.Duration, ok bool) {
	d.storeFailed = false
	d.followClock()
	for _, due := range d.o.Timers.dueTimers() {
		d.ring(due)
	}
	d.retryStore()
	d.expire()
	d.offer(ctx)
	d.holdChannels()
	d.storeDown = d.storeFailed
	return d.nextPass()
}

// followClock corrects all times if the wall clock has jumped.
func (d *dispatcher) followClock() {
	wall, running := d.o.Clock.Now(), d.o.Clock.Running()
	jump := wall.Sub(d.wall) - (running - d.running)
	if jump.Abs() <= maxClockDrift {
		jump = 0
	}
	d.logFault(d.o.Timers.followClock(jump))
	if jump == 0 {
		return
	}
	d.wall, d.running = wall, running
	d.o.Store.clockJumped(jump)
	d.readStore()
}

// ring publishes that a timer rings, and turns it into a notification. The notification is
// stored before the timer is removed or moved to its next time, so that a crash cannot lose
// both. If the robot itself rings, no notification is needed. An alarm that is too late does
// not ring, and the notification says so.
func (d *dispatcher) ring(t agent.Timer) {
	if t.Days == 0 {
		d.o.Timers.markRung(t.ID)
	} else {
		defer func() { d.logFault(d.o.Timers.advance(t.ID)) }()
	}
	now := d.o.Clock.Now()
	n := Notification{ID: t.ID, Text: t.Text, Urgency: UrgencyHigh, Robot: t.Robot, Speak: true}
	if t.At != "" && !t.OnRobot && now.Sub(t.Due) > maxAlarmDelay {
		n.Text, n.Urgency = d.o.Missed(t), UrgencyNormal
	} else {
		d.o.Bus.Publish(t.Robot, "", event.TimerRang{ID: t.ID, Text: t.Text, OnRobot: t.OnRobot})
	}
	if t.OnRobot {
		return
	}
	n, err := n.prepare(now)
	if err != nil {
		d.logFault(err) // possible only if the table was edited by hand
		return
	}
	w := newWaiting(n)
	d.waiting[n.ID] = w
	d.insert(w)
	d.publish(n)
}

// insert stores a notification, and publishes that the notifications dropped to make room have expired.
func (d *dispatcher) insert(w *waiting) {
	dropped, err := d.o.Store.insert(w.Notification, d.o.Clock.Now())
	d.logFault(err)
	w.unstored = err != nil
	d.publishExpired(dropped...)
}

// retryStore repeats the writes that have failed, and removes the timers that have rung.
func (d *dispatcher) retryStore() {
	for _, w := range d.waiting {
		if w.unstored && !w.isAnnounced() {
			d.insert(w)
		}
		if w.unsaved {
			d.saveState(w)
		}
	}
	for _, id := range d.o.Timers.rung() {
		if w, ok := d.waiting[id]; ok && w.unstored && !w.isAnnounced() {
			continue // the timer is the only stored copy of the notification
		}
		d.logFault(d.o.Timers.remove(id))
	}
}

// expire ends the notifications that have expired.
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
		case !errors.Is(err, ErrNotFound):
			d.logFault(err)
			continue
		} // otherwise another caller of Change has ended the notification and published its end
		delete(d.waiting, id)
	}
}

// offer offers the notifications that are not announced yet to robots, urgent ones first.
func (d *dispatcher) offer(ctx context.Context) {
	list := slices.Collect(maps.Values(d.waiting))
	slices.SortFunc(list, func(a, b *waiting) int {
		return cmp.Or(b.priority()-a.priority(), a.Received.Compare(b.Received), cmp.Compare(a.ID, b.ID))
	})
	for _, w := range list {
		if w.isAnnounced() {
			continue
		}
		for _, id := range d.recipients(w) {
			if _, open := d.open[id]; open && !w.offered[id] && d.o.Clock.Running() >= d.refused[id] {
				d.announce(ctx, id, w)
			}
		}
	}
}

// priority returns 1 for a notification of high urgency, and otherwise 0.
func (w *waiting) priority() int {
	if w.Urgency == UrgencyHigh {
		return 1
	}
	return 0
}

// recipients returns the robots that a notification is offered to. A notification for all
// robots is offered to all robots that are reachable at this time. If all these robots
// disconnect without announcing the notification, it is offered again.
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

// announce offers a notification to a reachable robot. A robot that refuses the notification
// is offered no notifications for checkInterval. A robot that can no longer be reached is
// removed.
func (d *dispatcher) announce(ctx context.Context, id device.ID, w *waiting) {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	err := d.robots.Announce(ctx, id, Announcement{ID: w.ID, Text: w.Text, Speak: w.Speak, Urgent: w.Urgency == UrgencyHigh})
	switch {
	case err == nil:
		w.offered[id] = true
	case slices.Contains(d.robots.Reachable(), id):
		d.refused[id] = d.o.Clock.Running() + checkInterval
	default:
		d.removeRobot(id)
	}
}

// holdChannels holds open the channels of the robots that will soon announce a timer.
func (d *dispatcher) holdChannels() {
	for id := range d.open {
		until := d.o.Timers.holdUntil(id)
		if until.Sub(d.holds[id]).Abs() > maxDueError {
			d.holds[id] = until
			d.robots.KeepOpen(id, until)
		}
	}
}

// nextPass returns the time until the next pass. ok is false if nothing waits.
func (d *dispatcher) nextPass() (wait time.Duration, ok bool) {
	wait, ok = d.o.Timers.nextDue()
	if !ok || wait > checkInterval {
		wait = checkInterval
	}
	now := d.o.Clock.Now()
	for _, w := range d.waiting {
		ok = true
		if left := w.Expires.Sub(now); left > 0 { // an expired notification is retried after checkInterval
			wait = min(wait, left)
		}
	}
	return wait, ok
}

// logFault logs an error of the store, once until the store works again. It ignores nil.
func (d *dispatcher) logFault(err error) {
	if err == nil {
		return
	}
	if !d.storeDown {
		d.o.Log.Error("notifications and timers cannot be stored; they are still announced", "err", err)
	}
	d.storeDown, d.storeFailed = true, true
}
