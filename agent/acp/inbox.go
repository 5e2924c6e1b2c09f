package acp

import (
	"sync"

	"perch/limit"
)

// Limits of an inbox.
const (
	maxItems       = 1024
	maxPermissions = 16
)

// inbox holds the events of a turn that have not been handled yet. Adding an event never
// blocks. Adjacent text is joined, so that an agent that writes faster than the robot
// speaks needs memory only for the text itself.
type inbox struct {
	filled chan struct{} // holds one element if items were added, or the agent gave a sign of life, since the last receive

	mu          sync.Mutex
	items       []item // text and thoughts are stored as *joinedText
	bytes       int    // bytes of text in items
	permissions int    // permissions in items
	overflow    bool   // whether text for the person, a tool's update or a permission was dropped because the inbox was full
	closed      bool   // whether close was called
}

func newInbox() *inbox { return &inbox{filled: make(chan struct{}, 1)} }

// enqueue adds an item and reports whether there was room for the item. There is always room
// for the end of the turn. A pulse is not stored, and only wakes the receiver of filled.
// After close, enqueue adds nothing and returns false.
func (in *inbox) enqueue(it item) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false
	}
	select {
	case in.filled <- struct{}{}:
	default:
	}
	switch it := it.(type) {
	case pulse:
		return true
	case text:
		return in.join(string(it), false)
	case thought:
		return in.join(string(it), true)
	case permission:
		if in.permissions >= maxPermissions {
			return false
		}
		in.permissions++
	case ended:
		in.items = append(in.items, it)
		return true
	}
	return in.add(it)
}

// join adds text to the last item, or appends a new item if the last item is of another kind.
// It drops text and thoughts that do not fit, returns false for them, and sets overflow for
// text. The caller holds mu.
func (in *inbox) join(s string, isThought bool) bool {
	if in.bytes+len(s) > limit.List || isThought && len(in.items) >= maxItems/2 {
		in.overflow = in.overflow || !isThought
		return false
	}
	in.bytes += len(s)
	if last := len(in.items) - 1; last >= 0 {
		if previous, ok := in.items[last].(*joinedText); ok && previous.isThought == isThought {
			previous.text = append(previous.text, s...)
			return true
		}
	}
	return in.add(&joinedText{[]byte(s), isThought})
}

// add appends an item if there is room, and reports whether there is. The caller holds mu.
func (in *inbox) add(it item) bool {
	if len(in.items) >= maxItems {
		in.overflow = true
		return false
	}
	in.items = append(in.items, it)
	return true
}

// joinedText is text or a thought in an inbox; further text can be appended.
type joinedText struct {
	text      []byte
	isThought bool
}

func (*joinedText) isItem() {}

// pop returns the next item, or nil if the inbox is empty. When it returns the end of the
// turn or nil, it also reports whether something was dropped because the inbox was full.
func (in *inbox) pop() (it item, overflow bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.items) == 0 {
		return nil, in.overflow
	}
	it = in.items[0]
	in.items = in.items[1:]
	switch it := it.(type) {
	case *joinedText:
		if in.bytes -= len(it.text); it.isThought {
			return thought(it.text), false
		}
		return text(it.text), false
	case permission:
		in.permissions--
	case ended:
		return it, in.overflow
	}
	return it, false
}

// close makes the inbox refuse further items, and returns the permissions that it holds.
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
