package ota

import (
	"sync"
	"time"

	"perch/device"
	"perch/event"
)

// announce tells the log and the bus of a check-in. Of strangers, who may come
// as often as they like, it tells some in a minute.
func (s *Service) announce(c device.CheckIn, r device.Robot, a device.Admission, now time.Time) {
	for _, gone := range a.Gone {
		if tell, _ := s.gone.take(now); tell { // others bound what they know of strangers themselves
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
	tell, before := s.strangers.take(now)
	if before > 0 {
		s.o.Log.Warn("more robots that nobody has adopted have come than are told of; perch devices lists them", "count", before)
	}
	if !tell {
		return
	}
	s.o.Bus.Publish(r.ID, "", seen)
	switch {
	case a.Repeats: // it asks twice a minute until it is adopted, and that was told
	case a.Token == "" && r.Bound:
		s.o.Log.Warn("another client waits that names itself by the MAC address of a robot that is here; if you erased that robot's flash, "+
			"adopt it by the code on its screen: perch adopt CODE", "robot", r.ID, "address", c.Address)
	case a.Token == "":
		s.o.Log.Warn("a robot waits for its owner; adopt it with: perch adopt "+string(r.ID), "robot", r.ID, "address", c.Address)
	case a.New:
		s.o.Log.Warn("a robot has come that may talk, and nothing else until you adopt it: perch adopt "+string(r.ID), "robot", r.ID, "address", c.Address)
	}
}

// mostTold are the strangers' check-ins that are told of in a minute.
const mostTold = 30

// ration says what may still be told of. The zero value is one that is full.
type ration struct {
	mu     sync.Mutex
	until  time.Time
	told   int
	untold int
}

// take reports whether one more may be told, and at the first of a new minute
// how many were not in the last.
func (r *ration) take(now time.Time) (ok bool, before int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !now.Before(r.until) || r.until.Sub(now) > time.Minute { // the clock was set back
		before = r.untold
		r.until, r.told, r.untold = now.Add(time.Minute), 0, 0
	}
	if r.told >= mostTold {
		r.untold++
		return false, before
	}
	r.told++
	return true, before
}
