package robot

import (
	"log/slog"
	"net/http"

	"perch/device"
	"perch/gateway/httpserver"
	"perch/gateway/robot/tools"
)

// Limits for all strangers together, and one for all adopted robots together.
const (
	maxStrangers      = 256      // open channels; each may take half a megabyte
	maxStrangerTurns  = 4        // utterances recognized at a time, and turns answered at a time
	strangerToolBytes = 2 << 20  // memory for strangers' lists of tools, in bytes of JSON
	adoptedToolBytes  = 16 << 20 // memory for the lists of tools of all adopted robots, in bytes of JSON
)

// slots is a semaphore.
type slots chan struct{}

// acquire takes a slot until release is called. It returns false if no slot is free.
func (s slots) acquire() (release func(), ok bool) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, true
	default:
		return nil, false
	}
}

// strangerLimits bounds what strangers use. A stranger is a robot that nobody has adopted.
type strangerLimits struct {
	options      *Options
	log          *slog.Logger // log for strangers, with a limited rate
	channels     slots        // one slot for each channel or MQTT connection
	utterances   slots        // one slot for each utterance, from its beginning until it is recognized
	turns        slots        // one slot for each turn that a brain answers
	tools        *tools.Budget
	adoptedTools *tools.Budget // for the tools of adopted robots
}

func newStrangerLimits(o *Options) *strangerLimits {
	return &strangerLimits{options: o, log: httpserver.LimitLogger(o.Log),
		channels: make(slots, maxStrangers), utterances: make(slots, maxStrangerTurns),
		turns: make(slots, maxStrangerTurns), tools: tools.NewBudget(strangerToolBytes), adoptedTools: tools.NewBudget(adoptedToolBytes)}
}

// errTooManyStrangers is returned to a stranger if maxStrangers are connected.
var errTooManyStrangers = &httpserver.Fault{Word: "too_many_strangers", HTTP: http.StatusServiceUnavailable,
	Sentence: "too many robots that nobody has adopted are connected; adopt this one, or try again later"}

// reserve counts a robot's channel until release is called. It returns errTooManyStrangers if the robot
// is a stranger and too many strangers are connected.
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

// budgetOf returns the budget that limits a robot's tools.
func (s *strangerLimits) budgetOf(id device.ID) *tools.Budget {
	if s.options.Robots.Trusts(id) {
		return s.adoptedTools
	}
	return s.tools
}

// logOf returns a log for messages about a robot. Its rate is limited. All strangers share one limit; each
// log of an adopted robot has its own.
func (s *strangerLimits) logOf(id device.ID) *slog.Logger {
	if !s.options.Robots.Trusts(id) {
		return s.log
	}
	return httpserver.LimitLogger(s.options.Log)
}
