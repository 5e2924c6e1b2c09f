package robot

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/gateway/robot/notify"
	"perch/gateway/robot/playback"
	"perch/gateway/robot/tools"
	"perch/gateway/robot/vision"
)

// shared is what all sessions of a server share.
type shared struct {
	*lifetime
	*settings
	options   *Options // as given to NewServer: fields that Apply changes are in settings
	phrases   *phrases
	strangers *strangerLimits
	vision    *vision.Service
	streams   notify.Tickets
	scheduler *playback.Scheduler
	statuses  statuses
}

func newShared(o Options) *shared {
	ctx, stop := context.WithCancel(context.Background()) // ended by Close, which every owner calls
	s := &shared{lifetime: &lifetime{ctx: ctx, stop: stop}, settings: &settings{}, options: &o, scheduler: playback.NewScheduler(),
		statuses: statuses{options: &o, last: map[device.ID]event.RobotStatus{}}}
	s.apply(o)
	s.phrases = newPhrases(s.lifetime, s.settings, o.Log)
	s.strangers = newStrangerLimits(s.options)
	s.vision = vision.New(vision.Options{Bus: o.Bus, Mind: o.Mind, Robots: o.Robots, Log: s.strangers.logOf,
		Prepare: func(l *agent.Look) {
			o := s.current.Load()
			own := o.Character(l.Robot)
			l.Language, l.Brain, l.Now = own.Speech.Language, own.Brain, l.Now.In(o.Zone)
		},
		Phrase: func(language, name string) string { return s.current.Load().Phrases(language, name) }})
	return s
}

// errNotAdopted is returned if something would have to be stored for a stranger.
var errNotAdopted = &httpserver.Fault{Word: "not_adopted", HTTP: http.StatusConflict,
	Sentence: "nothing is kept for a robot that nobody has adopted; adopt it, or try again while its channel is open"}

// store stores commands for an adopted robot, and publishes which were dropped.
func (s *shared) store(id device.ID, added ...Command) error {
	if !s.options.Robots.Trusts(id) {
		return errNotAdopted
	}
	dropped, err := s.options.Commands.add(id, time.Now(), added...)
	for _, c := range dropped {
		s.options.Bus.Publish(id, "", event.Command{Thing: c.Thing, State: event.CommandRejected, Reason: "too much waits for this robot"})
	}
	return err
}

// call runs one of a robot's tools. It publishes the status that a robot answers to any caller: its
// battery is reported nowhere else.
func (s *shared) call(ctx context.Context, c *tools.Client, id device.ID, session, tool string, arguments map[string]any) (device.Result, error) {
	answer, err := c.Call(ctx, tool, arguments)
	if status, ok := tools.ParseStatus(tool, answer.Text); ok && err == nil {
		s.statuses.set(id, status)
		s.options.Bus.Publish(id, session, status)
	}
	return answer, err
}

// statuses are what adopted robots have last reported of themselves.
type statuses struct {
	options *Options
	mu      sync.Mutex
	last    map[device.ID]event.RobotStatus
}

// mostStatuses are stored; there are fewer robots.
const mostStatuses = 1000

// lookup returns a robot's status, if it is known.
func (s *statuses) lookup(id device.ID) (event.RobotStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, known := s.last[id]
	return status, known
}

// set stores the status of an adopted robot; strangers could push out all others.
func (s *statuses) set(id device.ID, status event.RobotStatus) {
	if !s.options.Robots.Trusts(id) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) >= mostStatuses { // robots that were forgotten
		clear(s.last)
	}
	s.last[id] = status
}

// logOnce logs the first fault of a kind, which may come seventeen times a second.
type logOnce struct{ done bool }

func (o *logOnce) warn(log *slog.Logger, what string, err error) {
	if !o.done {
		log.Warn(what, "err", err)
	}
	o.done = true
}
