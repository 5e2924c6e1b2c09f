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
	lookEvery      = time.Minute // while something waits: the wall clock may have jumped
	mostJump       = 2 * time.Second
	announceWithin = 5 * time.Second
)

// telling is what a herald knows while it runs. One goroutine uses it.
type telling struct {
	*Notifier
	robots  robots
	open    map[device.ID]string // whose channel is open, and the session where it is known
	waiting map[string]*waiting  // every notification there is
	held    map[device.ID]time.Time
	refused map[device.ID]time.Duration // till when one is not offered anything, on the running clock

	seen   uint64             // Seq of the last event taken
	listed map[device.ID]bool // those open when they were last listed,
	at     uint64             // and the Seq of that moment

	wall    time.Time     // both clocks at the same moment,
	running time.Duration // to see one of them jump
	ailing  bool          // the store does not work
	failed  bool          // so it was found in this pass
}

// waiting is a notification, and the robots it was offered to whose channel is
// still open.
type waiting struct {
	Notification
	offered map[device.ID]bool
	unkept  bool // the store did not take it
	unsaved bool // the store has an earlier state
}

func newWaiting(n Notification) *waiting {
	return &waiting{Notification: n, offered: map[device.ID]bool{}}
}

func newTelling(h *Notifier, r robots) *telling {
	t := &telling{
		Notifier: h, robots: r, open: map[device.ID]string{}, waiting: map[string]*waiting{},
		held: map[device.ID]time.Time{}, refused: map[device.ID]time.Duration{},
		wall: h.clock.Now(), running: h.clock.Running(),
	}
	t.reread()
	return t
}

// reread learns everything anew, as at the start and where events were missed.
// Nothing counts as offered then: better told twice than never.
func (t *telling) reread() {
	ids := t.robots.Open()
	t.at = t.bus.Seq()
	open := map[device.ID]string{}
	t.listed = map[device.ID]bool{}
	for _, id := range ids {
		open[id], t.listed[id] = t.open[id], true
	}
	t.open = open
	clear(t.held)
	clear(t.refused)
	t.refresh()
	for _, w := range t.waiting {
		clear(w.offered)
	}
}

// refresh reads the notifications from where they are kept.
func (t *telling) refresh() {
	kept := map[string]bool{}
	for _, n := range t.notices.all() {
		kept[n.ID] = true
		if w, known := t.waiting[n.ID]; known {
			if w.unsaved {
				n.State = w.State
			}
			w.Notification = n
			continue
		}
		t.waiting[n.ID] = newWaiting(n)
	}
	maps.DeleteFunc(t.waiting, func(id string, w *waiting) bool {
		if kept[id] || w.unkept {
			return false
		}
		_, there, err := t.notices.get(id) // none where the table cannot be read is no news
		return err == nil && !there
	})
}

// take learns from an event, and reports whether it is of any concern.
func (t *telling) take(e event.Envelope) bool {
	t.seen = max(t.seen, e.Seq)
	switch ev := e.Event.(type) {
	case event.RobotOnline:
		return t.online(e)
	case event.RobotOffline:
		if e.Seq > t.at || !t.listed[e.Robot] {
			t.closed(e.Robot)
		}
		return true
	case event.Notification:
		return t.received(e, ev)
	case event.NotificationChanged:
		return t.changed(ev)
	case event.Missed, event.RobotAdopted: // who is adopted may be connected already
		t.reread()
		return true
	}
	return false
}

// online is a session that has just said hello. What was offered to the one
// before it, and not told, is offered to this one. A robot that was listed
// after its hello is that one already.
func (t *telling) online(e event.Envelope) bool {
	if e.Seq <= t.at && t.listed[e.Robot] {
		t.open[e.Robot] = e.Session
		return true
	}
	t.closed(e.Robot)
	t.open[e.Robot] = e.Session
	return true
}

func (t *telling) closed(id device.ID) {
	delete(t.open, id)
	delete(t.held, id)
	delete(t.refused, id)
	for _, w := range t.waiting {
		delete(w.offered, id)
	}
}

// received is a notification just accepted, or one that was there when all
// were read.
func (t *telling) received(e event.Envelope, ev event.Notification) bool {
	n, there, err := t.notices.get(ev.ID)
	switch {
	case err != nil:
		t.fault(err)
		n = Notification{ID: ev.ID, Text: ev.Text, Urgency: ev.Urgency, ActionURL: ev.ActionURL, Robot: e.Robot, SessionID: e.Session,
			Speak: ev.Speak, Received: e.At.Round(0), Expires: ev.ExpiresAt}
	case !there:
		return false
	}
	known, ok := t.waiting[ev.ID]
	if ok && known.Received.Equal(n.Received) && known.Text == n.Text {
		return false
	}
	// What is known to be told is an earlier one of the same id.
	n.State = Received
	t.waiting[ev.ID] = newWaiting(n)
	return true
}

// changed is a step in the life of one, which a robot's session or a screen
// has told.
func (t *telling) changed(e event.NotificationChanged) bool {
	w, known := t.waiting[e.ID]
	if !known {
		return false
	}
	switch e.State {
	case Acknowledged, Expired:
		delete(t.waiting, e.ID)
	case Shown, Spoken:
		if step(e.State) > step(w.State) {
			w.State, w.unsaved = e.State, true
			t.save(w)
		}
	}
	return true
}

func (t *telling) save(w *waiting) {
	_, err := t.notices.Change(w.ID, w.State)
	if err == nil || errors.Is(err, ErrNotFound) {
		w.unsaved = false
		return
	}
	t.fault(err)
}

// pass does all there is to do now, and returns how long until there may be
// more.
func (t *telling) pass(ctx context.Context) (wait time.Duration, some bool) {
	t.failed = false
	t.jump()
	t.fault(t.timers.follow())
	for _, due := range t.timers.due() {
		t.ring(due)
	}
	t.tryAgain()
	t.expire()
	t.offer(ctx)
	t.hold()
	t.ailing = t.failed
	return t.next()
}

// jump looks whether the wall clock has jumped since it last did.
func (t *telling) jump() {
	wall, running := t.clock.Now(), t.clock.Running()
	by := wall.Sub(t.wall) - (running - t.running)
	if by.Abs() <= mostJump {
		return
	}
	t.wall, t.running = wall, running
	t.fault(t.timers.moved(by))
	t.notices.moved(by)
	t.refresh()
}

// ring is a timer at its time. It is a notification from then on, before it
// is no longer a timer, so that no crash can lose it. A robot that rings by
// itself needs none.
func (t *telling) ring(r agent.Timer) {
	t.timers.silence(r.ID)
	t.bus.Publish(r.Robot, "", event.TimerRang{ID: r.ID, Text: r.Text})
	if r.OnRobot {
		return
	}
	now := t.clock.Now()
	n, err := Notification{ID: r.ID, Text: r.Text, Urgency: UrgencyHigh, Robot: r.Robot, Speak: true}.prepare(now)
	if err != nil {
		t.fault(err) // a table somebody has written to
		return
	}
	w := newWaiting(n)
	t.waiting[n.ID] = w
	t.keep(w)
	t.publish(n)
}

func (t *telling) keep(w *waiting) {
	gone, err := t.notices.keep(w.Notification, t.clock.Now())
	t.fault(err)
	w.unkept = err != nil
	t.expired(gone...)
}

// tryAgain writes what could not be written, and forgets the timers that rang.
func (t *telling) tryAgain() {
	for _, w := range t.waiting {
		if w.unkept && !w.told() {
			t.keep(w)
		}
		if w.unsaved {
			t.save(w)
		}
	}
	for _, id := range t.timers.silenced() {
		if w, waits := t.waiting[id]; waits && w.unkept && !w.told() {
			continue // its only copy on the disk
		}
		t.fault(t.timers.remove(id))
	}
}

func (t *telling) expire() {
	now := t.clock.Now()
	for id, w := range t.waiting {
		if now.Before(w.Expires) {
			continue
		}
		_, err := t.notices.Change(id, Expired)
		switch {
		case err == nil || w.unkept:
			t.expired(w.Notification)
		case !errors.Is(err, ErrNotFound): // else somebody else has ended it, and told so
			t.fault(err)
			continue
		}
		delete(t.waiting, id)
	}
}

// offer hands everything that was not told to whom it is for, what is urgent
// first.
func (t *telling) offer(ctx context.Context) {
	list := slices.Collect(maps.Values(t.waiting))
	slices.SortFunc(list, func(a, b *waiting) int {
		return cmp.Or(cmp.Compare(urgent(b), urgent(a)), a.Received.Compare(b.Received), cmp.Compare(a.ID, b.ID))
	})
	for _, w := range list {
		if w.told() {
			continue
		}
		for _, id := range t.whom(w) {
			if _, open := t.open[id]; open && !w.offered[id] && t.clock.Running() >= t.refused[id] {
				t.announce(ctx, id, w)
			}
		}
	}
}

func urgent(w *waiting) int {
	if w.Urgency == UrgencyHigh {
		return 1
	}
	return 0
}

// whom is a notification for. What is for all is offered to every robot there
// is, and to others only once those have gone without having told it.
func (t *telling) whom(w *waiting) []device.ID {
	switch {
	case w.Robot != "":
		return []device.ID{w.Robot}
	case w.SessionID != "":
		for id, session := range t.open {
			if session == w.SessionID {
				return []device.ID{id}
			}
		}
		return nil
	case len(w.offered) > 0:
		return nil
	}
	return slices.Sorted(maps.Keys(t.open))
}

func (t *telling) announce(ctx context.Context, id device.ID, w *waiting) {
	ctx, cancel := context.WithTimeout(ctx, announceWithin)
	defer cancel()
	err := t.robots.Announce(ctx, id, Announcement{ID: w.ID, Text: w.Text, Speak: w.Speak, Urgent: w.Urgency == UrgencyHigh})
	switch {
	case err == nil:
		w.offered[id] = true
	case slices.Contains(t.robots.Open(), id):
		t.refused[id] = t.clock.Running() + lookEvery
	default:
		t.closed(id)
	}
}

// hold keeps the channels open of robots that will soon have a timer to ring.
func (t *telling) hold() {
	for id := range t.open {
		until := t.timers.hold(id)
		if until.Sub(t.held[id]).Abs() > mostDrift {
			t.held[id] = until
			t.robots.Hold(id, until)
		}
	}
}

// next is how long until there may be something to do. While anything waits,
// that is never long, for clocks jump and stores recover.
func (t *telling) next() (wait time.Duration, some bool) {
	wait, some = t.timers.next()
	if !some || wait > lookEvery {
		wait = lookEvery
	}
	now := t.clock.Now()
	for _, w := range t.waiting {
		some = true
		if left := w.Expires.Sub(now); left > 0 { // else the store has refused to end it
			wait = min(wait, left)
		}
	}
	return wait, some
}
