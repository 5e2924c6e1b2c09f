package ota

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"perch/device"
	"perch/event"
)

// announce logs and publishes a check-in. Those of strangers are limited to mostLogged per
// minute.
func (s *Service) announce(c device.CheckIn, r device.Robot, a device.Admission, now time.Time) {
	for _, id := range a.Gone {
		if ok, _ := s.forgotten.allow(now); ok { // subscribers bound what they store of strangers
			s.o.Bus.Publish(id, "", event.RobotForgotten{})
		}
	}
	seen := event.RobotSeen{Board: c.Board, Firmware: c.Firmware, Address: c.Address, New: a.New, Waiting: a.Token == ""}
	if a.Token != "" && r.Adopted() {
		s.o.Bus.Publish(r.ID, "", seen)
		s.o.Log.Info("a robot has booted", "robot", r.ID, "board", r.Board, "firmware", r.Firmware, "address", r.Address)
		if a.Adopted {
			s.o.Bus.Publish(r.ID, "", event.RobotAdopted{})
			s.o.Log.Info("a robot is adopted, for this appliance was just installed; perch robot forget takes that back", "robot", r.ID)
		}
		return
	}
	ok, before := s.strangers.allow(now)
	if before > 0 {
		s.o.Log.Warn("more robots that nobody has adopted checked in than are logged; perch robot list lists them", "count", before)
	}
	if !ok {
		return
	}
	s.o.Bus.Publish(r.ID, "", seen)
	switch {
	case a.Repeats: // it asks twice a minute until it is adopted, and was logged before
	case r.Contested():
		s.o.Log.Warn("more than one client names itself by the MAC address of a robot that is not adopted; perch robot list shows them",
			"robot", r.ID, "address", c.Address)
	case a.Token == "" && r.Bound:
		s.o.Log.Warn("another client waits that names itself by the MAC address of a robot that is here; if you erased that robot's flash, "+
			"adopt it by the code on its screen: perch robot adopt CODE", "robot", r.ID, "address", c.Address)
	case a.Token == "":
		s.o.Log.Warn("a robot waits for its owner; adopt it with: perch robot adopt "+string(r.ID), "robot", r.ID, "address", c.Address)
	case a.New:
		s.o.Log.Warn("a robot has come that may talk, and nothing else until you adopt it: perch robot adopt "+string(r.ID), "robot", r.ID, "address",
			c.Address)
	}
}

// mostLogged is how many check-ins of strangers are logged per minute.
const mostLogged = 30

// logLimit bounds log lines per minute, at mostLogged. The zero value is ready to use.
type logLimit struct {
	mu      sync.Mutex
	until   time.Time
	logged  int
	dropped int
}

// allow reports whether one more line may be logged, and how many were dropped in a past
// minute.
func (r *logLimit) allow(now time.Time) (ok bool, before int) {
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

// Refusal is a check-in that was answered with an error. The robot is not registered, so its
// owner sees it only here and in the log.
type Refusal struct {
	At      time.Time `json:"at"` // of the latest
	Address string    `json:"address"`
	Device  string    `json:"device"` // as the robot sent it
	Code    string    `json:"code"`
	Reason  string    `json:"reason"`
	Count   int       `json:"count"` // from that address for that reason

	logged time.Time
}

// mostRefused bounds the stored refusals. A repeated one is logged once per refusedEvery.
const (
	mostRefused  = 10
	refusedEvery = time.Minute
)

// refusals are the latest refusals. The zero value is empty.
type refusals struct {
	mu    sync.Mutex
	list  []Refusal // newest first
	lines logLimit  // limits the log
}

// add stores a refusal, and reports whether to log it.
func (r *refusals) add(n Refusal) (log bool, before int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.list, func(k Refusal) bool { return k.Address == n.Address && k.Code == n.Code && (k.Device == n.Device || n.Code != "unknown_host" && n.Code != "no_upgrade") })
	if at >= 0 {
		n.Count, n.logged = r.list[at].Count, r.list[at].logged
		r.list = slices.Delete(r.list, at, at+1)
	} else if len(r.list) == mostRefused {
		r.list = r.list[:mostRefused-1]
	}
	n.Count++
	if since := n.At.Sub(n.logged); since >= refusedEvery || since < 0 { // the clock was set back
		n.logged = n.At
		log, before = r.lines.allow(n.At)
	}
	r.list = slices.Insert(r.list, 0, n)
	return log, before
}

// Refused returns the check-ins that were last refused, newest first.
func (s *Service) Refused() []Refusal {
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	return append([]Refusal{}, s.refusals.list...)
}

// TurnAway records and logs a robot's request that is answered with an error before it is read: of a
// check-in, or of a WebSocket.
func (s *Service) TurnAway(r *http.Request, err error) {
	id, _ := identity(r)
	s.refused(err, address(r.RemoteAddr), id, time.Now())
}

// refused records and logs a check-in that is answered with an error.
func (s *Service) refused(err error, address, device string, now time.Time) {
	n := Refusal{At: now, Address: address, Device: clip(device), Code: "failed", Reason: err.Error()}
	if f, is := errors.AsType[interface {
		error
		Code() string
	}](err); is {
		n.Code = f.Code()
	}
	log, before := s.refusals.add(n)
	if before > 0 {
		s.o.Log.Warn("more check-ins were refused than are logged", "count", before)
	}
	if log {
		s.o.Log.Warn("a check-in was refused", "address", n.Address, "name", n.Device, "err", n.Reason)
		s.o.Bus.Publish("", "", event.Changed{What: "refused"}) // no more often than it is logged
	}
}
