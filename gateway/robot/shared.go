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

// shared is the state that all sessions of a server share.
type shared struct {
	*lifetime
	*settings
	options   *Options // options given to NewServer; settings holds the latest values of the fields that Apply changes
	phrases   *phrases
	strangers *strangerLimits
	vision    *vision.Service
	streams   notify.Tickets
	scheduler *playback.Scheduler
	statuses  statuses
}

func newShared(o Options) *shared {
	ctx, stop := context.WithCancel(context.Background()) // ended by Close, which every user of a Server calls
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

// errNotAdopted is returned for a command that would have to be stored for a stranger.
var errNotAdopted = &httpserver.Fault{Word: "not_adopted", HTTP: http.StatusConflict,
	Sentence: "nothing is stored for a robot that nobody has adopted; adopt it, or try again while its channel is open"}

// store stores commands for an adopted robot, and publishes a rejection for each command that is
// dropped to make room. For a stranger it returns errNotAdopted.
func (s *shared) store(id device.ID, added ...Command) error {
	if !s.options.Robots.Trusts(id) {
		return errNotAdopted
	}
	dropped, err := s.options.Commands.add(id, time.Now(), added...)
	for _, c := range dropped {
		for _, e := range c.rejected("too much waits for this robot") {
			s.options.Bus.Publish(id, "", e)
		}
	}
	return err
}

// callTool runs one of a robot's tools. If the tool reports the robot's status, callTool also stores and
// publishes the status, no matter why the tool was called, because robots report their battery in no other way.
func (s *shared) callTool(ctx context.Context, c *tools.Client, id device.ID, session, tool string, arguments map[string]any) (device.Result, error) {
	result, err := c.Call(ctx, tool, arguments)
	if status, ok := tools.ParseStatus(tool, result.Text); ok && err == nil {
		s.statuses.set(id, status)
		s.options.Bus.Publish(id, session, status)
	}
	return result, err
}

// statuses holds the latest status that each adopted robot has reported.
type statuses struct {
	options *Options
	mu      sync.Mutex
	last    map[device.ID]event.RobotStatus
}

// lookup returns the latest status of a robot, or false if it has reported none.
func (s *statuses) lookup(id device.ID) (event.RobotStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, ok := s.last[id]
	return status, ok
}

// set stores the status of a robot, unless the robot is a stranger: many strangers could displace the
// statuses of adopted robots.
func (s *statuses) set(id device.ID, status event.RobotStatus) {
	if !s.options.Robots.Trusts(id) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[id] = status
}

// logOnce logs only the first fault of a kind: a robot may cause a fault with each packet, 17 times a
// second.
type logOnce struct{ done bool }

// warn logs a message and an error, unless it was called before.
func (o *logOnce) warn(log *slog.Logger, message string, err error) {
	if !o.done {
		log.Warn(message, "err", err)
	}
	o.done = true
}
