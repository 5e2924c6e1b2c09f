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

// notices is the store of notifications.
type notices interface {
	// Open returns the notifications that are still open at now.
	Open(now time.Time) []notice.Notification
}

// Options are the dependencies of a Feed.
type Options struct {
	Board   *agent.Board
	Bus     *event.Bus
	Notices notices
	Words   *agent.Words
	Log     *slog.Logger
}

// Feed sends frames to all viewers. A new viewer gets a snapshot and all later frames. No frame is
// lost in between, because Join and the code that queues frames hold the same lock.
type Feed struct {
	o Options

	mu      sync.Mutex
	viewers map[*Viewer]bool
	states  *agent.Follower
	views   map[string]*view // key: agent.State.Key
	notices []*waitingNotice // oldest first
	moods   moods
	reader  *event.Reader // begins after the last event that states includes
}

// waitingNotice is an open notification that has been neither shown nor spoken. Its TS is 0, so that a
// comparison of two notices ignores the time.
type waitingNotice struct {
	Notice
	frame *Frame
}

// New returns a feed with the board's current states. Run sends the frames for later events, also to
// viewers that joined before Run was called.
func New(o Options) *Feed {
	now := time.Now()
	f := &Feed{o: o, viewers: map[*Viewer]bool{}, views: map[string]*view{}, states: o.Board.NewFollower(now), moods: moods{}}
	f.reader = f.states.Reader(o.Bus)
	for _, s := range f.states.States() {
		f.apply(agent.Change{State: s, At: now}, event.Envelope{})
	}
	f.readNotices(now)
	return f
}

// Run sends frames until ctx ends or the bus is closed.
func (f *Feed) Run(ctx context.Context) {
	events, stop := f.reader.Events(ctx)
	defer stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(f.untilExpiry(time.Now()))
		select {
		case e, open := <-events:
			if !open {
				return
			}
			f.handleEvent(e)
		case <-timer.C:
			f.expire(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// readNotices sends the stored notifications that nobody has shown or spoken yet.
func (f *Feed) readNotices(now time.Time) {
	for _, n := range f.o.Notices.Open(now) {
		if n.State == notice.Received {
			f.notify(now, Notice{Text: n.Text, Urgency: n.Urgency, ActionURL: n.ActionURL, ID: n.ID,
				Session: n.SessionID, Robot: n.Robot, ExpiresAt: n.Expires, Speak: n.Speak})
		}
	}
}

// handleEvent updates the states with an event, and sends the frames for it.
func (f *Feed) handleEvent(e event.Envelope) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applyAll(f.states.HandleEvent(e), e)
	switch ev := e.Event.(type) {
	case event.Missed:
		f.o.Log.Warn("the viewers' feed fell behind; events were lost", "events", ev.N)
		f.readNotices(e.At)
	case event.Notification:
		f.notify(e.At, Notice{Text: ev.Text, Urgency: ev.Urgency, ActionURL: ev.ActionURL, ID: ev.ID,
			Session: e.Session, Robot: e.Robot, ExpiresAt: ev.ExpiresAt, Speak: ev.Speak})
	case event.NotificationChanged:
		f.removeNotice(ev.ID)
		f.sendAll(stepFrame(e.At, ev))
	case event.Gesture:
		f.sendAll(gestureFrame(e, ev))
	case event.LookAt:
		f.sendAll(lookFrame(e, ev))
	case event.Mood:
		f.sendMood(e)
	case event.Said:
		if ev.By != event.ByViewer { // a viewer has already shown the sentence that it reports
			f.sendAll(saidFrame(e, ev))
		}
	case event.RobotForgotten:
		delete(f.moods, agentKey(e))
	case event.TimerRang:
		if !ev.OnRobot {
			break // a notification is published for this timer
		}
		f.sendAll(noticeFrame(Notice{TS: e.At.Unix(), Text: ev.Text, Urgency: notice.UrgencyHigh, Robot: e.Robot, Speak: true}))
	}
}

// applyAll applies state changes. e is the event that caused them. If states have expired, e is the zero
// value.
func (f *Feed) applyAll(changes []agent.Change, e event.Envelope) {
	for _, c := range changes {
		f.apply(c, e)
	}
	for _, c := range changes {
		f.dropView(c)
	}
}

// apply sends the frames of a session's new state. If a robot has started a new session, the
// previous one is first shown as idle.
func (f *Feed) apply(c agent.Change, e event.Envelope) {
	v := f.views[c.State.Key()]
	if v == nil {
		if v = newView(c.State, c.At); v == nil {
			return
		}
		f.views[c.State.Key()] = v
	} else if v.state.Session != c.State.Session {
		f.sendIdle(v, c.At)
		*v = view{}
	}
	v.state = c.State
	_, lost := c.By.(event.Missed)
	if c.State.Tools == 0 || lost {
		v.tools = nil // after events were lost, it is unknown which tools are running
	}
	if c.State.At(c.At) != agent.Notification || lost {
		v.questions = nil // the questions were answered or have expired, or it is unknown which ones are open
	}
	if c.By != nil && c.State.Session == e.Session {
		f.sendEvent(v, e)
	}
	f.sendState(v, c.At)
}

// sendEvent updates v with an event, and sends the frame of a tool, face or question.
func (f *Feed) sendEvent(v *view, e event.Envelope) {
	switch ev := e.Event.(type) {
	case event.ToolStatus:
		frame := toolFrame(e, ev)
		v.setTool(ev, frame)
		f.sendAll(frame)
	case event.Emotion:
		changed, renamed := v.setFace(e, ev)
		f.sendEach(func(w *Filter) *Frame {
			if changed || renamed && w.Vocabulary == agent.VocabularyVerbatim {
				return v.faceFrame(w.Vocabulary, f.o.Words)
			}
			return nil
		})
	case event.Asked:
		frame := noticeFrame(Notice{TS: e.At.Unix(), Text: ev.Text, Urgency: notice.UrgencyHigh,
			Session: e.Session, Robot: e.Robot, Question: ev.ID})
		v.questions = append(v.questions, item{ev.ID, "", frame})
		f.sendAll(frame)
	case event.Answered:
		v.questions = slices.DeleteFunc(v.questions, func(q item) bool { return q.id == ev.ID })
	case event.RobotOnline:
		v.face = event.Emotion{}
	}
}

// sendState sends a session's state to the viewers that see a change. Some changes are visible only
// to viewers of all ten states. Viewers show no face for an idle session. If the session becomes idle
// for viewers of the RFC's seven states, sendState therefore forgets the face, so that the next face is
// sent even if it is the same.
func (f *Feed) sendState(v *view, at time.Time) {
	changed := [2]*Frame{v.stateFrame(false, at), v.stateFrame(true, at)}
	if changed[index(false)] != nil && v.states[index(false)].state == agent.Idle {
		v.face = event.Emotion{}
	}
	if changed != [2]*Frame{} {
		f.sendEach(func(w *Filter) *Frame { return changed[index(w.AllStates)] })
	}
}

// sendIdle sends the state idle for a session.
func (f *Feed) sendIdle(v *view, at time.Time) {
	v.state = agent.State{Robot: v.state.Robot, Session: v.state.Session}
	v.tools = nil
	f.sendState(v, at)
}

// dropView removes the view of a session that the board has dropped, or of an idle session
// without a robot. The view of a robot's latest session stays: it is needed to recognize the
// robot's next session.
func (f *Feed) dropView(c agent.Change) {
	if c.Gone || c.State.Robot == "" && !isVisible(c.State, c.At) {
		delete(f.views, c.State.Key())
	}
}

// notify sends a notification to every viewer, and stores it for viewers that join before
// the notification is shown or spoken.
func (f *Feed) notify(at time.Time, n Notice) {
	n.ExpiresAt = n.ExpiresAt.UTC().Truncate(time.Second)
	if slices.ContainsFunc(f.notices, func(w *waitingNotice) bool { return w.Notice == n }) {
		return // the notification was read from the store before its event arrived
	}
	f.removeNotice(n.ID) // replace an earlier notification with the same ID
	waiting := &waitingNotice{Notice: n}
	n.TS = at.Unix()
	waiting.frame = noticeFrame(n)
	f.notices = append(f.notices, waiting)
	if len(f.notices) > maxStored {
		f.notices = f.notices[1:]
	}
	f.sendAll(waiting.frame)
}

// maxStored is the maximum number of waiting notifications. The store of package notice has the same
// limit.
const maxStored = 500

// removeNotice removes the waiting notification with an ID. It returns false if there was no such
// notification.
func (f *Feed) removeNotice(id string) (removed bool) {
	before := len(f.notices)
	f.notices = slices.DeleteFunc(f.notices, func(n *waitingNotice) bool { return n.ID == id })
	return len(f.notices) < before
}

// sendAll sends a frame to every viewer whose filter matches the frame.
func (f *Feed) sendAll(frame *Frame) {
	f.sendEach(func(*Filter) *Frame { return frame })
}

// sendEach sends every viewer the frame that pick returns for the viewer's filter. pick may return
// nil.
func (f *Feed) sendEach(pick func(*Filter) *Frame) {
	for v := range f.viewers {
		if frame := pick(&v.filter); frame != nil && v.filter.matches(frame) {
			v.out.enqueue(frame)
		}
	}
}

// snapshot returns the frames that show the current state to a viewer with filter w.
func (f *Feed) snapshot(w *Filter, now time.Time) (frames []*Frame) {
	add := func(frame *Frame) {
		if frame != nil && w.matches(frame) {
			frames = append(frames, frame)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.views)) {
		v := f.views[key]
		if !isVisible(v.state, now) {
			continue
		}
		add(v.states[index(w.AllStates)].frame)
		add(v.faceFrame(w.Vocabulary, f.o.Words))
		for _, t := range v.tools {
			add(t.frame)
		}
		for _, q := range v.questions {
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
	return frames
}

// untilExpiry returns the time until the next state expires, or an hour if no state does.
func (f *Feed) untilExpiry(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if due := f.states.NextExpiry(); !due.IsZero() {
		return max(due.Sub(now), 0)
	}
	return time.Hour
}

// expire sends the new states of sessions whose previous state has expired.
func (f *Feed) expire(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applyAll(f.states.Expire(now), event.Envelope{})
}
