package feed

import (
	"slices"
	"sync"

	"perch/limit"
)

// Limits on the number of frames that are queued for one viewer.
const (
	crowded      = 32 // if more frames are queued, stale ones are dropped
	maxNotices   = 64 // for notifications and changes of notifications together
	maxTransient = 64 // for gestures, for looks and for sentences
)

// outbox queues the frames for one viewer. Adding a frame never blocks. An outbox with at most
// crowded frames retains all of them in order. In a fuller outbox a frame replaces earlier frames
// with the same key, such as earlier states of the same session. If there are more than
// maxNotices notifications and changes of notifications (KindStep), the changes and the notifications
// of low urgency are dropped, oldest first. If there are too many gestures, looks, sentences or moods,
// the oldest are dropped: replacement alone does not limit them, because a program may use any number
// of sessions. If the outbox then still has too many tools or notifications, its viewer is late: the
// outbox takes no more frames, and the caller disconnects the viewer.
type outbox struct {
	news chan struct{} // receives an element if frames are queued or the viewer is late

	mu     sync.Mutex
	queue  []*Frame
	late   bool
	excess int // number of notifications and tools in the latest snapshot; raises the limits
}

func newOutbox() *outbox { return &outbox{news: make(chan struct{}, 1)} }

// subscribe drops the queued frames that do not match w, and queues the frames of added. snapshot
// holds all frames of the current state that match w. subscribe does not queue them, but raises the
// limits by the number of tools and notifications among them, so that a large state does not make the
// viewer late.
func (o *outbox) subscribe(w *Filter, snapshot, added []*Frame) {
	o.mu.Lock()
	o.queue = slices.DeleteFunc(o.queue, func(f *Frame) bool { return !w.matches(f) })
	o.excess = 0
	for _, f := range snapshot {
		if f.Kind == KindNotice || f.Kind == KindTool {
			o.excess++
		}
	}
	o.mu.Unlock()
	o.enqueue(added...)
}

// enqueue adds frames, unless the viewer is late.
func (o *outbox) enqueue(frames ...*Frame) {
	if len(frames) == 0 {
		return
	}
	o.mu.Lock()
	if !o.late {
		o.queue = append(o.queue, frames...)
		if len(o.queue) > crowded {
			o.queue, o.late = dropStale(o.queue, o.excess)
		}
	}
	o.mu.Unlock()
	select {
	case o.news <- struct{}{}:
	default: // news already holds an element
	}
}

// pop returns the next frame, or nil if no frame is queued. If late is true, no more frames
// will follow.
func (o *outbox) pop() (f *Frame, late bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.late || len(o.queue) == 0 {
		o.queue = nil // free the memory of an idle viewer's queue
		return nil, o.late
	}
	f = o.queue[0]
	o.queue[0] = nil
	o.queue = o.queue[1:]
	return f, false
}

// dropStale drops stale frames, and frames beyond the limits. It returns the remaining frames in
// order. excess is added to the limits of tools and notifications. If late is true, too many frames
// remain.
func dropStale(queue []*Frame, excess int) (remaining []*Frame, late bool) {
	newest, count := make(map[string]*Frame, len(queue)), map[string]int{}
	tools, notices := 0, 0
	for _, f := range queue {
		if f.key != "" {
			newest[f.key] = f
		}
	}
	for _, f := range newest {
		count[f.Kind]++
	}
	for _, f := range queue {
		if f.key != "" && newest[f.key] != f {
			continue
		}
		if bound := maxQueued(f.Kind); bound > 0 && count[f.Kind] > bound {
			count[f.Kind]--
			continue
		}
		switch f.Kind {
		case KindTool:
			tools++
		case KindNotice, KindStep:
			notices++
		}
		remaining = append(remaining, f)
	}
	remaining = slices.DeleteFunc(remaining, func(f *Frame) bool {
		drop := notices > maxNotices+excess && (f.low || f.Kind == KindStep)
		if drop {
			notices--
		}
		return drop
	})
	return remaining, tools > limit.Tools+excess || notices > maxNotices+excess
}

// maxQueued returns the maximum number of queued frames of a kind, beyond which the oldest are
// dropped. It returns 0 for a kind without such a maximum.
func maxQueued(kind string) int {
	switch kind {
	case KindGesture, KindLook, KindSaid:
		return maxTransient
	case KindMood:
		return maxMoods
	}
	return 0
}
