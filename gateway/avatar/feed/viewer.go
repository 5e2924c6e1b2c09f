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
	Kinds      []string         // kinds of frames, such as KindState
	Sessions   []string         // session IDs; RobotPrefix followed by a robot ID selects all sessions of the robot; nil selects all sessions
	AllStates  bool             // whether the viewer gets all ten states instead of the RFC's seven
	Vocabulary agent.Vocabulary // words for faces
}

// RFCKinds returns the kinds of frames that the RFC defines, which a skin gets by default.
func RFCKinds() []string { return []string{KindState, KindTool, KindFace, KindNotice} }

// AllKinds returns all kinds of frames.
func AllKinds() []string {
	return append(RFCKinds(), KindStep, KindGesture, KindLook, KindMood, KindSaid)
}

// RobotPrefix is the prefix of a robot ID in Filter.Sessions, and in the name of a robot's conversation.
const RobotPrefix = "robot:"

// SafeName returns a name that is valid in session IDs: name itself if it has 1 to 48 characters,
// all of them ASCII letters, digits or one of ._:-, and a hash of name otherwise.
func SafeName(name string) string {
	const safe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-"
	if name != "" && len(name) <= 48 && strings.Trim(name, safe) == "" {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:12])
}

// SessionsOf returns the value of Filter.Sessions that selects all sessions of a robot.
func SessionsOf(id device.ID) []string { return []string{RobotPrefix + string(id)} }

// matches reports whether the filter selects a frame. Sessions does not apply to a frame without session
// and robot. A reply to the viewer always matches.
func (f *Filter) matches(x *Frame) bool {
	if x.Kind == "" {
		return true // a reply
	}
	if !slices.Contains(f.Kinds, x.Kind) {
		return false
	}
	return f.Sessions == nil || x.Session == "" && x.Robot == "" ||
		x.Session != "" && slices.Contains(f.Sessions, x.Session) ||
		x.Robot != "" && slices.Contains(f.Sessions, RobotPrefix+string(x.Robot))
}

// Viewer receives the frames for a program that shows the agent: a skin or an avatar program.
// Its methods are safe for concurrent use.
type Viewer struct {
	feed   *Feed
	out    *outbox
	filter Filter // protected by feed.mu
}

// Join adds a viewer with the filter w. The viewer gets a snapshot of the current state, and then
// all matching frames until Leave is called.
func (f *Feed) Join(w Filter) *Viewer {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := &Viewer{feed: f, out: newOutbox(), filter: w}
	f.viewers[v] = true
	snapshot := f.snapshot(&v.filter, time.Now())
	v.out.subscribe(&v.filter, snapshot, snapshot)
	return v
}

// Leave removes the viewer. It may be called more than once.
func (v *Viewer) Leave() {
	v.feed.mu.Lock()
	defer v.feed.mu.Unlock()
	delete(v.feed.viewers, v)
}

// Subscribe replaces the filter. The viewer gets the frames of the current state that match the new
// filter but did not match the old filter. Queued frames that do not match the new filter are
// dropped.
func (v *Viewer) Subscribe(w Filter) {
	f := v.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	now, matched := time.Now(), map[*Frame]bool{}
	for _, frame := range f.snapshot(&v.filter, now) {
		matched[frame] = true
	}
	v.filter = w
	snapshot := f.snapshot(&v.filter, now)
	added := slices.DeleteFunc(slices.Clone(snapshot), func(frame *Frame) bool { return matched[frame] })
	v.out.subscribe(&v.filter, snapshot, added)
}

// Send sends a frame to this viewer only.
func (v *Viewer) Send(f *Frame) { v.out.enqueue(f) }

// News returns a channel that receives an element when frames are queued or the viewer is
// late. Pop must then be called until it returns nil.
func (v *Viewer) News() <-chan struct{} { return v.out.news }

// Pop returns the next frame, or nil if no frame is queued. If late is true, too many frames
// were queued: no more frames will follow, and the program has to join again.
func (v *Viewer) Pop() (f *Frame, late bool) { return v.out.pop() }

// Late reports whether too many frames were queued. If so, no more frames will follow.
func (v *Viewer) Late() bool {
	v.out.mu.Lock()
	defer v.out.mu.Unlock()
	return v.out.late
}

// MarkShown must be called after a frame was sent to the program. If the frame contains a notification
// without a robot, and the notification is still waiting, MarkShown publishes that it was shown.
func (v *Viewer) MarkShown(frame *Frame) {
	if frame.notice == "" {
		return
	}
	f := v.feed
	f.mu.Lock()
	removed := f.removeNotice(frame.notice)
	f.mu.Unlock()
	if removed {
		f.o.Bus.Publish("", "", event.NotificationChanged{ID: frame.notice, State: notice.Shown})
	}
}
