package skin

import (
	"slices"
	"sync"
)

// Bounds of what waits for one skin.
const (
	crowded     = 32  // frames; from then on what is stale is dropped
	mostTools   = 256 // tools with a frame
	mostNotices = 64
)

// outbox is what waits to be sent to one skin. It takes everything at once and
// never blocks. While few frames wait, every one is kept, in order. Where
// many do, a frame gives way to a later one of the same key: a state or a face
// to the session's next, what a tool was doing to what it does now. Of too
// many notifications the oldest of low urgency is given up. A skin for which
// even then too much waits is late, and is let go.
type outbox struct {
	news chan struct{} // something waits, or it is late

	mu      sync.Mutex
	waiting []*frame
	late    bool
}

func newOutbox() *outbox { return &outbox{news: make(chan struct{}, 1)} }

// put adds frames. A late outbox takes none.
func (o *outbox) put(frames ...*frame) {
	if len(frames) == 0 {
		return
	}
	o.mu.Lock()
	if !o.late {
		o.waiting = append(o.waiting, frames...)
		if len(o.waiting) > crowded {
			o.waiting, o.late = relieve(o.waiting)
		}
	}
	o.mu.Unlock()
	select {
	case o.news <- struct{}{}:
	default: // the writer has yet to look
	}
}

// take returns the next frame, and whether the skin is late: then there is
// nothing more to come.
func (o *outbox) take() (f *frame, late bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.late || len(o.waiting) == 0 {
		o.waiting = nil // an idle skin keeps no memory
		return nil, o.late
	}
	f = o.waiting[0]
	o.waiting[0] = nil
	o.waiting = o.waiting[1:]
	return f, false
}

// relieve drops what is stale. What is left keeps its order.
func relieve(waiting []*frame) (left []*frame, late bool) {
	newest := make(map[string]*frame, len(waiting))
	tools, notices := 0, 0
	for _, f := range waiting {
		if f.key != "" {
			newest[f.key] = f
		}
	}
	for _, f := range waiting {
		if f.key != "" && newest[f.key] != f {
			continue
		}
		switch f.kind {
		case kindTool:
			tools++
		case kindNotice, kindStep:
			notices++
		}
		left = append(left, f)
	}
	left = slices.DeleteFunc(left, func(f *frame) bool {
		gives := notices > mostNotices && (f.low || f.kind == kindStep)
		if gives {
			notices--
		}
		return gives
	})
	return left, tools > mostTools || notices > mostNotices
}
