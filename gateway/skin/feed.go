package skin

import (
	"context"
	"sync"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/event"
)

// feed renders the bus for all skins at once: one reader, one fold of every
// session, one encoding of every frame. Its lock is held for as long as it
// takes to put a frame into the outboxes, so that whoever joins gets a
// snapshot of one moment and everything after it.
type feed struct {
	o *Options

	mu      sync.Mutex
	skins   map[*skin]bool
	views   map[string]*view // by robot, or by session where there is none
	notices []*waitingNotice // that nobody has been told, oldest first
	seq     uint64           // of the last event that the views know of
	reader  *event.Reader    // of what comes after
}

// waitingNotice is a notification, until somebody was told it or it is over.
type waitingNotice struct {
	noticeFrame // without its time
	frame       *frame
}

// newFeed takes everything as it is now. What is published from here on is told
// once run has begun, also to skins that have come before.
func newFeed(o *Options) *feed {
	f := &feed{o: o, skins: map[*skin]bool{}, views: map[string]*view{}}
	f.reread(time.Now())
	f.reader = o.Bus.ReadFrom(f.seq + 1)
	return f
}

// run renders until ctx ends or the bus is closed.
func (f *feed) run(ctx context.Context) {
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
			f.take(e)
		case <-timer.C:
			f.tick(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// reread learns the states from the board and the notifications from where
// they are kept.
func (f *feed) reread(now time.Time) {
	states, seq := f.o.Board.Snapshot()
	f.seq = seq
	there := map[string]bool{}
	for _, s := range states {
		key := keyOf(s.Robot, s.Session)
		v := f.views[key]
		if v == nil {
			if v = newView(s, now); v == nil {
				continue
			}
			f.views[key] = v
		}
		there[key] = true
		v.tools, v.asked = nil, nil // of which the board does not tell
		f.become(v, s, now)
		f.settle(v, now)
	}
	for key, v := range f.views {
		if !there[key] {
			f.over(v, now)
			delete(f.views, key)
		}
	}
	for _, n := range f.o.Notices.Open(now) {
		if n.State == notice.Received {
			f.tell(now, noticeFrame{Text: n.Text, Urgency: n.Urgency, ActionURL: n.ActionURL, ID: n.ID,
				Session: n.SessionID, Robot: n.Robot, ExpiresAt: n.Expires, Speak: n.Speak})
		}
	}
}

// take brings in an event.
func (f *feed) take(e event.Envelope) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch ev := e.Event.(type) {
	case event.Missed:
		f.o.Log.Warn("the skins' feed fell behind; events were lost", "events", ev.N)
		f.reread(e.At)
		return
	case event.Notification:
		f.tell(e.At, noticeFrame{Text: ev.Text, Urgency: ev.Urgency, ActionURL: ev.ActionURL, ID: ev.ID,
			Session: e.Session, Robot: e.Robot, ExpiresAt: ev.ExpiresAt, Speak: ev.Speak})
		return
	case event.NotificationChanged:
		f.told(ev.ID)
		f.fan(newStepFrame(e.At, ev))
		return
	case event.TimerRang:
		f.fan(newNoticeFrame(noticeFrame{TS: e.At.Unix(), Text: ev.Text, Urgency: notice.UrgencyHigh, Robot: e.Robot, Speak: true}))
		return
	}
	if e.Session != "" && e.Seq > f.seq {
		f.fold(e)
	}
}

// fold brings in an event of a session.
func (f *feed) fold(e event.Envelope) {
	key := keyOf(e.Robot, e.Session)
	v := f.views[key]
	if v == nil {
		if v = newView(agent.Fold(agent.State{}, e), e.At); v == nil {
			return
		}
		v.state = agent.State{}
		f.views[key] = v
	}
	if due := v.due(); !due.IsZero() && !due.After(e.At) {
		f.settle(v, due) // what ended by itself before this
	}
	state := agent.Fold(v.state, e)
	f.become(v, state, e.At)
	if state.Session == e.Session {
		f.show(v, e)
	}
	f.settle(v, e.At)
	f.end(key, v, e.At)
}

// become takes a session's next state. Where it is another session's, the one
// before is over.
func (f *feed) become(v *view, s agent.State, at time.Time) {
	if v.state.Session != "" && v.state.Session != s.Session {
		f.over(v, at)
		*v = view{}
	}
	v.state = s
	if s.Tools == 0 {
		v.tools = nil
	}
	if s.At(at) != agent.Notification {
		v.asked = nil // answered, or nobody waits for it any more
	}
}

// show tells what an event shows besides a state.
func (f *feed) show(v *view, e event.Envelope) {
	switch ev := e.Event.(type) {
	case event.ToolStatus:
		made := newToolFrame(e, ev)
		v.tool(ev, made)
		f.fan(made)
	case event.Emotion:
		another, renamed := v.feel(e, ev)
		f.each(func(w *filter) *frame {
			if another || renamed && w.words == agent.VocabularyVerbatim {
				return v.face(w.words, f.o.Words)
			}
			return nil
		})
	case event.Asked:
		made := newNoticeFrame(noticeFrame{TS: e.At.Unix(), Text: ev.Text, Urgency: notice.UrgencyHigh,
			Session: e.Session, Robot: e.Robot, Question: ev.ID})
		v.asked = append(v.asked, asked{ev.ID, made})
		f.fan(made)
	case event.Answered:
		v.answered(ev.ID)
	case event.RobotOnline:
		v.felt = event.Emotion{}
	}
}

// settle tells a session's state, where it is news to those who know all ten,
// or to those who know seven.
func (f *feed) settle(v *view, at time.Time) {
	news := [2]*frame{v.news(false, at), v.news(true, at)}
	if news != [2]*frame{} {
		f.each(func(w *filter) *frame { return news[index(w.all)] })
	}
}

// over tells that a session shows nothing any more.
func (f *feed) over(v *view, at time.Time) {
	v.state = agent.State{Robot: v.state.Robot, Session: v.state.Session}
	v.tools = nil
	f.settle(v, at)
}

// end gives up a session of no robot that is over, and has said so. A robot's
// latest is kept, for what comes of an earlier one does not count.
func (f *feed) end(key string, v *view, now time.Time) {
	if v.state.Robot == "" && !live(v.state, now) {
		delete(f.views, key)
	}
}

// tell gives a notification to every skin, and keeps it for the next where
// nobody takes note of it.
func (f *feed) tell(at time.Time, n noticeFrame) {
	n.ExpiresAt = n.ExpiresAt.UTC().Truncate(time.Second)
	for _, kept := range f.notices {
		if kept.ID == n.ID && string(encode(kept.noticeFrame)) == string(encode(n)) {
			return // it was read from where it is kept before its event came
		}
	}
	f.told(n.ID) // one of the same id takes its place
	kept := &waitingNotice{noticeFrame: n}
	n.TS = at.Unix()
	kept.frame = newNoticeFrame(n)
	f.notices = append(f.notices, kept)
	if len(f.notices) > mostKept {
		f.notices = f.notices[1:] // the store has given up as many
	}
	f.fan(kept.frame)
}

// mostKept bounds the notifications that nobody was told. It is what the house
// keeps of them.
const mostKept = 500

// told forgets a notification that somebody was told, or that is over.
func (f *feed) told(id string) (news bool) {
	for i, n := range f.notices {
		if n.ID == id {
			f.notices = append(f.notices[:i], f.notices[i+1:]...)
			return true
		}
	}
	return false
}

// shown publishes that a skin has been sent a notification, once.
func (f *feed) shown(id string) {
	f.mu.Lock()
	news := f.told(id)
	f.mu.Unlock()
	if news {
		f.o.Bus.Publish("", "", event.NotificationChanged{ID: id, State: notice.Shown})
	}
}

// fan gives one frame to every skin that it is for.
func (f *feed) fan(made *frame) {
	f.each(func(*filter) *frame { return made })
}

// each gives every skin the frame that is picked for it.
func (f *feed) each(pick func(*filter) *frame) {
	for s := range f.skins {
		if made := pick(&s.filter); made != nil && s.filter.takes(made) {
			s.out.put(made)
		}
	}
}

// join lets a skin in, and gives it a snapshot.
func (f *feed) join(s *skin) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skins[s] = true
	s.out.put(f.snapshot(&s.filter, time.Now())...)
}

func (f *feed) leave(s *skin) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.skins, s)
}

// subscribe gives a skin another filter, and what this one takes of the
// present that the one before did not.
func (f *feed) subscribe(s *skin, w filter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, had := time.Now(), map[*frame]bool{}
	for _, made := range f.snapshot(&s.filter, now) {
		had[made] = true
	}
	s.filter = w
	for _, made := range f.snapshot(&s.filter, now) {
		if !had[made] {
			s.out.put(made)
		}
	}
}

// snapshot is all that a filter takes of the present.
func (f *feed) snapshot(w *filter, now time.Time) (all []*frame) {
	add := func(made *frame) {
		if made != nil && w.takes(made) {
			all = append(all, made)
		}
	}
	for _, key := range sorted(f.views) {
		v := f.views[key]
		if !live(v.state, now) {
			continue
		}
		add(v.states[index(w.all)].frame)
		add(v.face(w.words, f.o.Words))
		for _, t := range v.tools {
			add(t.frame)
		}
		for _, q := range v.asked {
			add(q.frame)
		}
	}
	for _, n := range f.notices {
		if n.ExpiresAt.IsZero() || now.Before(n.ExpiresAt) {
			add(n.frame)
		}
	}
	return all
}

// wait is the time until something changes by itself.
func (f *feed) wait(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := now.Add(time.Hour)
	for _, v := range f.views {
		if due := v.due(); !due.IsZero() && due.Before(first) {
			first = due
		}
	}
	return max(first.Sub(now), 0)
}

// tick tells what has changed by itself.
func (f *feed) tick(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, v := range f.views {
		if due := v.due(); !due.IsZero() && !due.After(now) {
			f.settle(v, due)
			f.end(key, v, now)
		}
	}
}
