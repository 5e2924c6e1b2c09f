package ota

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// Refusal is a check-in that was answered with an error. The robot is in no list,
// so its owner learns of it only here and in the log.
type Refusal struct {
	At      time.Time `json:"at"` // the latest
	Address string    `json:"address"`
	Device  string    `json:"device"` // as it named itself
	Code    string    `json:"code"`
	Reason  string    `json:"reason"`
	Count   int       `json:"count"` // of that address and for that reason
}

// mostRefused are kept, and a refusal that repeats is logged once per
// refusedEvery.
const (
	mostRefused  = 10
	refusedEvery = time.Minute
)

// refusals are the latest. The zero value has none.
type refusals struct {
	mu    sync.Mutex
	list  []remembered // newest first
	lines ration       // of the log
}

type remembered struct {
	Refusal
	logged time.Time
}

// note keeps a refusal, and reports whether to log it.
func (r *refusals) note(n Refusal) (log bool, before int) {
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
	if since := n.At.Sub(entry.logged); since >= refusedEvery || since < 0 { // the clock was set back
		entry.logged = n.At
		log, before = r.lines.take(n.At)
	}
	r.list = slices.Insert(r.list, 0, entry)
	return log, before
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

// refused keeps and logs a check-in that is answered with an error.
func (s *Service) refused(err error, address, device string, now time.Time) {
	n := Refusal{At: now, Address: address, Device: clip(device), Code: "failed", Reason: err.Error()}
	if f, is := errors.AsType[*fault](err); is {
		n.Code = f.code
	}
	log, before := s.refusals.note(n)
	if before > 0 {
		s.o.Log.Warn("more check-ins were refused than are logged", "count", before)
	}
	if log {
		s.o.Log.Warn("a check-in was refused", "address", n.Address, "name", n.Device, "err", n.Reason)
	}
}
