package robot

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"perch/device"
	"perch/gateway/httpserver"
	"perch/gateway/robot/tools"
)

// Limits of all robots that nobody has adopted, who may cost others little.
const (
	mostStrangers     = 256 // channels: each may take half a megabyte
	mostStrangerTurns = 4   // utterances that are recognized at a time, and as many answers
	strangerToolBytes = 2 << 20
	adoptedToolBytes  = 16 << 20 // of all adopted robots with an open channel
)

// slots are a limited number of things at a time.
type slots chan struct{}

// acquire reserves a slot until release is called, if one is free.
func (s slots) acquire() (release func(), ok bool) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, true
	default:
		return nil, false
	}
}

// strangerLimits bounds what robots use that nobody has adopted.
type strangerLimits struct {
	options    *Options
	log        *slog.Logger // rarely written to
	refused    loggedRefusals
	channels   slots
	utterances slots // from where they begin until they are recognized
	turns      slots // that are being answered
	tools      *tools.Budget
	adopted    *tools.Budget
}

func newStrangerLimits(o *Options) *strangerLimits {
	return &strangerLimits{options: o, log: httpserver.LimitLogger(o.Log),
		channels: make(slots, mostStrangers), utterances: make(slots, mostStrangerTurns),
		turns: make(slots, mostStrangerTurns), tools: tools.NewBudget(strangerToolBytes), adopted: tools.NewBudget(adoptedToolBytes)}
}

var errTooManyStrangers = &httpserver.Fault{Word: "too_many_strangers", HTTP: http.StatusServiceUnavailable,
	Sentence: "too many robots that nobody has adopted are connected; adopt this one, or try again later"}

// reserve reserves a robot's channel until release is called.
func (s *strangerLimits) reserve(id device.ID) (release func(), err error) {
	if s.options.Robots.Trusts(id) {
		return func() {}, nil
	}
	release, ok := s.channels.acquire()
	if !ok {
		return nil, errTooManyStrangers
	}
	return release, nil
}

// budgetOf returns the budget of a robot's tools.
func (s *strangerLimits) budgetOf(id device.ID) *tools.Budget {
	if s.options.Robots.Trusts(id) {
		return s.adopted
	}
	return s.tools
}

// logOf returns where to log what a robot does. What strangers do is rarely logged, all of them
// together, and what the owner's robots do as rarely for each.
func (s *strangerLimits) logOf(id device.ID) *slog.Logger {
	if !s.options.Robots.Trusts(id) {
		return s.log
	}
	return httpserver.LimitLogger(s.options.Log)
}

// loggedRefusals are when it was last logged that a robot was refused.
type loggedRefusals struct {
	mu sync.Mutex
	at map[device.ID]time.Time
}

const (
	refusalLogEvery = time.Minute
	mostRefusals    = 1000
)

// isNew reports whether a refusal is to be logged now.
func (r *loggedRefusals) isNew(id device.ID, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.at[id]) < refusalLogEvery {
		return false
	}
	if r.at == nil || len(r.at) >= mostRefusals {
		r.at = map[device.ID]time.Time{} // somebody invents robots
	}
	r.at[id] = now
	return true
}
