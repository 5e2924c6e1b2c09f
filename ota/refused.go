package ota

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// Refusal is a check-in that was answered with an error: to its owner the robot
// has never been here, unless he is told.
type Refusal struct {
	At      time.Time `json:"at"` // the latest
	Address string    `json:"address"`
	Device  string    `json:"device"` // as it named itself
	Code    string    `json:"code"`
	Reason  string    `json:"reason"`
	Count   int       `json:"count"` // of that address and for that reason
}

// mostRefused are remembered, and refusedEvery is how often one that comes again
// is told of in the log.
const (
	mostRefused  = 10
	refusedEvery = time.Minute
)

// refusals are the latest. The zero value has none.
type refusals struct {
	mu   sync.Mutex
	list []remembered // newest first
	told ration       // of the log's lines
}

type remembered struct {
	Refusal
	told time.Time
}

// note remembers a refusal, and reports whether the log is to have it.
func (r *refusals) note(n Refusal) (tell bool, before int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.list, func(k remembered) bool { return k.Address == n.Address && k.Code == n.Code })
	entry := remembered{}
	if at >= 0 {
		entry = r.list[at]
		r.list = slices.Delete(r.list, at, at+1)
	} else if len(r.list) == mostRefused {
		r.list = r.list[:mostRefused-1]
	}
	n.Count = entry.Count + 1
	entry.Refusal = n
	if since := n.At.Sub(entry.told); since >= refusedEvery || since < 0 { // the clock was set back
		entry.told = n.At
		tell, before = r.told.take(n.At)
	}
	r.list = slices.Insert(r.list, 0, entry)
	return tell, before
}

// Refused returns the check-ins that were last refused, newest first.
func (s *Service) Refused() []Refusal {
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	list := make([]Refusal, 0, len(s.refusals.list))
	for _, r := range s.refusals.list {
		list = append(list, r.Refusal)
	}
	return list
}

// refused remembers a check-in that gets an error, and tells of it.
func (s *Service) refused(err error, address, device string, now time.Time) {
	n := Refusal{At: now, Address: address, Device: clip(device), Code: "failed", Reason: err.Error()}
	var f *fault
	if errors.As(err, &f) {
		n.Code = f.code
	}
	tell, before := s.refusals.note(n)
	if before > 0 {
		s.o.Log.Warn("more check-ins were refused than are told of", "count", before)
	}
	if tell {
		s.o.Log.Warn("a check-in was refused", "address", n.Address, "name", n.Device, "err", n.Reason)
	}
}
