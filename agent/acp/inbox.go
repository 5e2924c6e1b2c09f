package acp

import (
	"sync"

	"perch/limit"
)

// Bounds of what may wait for a turn that is speaking.
const (
	mostItems = 1024
	mostAsked = 16 // permissions
)

// inbox holds the events of a turn that have not been handled. Filling it never
// blocks. Adjacent text is joined, so an agent that writes faster than a robot
// speaks costs only the memory of its words.
type inbox struct {
	some chan struct{} // holds one element if there is something new

	mu     sync.Mutex
	items  []item // text as *joined
	bytes  int
	asked  int
	over   bool // something was left out
	closed bool
}

func newInbox() *inbox { return &inbox{some: make(chan struct{}, 1)} }

// enqueue reports whether the item was accepted. The end of the turn always is.
func (in *inbox) enqueue(it item) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false
	}
	select {
	case in.some <- struct{}{}:
	default:
	}
	switch it := it.(type) {
	case pulse:
		return true
	case text:
		if in.bytes+len(it) > limit.List {
			in.over = true
			return false
		}
		in.bytes += len(it)
		if last := len(in.items) - 1; last >= 0 {
			if before, ok := in.items[last].(*joined); ok {
				before.text = append(before.text, it...)
				return true
			}
		}
		return in.add(&joined{text: []byte(it)})
	case permission:
		if in.asked >= mostAsked {
			return false
		}
		in.asked++
	case ended:
		in.items = append(in.items, it)
		return true
	}
	return in.add(it)
}

func (in *inbox) add(it item) bool {
	if len(in.items) >= mostItems {
		in.over = true
		return false
	}
	in.items = append(in.items, it)
	return true
}

// joined is text that grows while it waits.
type joined struct{ text []byte }

func (*joined) isItem() {}

// pop returns the next item, or nil if the inbox is empty. over reports, once only
// the end remains, that something was left out.
func (in *inbox) pop() (it item, over bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.items) == 0 {
		return nil, in.over
	}
	it = in.items[0]
	in.items = in.items[1:]
	switch waited := it.(type) {
	case *joined:
		in.bytes -= len(waited.text)
		return text(waited.text), false
	case permission:
		in.asked--
	case ended:
		return it, in.over
	}
	return it, false
}

// close makes the inbox refuse all items, and returns the unanswered permissions.
func (in *inbox) close() []permission {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	var open []permission
	for _, it := range in.items {
		if p, ok := it.(permission); ok {
			open = append(open, p)
		}
	}
	in.items = nil
	return open
}
