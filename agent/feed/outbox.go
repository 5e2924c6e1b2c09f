package feed

import (
	"slices"
	"sync"

	"perch/limit"
)

// Bounds of what waits for one viewer.
const (
	crowded     = 32 // frames; from then on what is stale is dropped
	mostNotices = 64
	mostPassing = 64 // of gestures, of looks and of sentences each
)

// outbox is what waits to be sent to one viewer. It takes everything at once and
// never blocks. While few frames wait, every one is kept, in order. Where
// many do, a frame gives way to a later one of the same key: a state or a face
// to the session's next, what a tool was doing to what it does now. Of too
// many notifications the oldest of low urgency is given up, and of too many
// gestures, looks, sentences and moods the oldest: a program may name as many
// sessions as it likes, and each has frames of its own. A viewer for which even
// then too much waits is late, and is let go.
type outbox struct {
	news chan struct{} // something waits, or it is late

	mu      sync.Mutex
	waiting []*Frame
	late    bool
	began   int // notifications and tools that were there when it subscribed last, and may wait besides
}

func newOutbox() *outbox { return &outbox{news: make(chan struct{}, 1)} }

// begin takes a filter for what waits from now on, the present as that filter shows it,
// and what of it is to be sent. However much that is, it makes none late. Of what waits
// already, all that the filter does not take is dropped: a viewer that changes its mind
// again and again has no more waiting for it than one that does not.
func (o *outbox) begin(w *Filter, present, news []*Frame) {
	o.mu.Lock()
	o.waiting = slices.DeleteFunc(o.waiting, func(f *Frame) bool { return !w.takes(f) })
	o.began = 0
	for _, f := range present {
		if f.Kind == KindNotice || f.Kind == KindTool {
			o.began++
		}
	}
	o.mu.Unlock()
	o.put(news...)
}

// put adds frames. A late outbox takes none.
func (o *outbox) put(frames ...*Frame) {
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
	default: // the writer has yet to look
	}
}

// take returns the next frame, and whether the viewer is late: then there is
// nothing more to come.
func (o *outbox) take() (f *Frame, late bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.late || len(o.waiting) == 0 {
		o.waiting = nil // an idle viewer keeps no memory
		return nil, o.late
	}
	f = o.waiting[0]
	o.waiting[0] = nil
	o.waiting = o.waiting[1:]
	return f, false
}

// relieve drops what is stale. What is left keeps its order. more is how much may wait
// beyond the bounds.
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

// mostWaiting is how many frames wait of a kind of which the oldest may be lost; 0 is
// any number.
func mostWaiting(kind string) int {
	switch kind {
	case KindGesture, KindLook, KindSaid:
		return mostPassing
	case KindMood:
		return mostMoods
	}
	return 0
}
