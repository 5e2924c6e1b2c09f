package robot

import (
	"errors"
	"log/slog"
	"net/http"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/tools"
	"sync"
	"time"

	"perch/device"
	"perch/event"
	"perch/gateway/door"
)

// pendingRecords are what a session has learnt that belongs into the appliance's
// records and is not there yet: all of it, as long as the robot is a stranger.
type pendingRecords struct {
	mu     sync.Mutex
	record *SessionRecord
	echo   *bool
	tools  []device.Tool // nil where there is no new list
}

// learn notes what is to be kept.
func (s *session) learn(note func(*pendingRecords)) {
	s.pending.mu.Lock()
	defer s.pending.mu.Unlock()
	note(&s.pending)
}

// keep reports whether the robot's owner has adopted it, and if so has all kept
// that was learnt. It may wait for the disk.
func (s *session) keep() (trusted bool) {
	if !s.Robots.Trusts(s.robot.ID) {
		return false
	}
	u := &s.pending
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.record != nil {
		s.Records.opened(*u.record)
	}
	if u.echo != nil {
		s.Robots.KeepEcho(s.robot.ID, *u.echo)
	}
	if u.tools != nil {
		s.Robots.KeepTools(s.robot.ID, u.tools)
	}
	u.record, u.echo, u.tools = nil, nil, nil
	return true
}

// errNotAdopted is returned where something would have to be kept for a stranger.
var errNotAdopted = &door.Fault{Word: "not_adopted", HTTP: http.StatusConflict,
	Sentence: "nothing is kept for a robot that nobody has adopted; adopt it, or try again while its channel is open"}

// errStranger is returned for a notification to a stranger.
var errStranger = &door.Fault{Word: "not_adopted", HTTP: http.StatusConflict,
	Sentence: "notifications are not sent to a robot that nobody has adopted; perch robot adopt ROBOT adopts it"}

// keep stores commands for an adopted robot, and publishes which were dropped.
func (s *Server) keep(id device.ID, added ...Command) error {
	if !s.options.Robots.Trusts(id) {
		return errNotAdopted
	}
	givenUp, err := s.options.Commands.add(id, time.Now(), added...)
	for _, c := range givenUp {
		s.options.Bus.Publish(id, "", event.Command{Thing: c.Thing, State: event.CommandRejected, Reason: "too much waits for this robot"})
	}
	return err
}

// keepUnspoken keeps what a session that has ended was still to speak. What had
// waited before is still kept, and notifications are kept elsewhere.
func (s *Server) keepUnspoken(ended *loop) {
	var unspoken []Command
	for _, text := range ended.state.Unspoken() {
		unspoken = append(unspoken, Command{Thing: dialogue.CommandSay, Text: text})
	}
	if len(unspoken) == 0 {
		return
	}
	if err := s.keep(ended.robot.ID, unspoken...); err != nil && !errors.Is(err, errNotAdopted) {
		ended.log.Error("what was to be spoken is lost", "err", err)
	}
}

// The bounds of the tools of all robots with an open channel, and of all strangers, in bytes of
// JSON.
const (
	adoptedToolBytes  = 16 << 20
	strangerToolBytes = 2 << 20
)

// mostStrangers bounds strangers' channels: each may take half a megabyte.
const mostStrangers = 256

// strangerLimits are shared by all strangers, who may cost others little.
type strangerLimits struct {
	log        *slog.Logger   // what they do is logged seldom
	refused    loggedRefusals // robots that were turned away
	channels   chan struct{}  // a slot for each that is open
	utterances chan struct{}  // for each that is being recognized
	turns      chan struct{}  // for each that is being answered
	tools      *tools.Budget
}

func newStrangerLimits(log *slog.Logger) strangerLimits {
	return strangerLimits{log: door.Seldom(log), channels: make(chan struct{}, mostStrangers),
		utterances: make(chan struct{}, mostStrangerTurns), turns: make(chan struct{}, mostStrangerTurns), tools: tools.NewBudget(strangerToolBytes)}
}

var errTooManyStrangers = &door.Fault{Word: "too_many_strangers", HTTP: http.StatusServiceUnavailable,
	Sentence: "too many robots that nobody has adopted are connected; adopt this one, or try again later"}

// reserve takes a slot for a robot's channel. leave gives it back.
func (s *Server) reserve(id device.ID) (leave func(), err error) {
	if s.options.Robots.Trusts(id) {
		return func() {}, nil
	}
	select {
	case s.strangers.channels <- struct{}{}:
		return func() { <-s.strangers.channels }, nil
	default:
		return nil, errTooManyStrangers
	}
}

// toolLimitOf is the memory limit that a robot's tools count towards.
func (s *Server) toolLimitOf(id device.ID) *tools.Budget {
	if s.options.Robots.Trusts(id) {
		return s.tools
	}
	return s.strangers.tools
}

// logOf is where to log what a robot does. What strangers do is logged seldom, all
// of them together, and what the owner's robots do as seldom for each.
func (s *Server) logOf(id device.ID) *slog.Logger {
	if !s.options.Robots.Trusts(id) {
		return s.strangers.log
	}
	return door.Seldom(s.options.Log)
}
