package feed

import (
	"slices"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
)

// Filter is what one viewer is sent.
type Filter struct {
	Kinds    []string
	Sessions []string // nil is all; OfRobot and an id is that robot's, whichever they are
	All      bool     // the ten states, not the RFC's seven
	Words    agent.Vocabulary
}

// RFCKinds are what a skin is sent that asks for nothing else.
func RFCKinds() []string { return []string{KindState, KindTool, KindFace, KindNotice} }

// AllKinds are what a viewer may subscribe to.
func AllKinds() []string {
	return append(RFCKinds(), KindStep, KindGesture, KindLook, KindMood, KindSaid)
}

// OfRobot begins the name of a robot's session, whichever it is.
const OfRobot = "robot:"

// SessionsOf is the filter of one robot's sessions.
func SessionsOf(id device.ID) []string { return []string{OfRobot + string(id)} }

// takes reports whether a frame is for the viewer. One of no session and no
// robot is for all.
func (f *Filter) takes(x *Frame) bool {
	if x.Kind == "" {
		return true // an answer to the viewer itself
	}
	if !slices.Contains(f.Kinds, x.Kind) {
		return false
	}
	return f.Sessions == nil || x.Session == "" && x.Robot == "" ||
		x.Session != "" && slices.Contains(f.Sessions, x.Session) ||
		x.Robot != "" && slices.Contains(f.Sessions, OfRobot+string(x.Robot))
}

// Viewer is one that shows the agent: a skin, or an avatar program. One goroutine takes
// what waits for it; the other methods are for any.
type Viewer struct {
	feed   *Feed
	out    *outbox
	filter Filter // under the feed's lock
}

// Join adds a viewer, and sends it a snapshot. It is sent everything until it leaves.
func (f *Feed) Join(w Filter) *Viewer {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := &Viewer{feed: f, out: newOutbox(), filter: w}
	f.viewers[v] = true
	present := f.snapshot(&v.filter, time.Now())
	v.out.begin(&v.filter, present, present)
	return v
}

// Leave ends what a viewer is sent. It may be called more than once.
func (v *Viewer) Leave() {
	v.feed.mu.Lock()
	defer v.feed.mu.Unlock()
	delete(v.feed.viewers, v)
}

// Subscribe gives a viewer another filter, and sends what this one takes of the
// present and the one before did not. What waits and this one does not take is not sent.
func (v *Viewer) Subscribe(w Filter) {
	f := v.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	now, had := time.Now(), map[*Frame]bool{}
	for _, made := range f.snapshot(&v.filter, now) {
		had[made] = true
	}
	v.filter = w
	present := f.snapshot(&v.filter, now)
	news := slices.DeleteFunc(slices.Clone(present), func(made *Frame) bool { return had[made] })
	v.out.begin(&v.filter, present, news)
}

// Answer sends a frame to this viewer alone.
func (v *Viewer) Answer(a *Frame) { v.out.put(a) }

// News has an element when something waits, or the viewer is late.
func (v *Viewer) News() <-chan struct{} { return v.out.news }

// Take returns the next frame, nil where none waits, and whether the viewer is late:
// then there is nothing more to come, and it may join anew.
func (v *Viewer) Take() (f *Frame, late bool) { return v.out.take() }

// Late reports whether so much waits that may not be lost that there is nothing more to
// come.
func (v *Viewer) Late() bool {
	v.out.mu.Lock()
	defer v.out.mu.Unlock()
	return v.out.late
}

// Shown publishes that a frame has been shown, where it is a notification for which that
// counts and that nobody was shown before.
func (v *Viewer) Shown(made *Frame) {
	if made.notice == "" {
		return
	}
	f := v.feed
	f.mu.Lock()
	news := f.drop(made.notice)
	f.mu.Unlock()
	if news {
		f.o.Bus.Publish("", "", event.NotificationChanged{ID: made.notice, State: notice.Shown})
	}
}
