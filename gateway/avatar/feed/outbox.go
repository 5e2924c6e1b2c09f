package feed

import (
	"slices"
	"sync"

	"perch/limit"
)

// Bounds of the frames waiting for one viewer.
const (
	crowded     = 32 // frames; from this number on stale ones are dropped
	mostNotices = 64
	mostPassing = 64 // of gestures, looks and sentences each
)

// outbox queues the frames for one viewer. Adding never blocks. While few frames wait,
// all are retained, in order. In a crowded outbox a later frame replaces an earlier one
// of the same key, such as a session's state or face, or a tool's status. Too many
// notifications evict the oldest of low urgency; too many gestures, looks, sentences
// and moods evict the oldest, because a program may name any number of sessions, each
// with separate keys. A viewer whose outbox is still too full is late, and is
// disconnected.
type outbox struct {
	news chan struct{} // a frame waits, or the viewer is late

	mu      sync.Mutex
	waiting []*Frame
	late    bool
	began   int // notifications and tools in the snapshot of the last subscription; so many more may wait
}

func newOutbox() *outbox { return &outbox{news: make(chan struct{}, 1)} }

// subscribe sets the filter, given the present frames that match it and the ones to
// send of them. Their number never makes the viewer late. Waiting frames that do not
// match are dropped, so that repeated subscriptions do not accumulate frames.
func (o *outbox) subscribe(w *Filter, present, news []*Frame) {
	o.mu.Lock()
	o.waiting = slices.DeleteFunc(o.waiting, func(f *Frame) bool { return !w.takes(f) })
	o.began = 0
	for _, f := range present {
		if f.Kind == KindNotice || f.Kind == KindTool {
			o.began++
		}
	}
	o.mu.Unlock()
	o.enqueue(news...)
}

// enqueue adds frames, unless the viewer is late.
func (o *outbox) enqueue(frames ...*Frame) {
	if len(frames) == 0 {
		return
	}
	o.mu.Lock()
	if !o.late {
		o.waiting = append(o.waiting, frames...)
		if len(o.waiting) > crowded {
			o.waiting, o.late = relieve(o.waiting, o.began)
		}
	}
	o.mu.Unlock()
	select {
	case o.news <- struct{}{}:
	default: // the writer is already notified
	}
}

// pop returns the next frame, and whether the viewer is late: then no more frames
// follow.
func (o *outbox) pop() (f *Frame, late bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.late || len(o.waiting) == 0 {
		o.waiting = nil // an idle viewer holds no memory
		return nil, o.late
	}
	f = o.waiting[0]
	o.waiting[0] = nil
	o.waiting = o.waiting[1:]
	return f, false
}

// relieve drops stale frames, preserving the order of the others. more is how many may
// wait beyond the bounds.
func relieve(waiting []*Frame, more int) (left []*Frame, late bool) {
	newest, passing := make(map[string]*Frame, len(waiting)), map[string]int{}
	tools, notices := 0, 0
	for _, f := range waiting {
		if f.key != "" {
			newest[f.key] = f
		}
	}
	for _, f := range newest {
		passing[f.Kind]++
	}
	for _, f := range waiting {
		if f.key != "" && newest[f.key] != f {
			continue
		}
		if most := mostWaiting(f.Kind); most > 0 && passing[f.Kind] > most {
			passing[f.Kind]--
			continue
		}
		switch f.Kind {
		case KindTool:
			tools++
		case KindNotice, KindStep:
			notices++
		}
		left = append(left, f)
	}
	left = slices.DeleteFunc(left, func(f *Frame) bool {
		gives := notices > mostNotices+more && (f.low || f.Kind == KindStep)
		if gives {
			notices--
		}
		return gives
	})
	return left, tools > limit.Tools+more || notices > mostNotices+more
}

// mostWaiting returns how many frames of a droppable kind may wait; 0 means no limit.
func mostWaiting(kind string) int {
	switch kind {
	case KindGesture, KindLook, KindSaid:
		return mostPassing
	case KindMood:
		return mostMoods
	}
	return 0
}
