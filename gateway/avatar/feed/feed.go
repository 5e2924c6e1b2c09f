package feed

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/event"
)

// notices returns the stored notifications.
type notices interface {
	Open(now time.Time) []notice.Notification
}

// Options of a feed.
type Options struct {
	Board   *agent.Board
	Bus     *event.Bus
	Notices notices
	Words   *agent.Words
	Log     *slog.Logger
}

// Feed renders the bus for all viewers: one reader, one follower of the board, one
// encoding of each frame. Its lock is only held to fill the outboxes, so that a new
// viewer gets a consistent snapshot and everything after it.
type Feed struct {
	o Options

	mu      sync.Mutex
	viewers map[*Viewer]bool
	states  *agent.Follower
	views   map[string]*view // by agent.State.Key
	notices []*waitingNotice // neither shown nor spoken, oldest first
	moods   moods
	reader  *event.Reader // of the events after the states
}

// waitingNotice is a notification that is neither shown nor spoken nor over.
type waitingNotice struct {
	Notice // without its time
	frame  *Frame
}

// New returns a feed with the present states. Later events are sent once Run has
// started, also to viewers that joined before.
func New(o Options) *Feed {
	now := time.Now()
	f := &Feed{o: o, viewers: map[*Viewer]bool{}, views: map[string]*view{}, states: o.Board.NewFollower(now), moods: moods{}}
	f.reader = f.states.Reader(o.Bus)
	for _, s := range f.states.States() {
		f.change(agent.Change{State: s, At: now}, event.Envelope{})
	}
	f.readNotices(now)
	return f
}

// Run renders until ctx ends or the bus is closed.
func (f *Feed) Run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	var pump sync.WaitGroup
	defer pump.Wait()
	defer stop()
	events := make(chan event.Envelope)
	pump.Go(func() { f.reader.Pump(ctx, events) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(f.wait(time.Now()))
		select {
		case e, open := <-events:
			if !open {
				return
			}
			f.handleEvent(e)
		case <-timer.C:
			f.tick(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// readNotices reads the waiting notifications from the store.
func (f *Feed) readNotices(now time.Time) {
	for _, n := range f.o.Notices.Open(now) {
		if n.State == notice.Received {
			f.notify(now, Notice{Text: n.Text, Urgency: n.Urgency, ActionURL: n.ActionURL, ID: n.ID,
				Session: n.SessionID, Robot: n.Robot, ExpiresAt: n.Expires, Speak: n.Speak})
		}
	}
}

// handleEvent applies an event.
func (f *Feed) handleEvent(e event.Envelope) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed(f.states.HandleEvent(e), e)
	switch ev := e.Event.(type) {
	case event.Missed:
		f.o.Log.Warn("the viewers' feed fell behind; events were lost", "events", ev.N)
		f.readNotices(e.At)
	case event.Notification:
		f.notify(e.At, Notice{Text: ev.Text, Urgency: ev.Urgency, ActionURL: ev.ActionURL, ID: ev.ID,
			Session: e.Session, Robot: e.Robot, ExpiresAt: ev.ExpiresAt, Speak: ev.Speak})
	case event.NotificationChanged:
		f.drop(ev.ID)
		f.fan(newStep(e.At, ev))
	case event.Gesture:
		f.fan(newGesture(e, ev))
	case event.LookAt:
		f.fan(newLook(e, ev))
	case event.Mood:
		f.feel(e)
	case event.Said:
		if ev.By != event.ByViewer { // a viewer has already shown the sentence that it reports
			f.fan(newSaid(e, ev))
		}
	case event.RobotForgotten:
		delete(f.moods, placeOf(e))
	case event.TimerRang:
		if !ev.OnRobot {
			break // it is sent as a notification
		}
		f.fan(newNotice(Notice{TS: e.At.Unix(), Text: ev.Text, Urgency: notice.UrgencyHigh, Robot: e.Robot, Speak: true}))
	}
}

// changed applies the state changes of an event or of passed time.
func (f *Feed) changed(changes []agent.Change, e event.Envelope) {
	for _, c := range changes {
		f.change(c, e)
	}
	for _, c := range changes {
		f.dropSession(c)
	}
}

// change applies a session's new state. If a robot has a new session, the previous one
// ends.
func (f *Feed) change(c agent.Change, e event.Envelope) {
	v := f.views[c.State.Key()]
	if v == nil {
		if v = newView(c.State, c.At); v == nil {
			return
		}
		f.views[c.State.Key()] = v
	} else if v.state.Session != c.State.Session {
		f.sendEnd(v, c.At)
		*v = view{}
	}
	v.state = c.State
	_, lost := c.By.(event.Missed)
	if c.State.Tools == 0 || lost {
		v.tools = nil // not part of the board's state
	}
	if c.State.At(c.At) != agent.Notification || lost {
		v.asked = nil // answered, or over
	}
	if c.By != nil && c.State.Session == e.Session {
		f.sendEvent(v, e)
	}
	f.sendState(v, c.At)
}

// sendEvent sends the frames of an event that are not states.
func (f *Feed) sendEvent(v *view, e event.Envelope) {
	switch ev := e.Event.(type) {
	case event.ToolStatus:
		made := newTool(e, ev)
		v.tool(ev, made)
		f.fan(made)
	case event.Emotion:
		another, renamed := v.feel(e, ev)
		f.each(func(w *Filter) *Frame {
			if another || renamed && w.Words == agent.VocabularyVerbatim {
				return v.face(w.Words, f.o.Words)
			}
			return nil
		})
	case event.Asked:
		made := newNotice(Notice{TS: e.At.Unix(), Text: ev.Text, Urgency: notice.UrgencyHigh,
			Session: e.Session, Robot: e.Robot, Question: ev.ID})
		v.asked = append(v.asked, item{ev.ID, "", made})
		f.fan(made)
	case event.Answered:
		v.asked = slices.DeleteFunc(v.asked, func(q item) bool { return q.id == ev.ID })
	case event.RobotOnline:
		v.felt = event.Emotion{}
	}
}

// sendState sends a session's state if it has changed for viewers of all ten states, or
// for those of seven.
func (f *Feed) sendState(v *view, at time.Time) {
	news := [2]*Frame{v.news(false, at), v.news(true, at)}
	if news != [2]*Frame{} {
		f.each(func(w *Filter) *Frame { return news[index(w.All)] })
	}
}

// sendEnd sends that a session is idle.
func (f *Feed) sendEnd(v *view, at time.Time) {
	v.state = agent.State{Robot: v.state.Robot, Session: v.state.Session}
	v.tools = nil
	f.sendState(v, at)
}

// dropSession drops a session that is no longer known, and an idle one without a robot
// that was shown as such. A robot's latest session is retained, because events of
// earlier ones do not count.
func (f *Feed) dropSession(c agent.Change) {
	if c.Gone || c.State.Robot == "" && !isVisible(c.State, c.At) {
		delete(f.views, c.State.Key())
	}
}

// notify sends a notification to every viewer, and stores it for later viewers until
// it is shown or spoken.
func (f *Feed) notify(at time.Time, n Notice) {
	n.ExpiresAt = n.ExpiresAt.UTC().Truncate(time.Second)
	if slices.ContainsFunc(f.notices, func(w *waitingNotice) bool { return w.Notice == n }) {
		return // it was read from the store before its event arrived
	}
	f.drop(n.ID) // a later one of the same id replaces it
	waiting := &waitingNotice{Notice: n}
	n.TS = at.Unix()
	waiting.frame = newNotice(n)
	f.notices = append(f.notices, waiting)
	if len(f.notices) > mostStored {
		f.notices = f.notices[1:] // the store has dropped as many
	}
	f.fan(waiting.frame)
}

// mostStored bounds the waiting notifications, as the store does.
const mostStored = 500

// drop removes a notification that was shown or spoken, or is over.
func (f *Feed) drop(id string) (news bool) {
	before := len(f.notices)
	f.notices = slices.DeleteFunc(f.notices, func(n *waitingNotice) bool { return n.ID == id })
	return len(f.notices) < before
}

// fan sends a frame to every viewer whose filter matches.
func (f *Feed) fan(made *Frame) {
	f.each(func(*Filter) *Frame { return made })
}

// each sends every viewer the frame chosen for its filter.
func (f *Feed) each(pick func(*Filter) *Frame) {
	for v := range f.viewers {
		if made := pick(&v.filter); made != nil && v.filter.takes(made) {
			v.out.enqueue(made)
		}
	}
}

// snapshot returns the frames of the present state that match a filter.
func (f *Feed) snapshot(w *Filter, now time.Time) (all []*Frame) {
	add := func(made *Frame) {
		if made != nil && w.takes(made) {
			all = append(all, made)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.views)) {
		v := f.views[key]
		if !isVisible(v.state, now) {
			continue
		}
		add(v.states[index(w.All)].frame)
		add(v.face(w.Words, f.o.Words))
		for _, t := range v.tools {
			add(t.frame)
		}
		for _, q := range v.asked {
			add(q.frame)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.moods)) {
		if slices.Contains(w.Kinds, KindMood) {
			add(f.moods[key].ensureFrame())
		}
	}
	for _, n := range f.notices {
		if n.ExpiresAt.IsZero() || now.Before(n.ExpiresAt) {
			add(n.frame)
		}
	}
	return all
}

// wait returns the time until something expires.
func (f *Feed) wait(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if due := f.states.NextExpiry(); !due.IsZero() {
		return max(due.Sub(now), 0)
	}
	return time.Hour
}

// tick sends what has expired.
func (f *Feed) tick(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed(f.states.Expire(now), event.Envelope{})
}
