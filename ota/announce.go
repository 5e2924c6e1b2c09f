package ota

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
)

// announce logs and publishes a check-in, and publishes an event for each stranger (a robot that is not
// adopted) that the registry has removed. The check-ins of strangers, and of clients that may not connect yet,
// are together logged and published at most maxLogged times per minute. At most maxLogged removals per minute
// are published.
func (s *Service) announce(c device.CheckIn, r device.Robot, a device.Admission, now time.Time) {
	for _, id := range a.Gone {
		if ok, _ := s.forgotten.allow(now); ok { // a missing event does no harm, since each subscriber limits its number of robots
			s.o.Bus.Publish(id, "", event.RobotForgotten{})
		}
	}
	seen := event.RobotSeen{Board: c.Board, Firmware: c.Firmware, Address: c.Address, New: a.New, Waiting: a.Token == ""}
	if a.Token != "" && r.Adopted() {
		s.o.Bus.Publish(r.ID, "", seen)
		s.o.Log.Info("a robot has booted", "robot", r.ID, "board", r.Board, "firmware", r.Firmware, "address", r.Address)
		if a.Adopted {
			s.o.Bus.Publish(r.ID, "", event.RobotAdopted{})
			s.o.Log.Info("a robot is adopted automatically, because this appliance was just installed; undo this with perch robot forget", "robot", r.ID)
		}
		return
	}
	ok, dropped := s.strangers.allow(now)
	if dropped > 0 {
		s.o.Log.Warn("further robots that are not adopted have checked in; perch robot list shows them", "count", dropped)
	}
	if !ok {
		return
	}
	s.o.Bus.Publish(r.ID, "", seen)
	switch {
	case a.Repeats: // already logged; the robot checks in twice a minute until it is adopted
	case r.Contested():
		s.o.Log.Warn("several clients use the MAC address of a robot that is not adopted; perch robot list shows them",
			"robot", r.ID, "address", c.Address)
	case a.Token == "" && r.Bound:
		s.o.Log.Warn("another client uses the MAC address of a registered robot and waits to be adopted; if you erased the robot's flash, "+
			"adopt it with the code on its screen: perch robot adopt CODE", "robot", r.ID, "address", c.Address)
	case a.Token == "":
		s.o.Log.Warn("a robot waits to be adopted: perch robot adopt "+string(r.ID), "robot", r.ID, "address", c.Address)
	case a.New:
		s.o.Log.Warn("a new robot may only talk until you adopt it: perch robot adopt "+string(r.ID), "robot", r.ID, "address",
			c.Address)
	}
}

// maxLogged is the largest number of lines per minute that a logLimit permits.
const maxLogged = 30

// logLimit limits the number of log lines or events per minute. The zero value is ready to use.
type logLimit struct {
	mu      sync.Mutex
	until   time.Time // end of the current minute
	logged  int       // number of lines in the current minute
	dropped int       // number of dropped lines in the current minute
}

// allow reports whether a line may be logged. At the first line of a minute, dropped is the
// number of lines that were dropped in the latest earlier minute that had lines.
func (r *logLimit) allow(now time.Time) (ok bool, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !now.Before(r.until) || r.until.Sub(now) > time.Minute { // the second condition is true if the clock was set back
		dropped = r.dropped
		r.until, r.logged, r.dropped = now.Add(time.Minute), 0, 0
	}
	if r.logged >= maxLogged {
		r.dropped++
		return false, dropped
	}
	r.logged++
	return true, dropped
}

// Refusal describes requests of robots from one address, such as check-ins, that failed with the same
// error. A robot whose check-in fails is not registered, so the owner sees the robot only in the refusals
// and in the log.
type Refusal struct {
	At      time.Time `json:"at"` // time of the latest request
	Address string    `json:"address"`
	Device  string    `json:"device"` // device ID that the robot has sent; may be invalid
	Code    string    `json:"code"`
	Reason  string    `json:"reason"`
	Count   int       `json:"count"` // number of requests

	logged time.Time // when the refusal was last logged
}

const (
	maxRefusals        = 10          // stored refusals
	maxOfAddress       = 3           // stored refusals of one address, so that one address cannot displace all others
	refusalLogInterval = time.Minute // shortest interval between two log lines about a refusal
)

// refusals contains the latest refusals. The zero value is empty.
type refusals struct {
	mu    sync.Mutex
	list  []Refusal // newest first
	lines logLimit
}

// add stores a refusal and reports whether to log the refusal. dropped is the number of other log
// lines that were dropped, see logLimit.allow.
func (r *refusals) add(n Refusal) (log bool, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// With unknown_host and no_upgrade each ID has an entry, because several robots share the address of the proxy that
	// causes these errors. With any other error one entry per address and error is enough: the ID may be invented.
	i := slices.IndexFunc(r.list, func(other Refusal) bool {
		return other.Address == n.Address && other.Code == n.Code && (other.Device == n.Device || n.Code != "unknown_host" && n.Code != "no_upgrade")
	})
	if i >= 0 {
		n.Count, n.logged = r.list[i].Count, r.list[i].logged
		r.list = slices.Delete(r.list, i, i+1)
	} else {
		r.makeRoom(n.Address)
	}
	n.Count++
	if since := n.At.Sub(n.logged); since >= refusalLogInterval || since < 0 { // negative if the clock was set back
		n.logged = n.At
		log, dropped = r.lines.allow(n.At)
	}
	r.list = slices.Insert(r.list, 0, n)
	return log, dropped
}

// makeRoom drops the oldest refusal of an address if the address has maxOfAddress refusals, or else the
// oldest of all refusals if the list is full. r.mu must be held.
func (r *refusals) makeRoom(address string) {
	ofAddress, oldest := 0, -1
	for i, refusal := range r.list {
		if refusal.Address == address {
			ofAddress, oldest = ofAddress+1, i
		}
	}
	switch {
	case ofAddress >= maxOfAddress:
		r.list = slices.Delete(r.list, oldest, oldest+1)
	case len(r.list) == maxRefusals:
		r.list = r.list[:maxRefusals-1]
	}
}

// Refused returns the latest refusals, newest first.
func (s *Service) Refused() []Refusal {
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	return append([]Refusal{}, s.refusals.list...)
}

// ForgetRefused deletes the stored refusals.
func (s *Service) ForgetRefused() {
	s.refusals.mu.Lock()
	s.refusals.list = nil
	s.refusals.mu.Unlock()
	s.o.Bus.Publish("", "", event.Changed{What: "refused"})
}

// RecordRefusal stores and logs that a robot's request was refused because of err, such as the handshake of a
// WebSocket, or any request with a Host that is not the appliance's.
func (s *Service) RecordRefusal(r *http.Request, err error) {
	id, _ := identity(r)
	s.addRefusal(err, hostOf(r.RemoteAddr), id, time.Now())
}

// addRefusal stores and logs a request that has failed with an error.
func (s *Service) addRefusal(err error, address, device string, now time.Time) {
	n := Refusal{At: now, Address: address, Device: clip(device), Code: "failed", Reason: err.Error()}
	if f, ok := errors.AsType[*httpserver.Fault](err); ok {
		n.Code = f.Word
	}
	log, dropped := s.refusals.add(n)
	if dropped > 0 {
		s.o.Log.Warn("the requests of further robots were refused", "count", dropped)
	}
	if log {
		s.o.Log.Warn("a robot's request was refused", "address", n.Address, "name", n.Device, "err", n.Reason)
		s.o.Bus.Publish("", "", event.Changed{What: "refused"})
	}
}
