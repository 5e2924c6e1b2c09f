package vccp

import (
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// use is when a session was last asked for something.
type use struct {
	last   time.Time
	asking int  // requests under way
	leaves bool // it has given way to another
}

// use takes note of a request within a session, and of its end.
func (d *Server) use(session string) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	u := d.used[session]
	if u == nil {
		return func() {} // there is no such session
	}
	u.asking++
	u.last = d.now()
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		u.asking--
		u.last = d.now()
	}
}

// makeRoom makes room for one more session, and reports whether there is some. The
// one that has been idle for longest gives way; one that has just been used does
// not.
func (d *Server) makeRoom() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopping {
		return false
	}
	open := map[string]bool{}
	staying := 0
	var idlest *mcp.ServerSession
	since := d.now().Add(-leastIdle)
	for s := range d.server.Sessions() {
		open[s.ID()] = true
		u := d.used[s.ID()]
		if u == nil || u.leaves { // not noted yet: it counts as being opened
			continue
		}
		staying++
		if u.asking == 0 && !u.last.After(since) {
			idlest, since = s, u.last
		}
	}
	maps.DeleteFunc(d.used, func(session string, _ *use) bool { return !open[session] })
	if staying+d.opening >= mostSessions {
		if idlest == nil {
			return false
		}
		d.used[idlest.ID()].leaves = true
		d.waiting.Go(func() { _ = idlest.Close() }) // its end is all that is wanted
	}
	d.opening++
	return true
}

// begun takes note of the session that was opened, if one was.
func (d *Server) begun(session string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opening--
	if session != "" {
		d.used[session] = &use{last: d.now()}
	}
}
