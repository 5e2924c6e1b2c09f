package ota

import (
	"sync"
	"time"

	"perch/device"
	"perch/event"
)

// announce logs and publishes a check-in. Check-ins of strangers, which may come
// often, are limited to mostLogged a minute.
func (s *Service) announce(c device.CheckIn, r device.Robot, a device.Admission, now time.Time) {
	for _, gone := range a.Gone {
		if ok, _ := s.gone.take(now); ok { // others bound what they keep of strangers themselves
			s.o.Bus.Publish(gone, "", event.RobotForgotten{})
		}
	}
	seen := event.RobotSeen{Board: c.Board, Firmware: c.Firmware, Address: c.Address, New: a.New, Waiting: a.Token == ""}
	if a.Token != "" && r.Adopted() {
		s.o.Bus.Publish(r.ID, "", seen)
		s.o.Log.Info("a robot has booted", "robot", r.ID, "board", r.Board, "firmware", r.Firmware, "address", r.Address)
		if a.Adopted {
			s.o.Bus.Publish(r.ID, "", event.RobotAdopted{})
			s.o.Log.Info("a robot is adopted, for this appliance was just installed; perch forget takes that back", "robot", r.ID)
		}
		return
	}
	ok, before := s.strangers.take(now)
	if before > 0 {
		s.o.Log.Warn("more robots that nobody has adopted checked in than are logged; perch devices lists them", "count", before)
	}
	if !ok {
		return
	}
	s.o.Bus.Publish(r.ID, "", seen)
	switch {
	case a.Repeats: // it asks twice a minute until it is adopted, and that was logged
	case a.Token == "" && r.Bound:
		s.o.Log.Warn("another client waits that names itself by the MAC address of a robot that is here; if you erased that robot's flash, "+
			"adopt it by the code on its screen: perch adopt CODE", "robot", r.ID, "address", c.Address)
	case a.Token == "":
		s.o.Log.Warn("a robot waits for its owner; adopt it with: perch adopt "+string(r.ID), "robot", r.ID, "address", c.Address)
	case a.New:
		s.o.Log.Warn("a robot has come that may talk, and nothing else until you adopt it: perch adopt "+string(r.ID), "robot", r.ID, "address",
			c.Address)
	}
}

// mostLogged is how many check-ins of strangers are logged in a minute.
const mostLogged = 30

// ration limits log lines by the minute. The zero value is ready.
type ration struct {
	mu      sync.Mutex
	until   time.Time
	logged  int
	dropped int
}

// take reports whether one more may be logged, and in a new minute first how many
// were dropped in the previous one.
func (r *ration) take(now time.Time) (ok bool, before int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !now.Before(r.until) || r.until.Sub(now) > time.Minute { // the clock was set back
		before = r.dropped
		r.until, r.logged, r.dropped = now.Add(time.Minute), 0, 0
	}
	if r.logged >= mostLogged {
		r.dropped++
		return false, before
	}
	r.logged++
	return true, before
}
