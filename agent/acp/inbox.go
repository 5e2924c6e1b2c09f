package acp

import (
	"sync"

	"perch/limit"
)

// What may wait for a turn that is speaking.
const (
	mostItems = 1024
	mostAsked = 16 // permissions
)

// inbox holds what has happened in a turn and was not yet taken. Filling it
// never waits. Text that follows text is joined to it, so an agent that
// writes faster than a robot speaks costs no more than its words.
type inbox struct {
	some chan struct{} // holds one when there is something new

	mu     sync.Mutex
	items  []item // text as *joined
	bytes  int
	asked  int
	over   bool // something was left out
	closed bool
}

func newInbox() *inbox { return &inbox{some: make(chan struct{}, 1)} }

// put reports whether it took the item. The end is taken always.
func (in *inbox) put(it item) bool {
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

// take is what comes next, and nil where there is nothing. over reports, once
// there is nothing more but the end, that something was left out.
func (in *inbox) take() (it item, over bool) {
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

// close takes nothing more, and returns the permissions without an answer.
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
