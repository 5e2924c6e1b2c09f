package robot

import (
	"sync"

	"perch/device"
)

// unsaved is what a session has learnt for the appliance's records. It is saved once the robot's
// owner has adopted it: nothing of strangers is stored.
type unsaved struct {
	options *Options
	robot   device.ID

	mu     sync.Mutex
	record *SessionRecord
	echo   *bool
	tools  []device.Tool // nil if the list has not changed
}

// set changes what is unsaved.
func (u *unsaved) set(change func(*unsaved)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(u)
}

// save reports whether the robot is adopted, and if so saves everything. It may wait for the disk.
func (u *unsaved) save() (trusted bool) {
	if !u.options.Robots.Trusts(u.robot) {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.record != nil {
		u.options.Records.opened(*u.record)
	}
	if u.echo != nil {
		u.options.Robots.KeepEcho(u.robot, *u.echo)
	}
	if u.tools != nil {
		u.options.Robots.KeepTools(u.robot, u.tools)
	}
	u.record, u.echo, u.tools = nil, nil, nil
	return true
}
