package feed

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
)

// Filter selects the frames for one viewer.
type Filter struct {
	Kinds    []string
	Sessions []string // nil means all; OfRobot and an id means all sessions of that robot
	All      bool     // all ten states instead of the RFC's seven
	Words    agent.Vocabulary
}

// RFCKinds returns the kinds that a skin gets by default.
func RFCKinds() []string { return []string{KindState, KindTool, KindFace, KindNotice} }

// AllKinds returns the kinds that a viewer may subscribe to.
func AllKinds() []string {
	return append(RFCKinds(), KindStep, KindGesture, KindLook, KindMood, KindSaid)
}

// OfRobot is the prefix of a filter for all sessions of a robot.
const OfRobot = "robot:"

// SafeName returns the name of a chat's session, or a hash if it is not 1 to 48 letters, digits
// and ._:- of ASCII.
func SafeName(name string) string {
	const safe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"
	if name != "" && len(name) <= 48 && strings.Trim(name, safe) == "" {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:12])
}

// SessionsOf returns the filter for one robot's sessions.
func SessionsOf(id device.ID) []string { return []string{OfRobot + string(id)} }

// takes reports whether a frame matches. A frame without session and robot is for all.
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

// Viewer is a program that shows the agent: a skin or an avatar program. One goroutine
// calls Next; the other methods are safe for concurrent use.
type Viewer struct {
	feed   *Feed
	out    *outbox
	filter Filter // under the feed's lock
}

// Join adds a viewer, which gets a snapshot and everything after it until it leaves.
func (f *Feed) Join(w Filter) *Viewer {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := &Viewer{feed: f, out: newOutbox(), filter: w}
	f.viewers[v] = true
	present := f.snapshot(&v.filter, time.Now())
	v.out.subscribe(&v.filter, present, present)
	return v
}

// Leave removes the viewer. It may be called more than once.
func (v *Viewer) Leave() {
	v.feed.mu.Lock()
	defer v.feed.mu.Unlock()
	delete(v.feed.viewers, v)
}

// Subscribe replaces the filter, and sends the present frames that match only the new
// one. Waiting frames that do not match it are dropped.
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
	v.out.subscribe(&v.filter, present, news)
}

// Answer sends a frame to this viewer only.
func (v *Viewer) Answer(a *Frame) { v.out.enqueue(a) }

// News has an element when a frame waits or the viewer is late.
func (v *Viewer) News() <-chan struct{} { return v.out.news }

// Pop returns the next frame, nil if none waits, and whether the viewer is late: then
// no more frames follow, and it may join again.
func (v *Viewer) Pop() (f *Frame, late bool) { return v.out.pop() }

// Late reports whether too many frames wait, so that no more follow.
func (v *Viewer) Late() bool {
	v.out.mu.Lock()
	defer v.out.mu.Unlock()
	return v.out.late
}

// Shown publishes that a notification was shown, if its frame counts as shown when sent and it
// was not shown before.
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
