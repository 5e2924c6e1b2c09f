package robot

import (
	"cmp"
	"context"
	"errors"
	"perch/gateway/robot/dialogue"
	"slices"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
)

// Say has a text spoken, at once or after the present turn. An emoji may begin it.
// For a closed channel the text is kept until the next hello, or, where the robot
// speaks between talks, until it has spoken it.
func (s *Server) Say(ctx context.Context, id device.ID, text string) (queued bool, err error) {
	text, err = dialogue.Speakable(text)
	if err != nil {
		return false, err
	}
	return s.orLater(ctx, id, Command{Thing: dialogue.CommandSay, Text: text})
}

// Alert shows a message on the robot's screen, with its short sound, whatever
// it is doing. Where its channel is closed the latest one is kept. The emotion
// may also be an icon of the firmware's; empty is neutral.
func (s *Server) Alert(ctx context.Context, id device.ID, status, message, emotion string) (queued bool, err error) {
	return s.orLater(ctx, id, Command{Thing: commandAlert, Text: message, Status: status, Emotion: cmp.Or(emotion, agent.Neutral.Name)})
}

// orLater carries a command out, or keeps it for the robot's next hello.
func (s *Server) orLater(ctx context.Context, id device.ID, c Command) (queued bool, err error) {
	err = s.post(ctx, id, c.input())
	if errors.Is(err, dialogue.ErrOffline) && c.Thing == commandAlert {
		err = s.sendOutside(id, c.alert(), err)
	}
	if !errors.Is(err, dialogue.ErrOffline) {
		return false, err
	}
	if err := s.keep(id, c); err != nil {
		return false, err
	}
	if c.Thing == dialogue.CommandSay && s.tellsNow(id) { // an alert would have been shown
		return false, nil
	}
	s.options.Bus.Publish(id, "", event.Command{Thing: c.Thing, State: event.CommandQueued})
	// A channel that has opened meanwhile may have looked before that was kept.
	if err := s.post(ctx, id, dialogue.CollectCommands{}); err != nil && !errors.Is(err, dialogue.ErrOffline) {
		return true, err
	}
	return true, nil
}

// SayKept is Say for a sentence that must not be lost: it is stored before this
// returns, until it was spoken. Queued is true if the robot's channel is closed.
func (s *Server) SayKept(ctx context.Context, id device.ID, text string) (queued bool, err error) {
	text, err = dialogue.Speakable(text)
	if err != nil {
		return false, err
	}
	if err := s.keep(id, Command{Thing: dialogue.CommandSay, Text: text}); err != nil {
		return false, err
	}
	err = s.post(ctx, id, dialogue.CollectCommands{})
	switch {
	case !errors.Is(err, dialogue.ErrOffline):
		return false, err
	case s.tellsNow(id):
		return false, nil
	default:
		s.options.Bus.Publish(id, "", event.Command{Thing: dialogue.CommandSay, State: event.CommandQueued})
		return true, nil
	}
}

// tellsNow has a robot speak that speaks between talks, and reports whether it does so
// now: not in the quiet hours.
func (s *Server) tellsNow(id device.ID) bool {
	k := s.linkOf(id)
	if k == nil || !k.speaks() {
		return false
	}
	k.teller.wake()
	return !s.quiet(time.Now())
}

// quiet reports whether only what is urgent may be spoken unasked.
func (s *Server) quiet(now time.Time) bool { return s.options.Quiet != nil && s.options.Quiet(now) }

// Announce has a robot that can be reached speak a notification, at once or
// after the turn under way, or only show it, and publishes NotificationChanged with
// what has become of it. It returns ErrOffline where the robot's channel is closed
// and it is not connected by MQTT, and another error for a stranger.
func (s *Server) Announce(ctx context.Context, id device.ID, a notice.Announcement) error {
	if !s.options.Robots.Trusts(id) {
		return errStranger
	}
	var in dialogue.Input = dialogue.Announce{Announcement: dialogue.Announcement{Text: a.Text, Notice: a.ID, Urgent: a.Urgent}}
	if !a.Speak {
		in = dialogue.ShowAlert{Alert: alertOf(a), Notice: a.ID}
	}
	err := s.post(ctx, id, in)
	if k := s.linkOf(id); errors.Is(err, dialogue.ErrOffline) && k != nil {
		return k.announce(a)
	}
	return err
}

// alertOf is a notification on a robot's screen.
func alertOf(a notice.Announcement) xiaozhi.Alert {
	return xiaozhi.Alert{Status: "Perch", Message: a.Text, Emotion: agent.Neutral.Name}
}

// Hold keeps a robot's channel open until then; the zero time ends that.
func (s *Server) Hold(id device.ID, until time.Time) {
	// A robot whose channel is closed has none to hold.
	_ = s.post(s.ctx, id, dialogue.HoldChannel{Until: until})
}

// Open lists the adopted robots that can be reached: whose channel is open and whose
// hello was answered, or that are connected by MQTT. Those may speak and show notifications.
func (s *Server) Open() []device.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var open []device.ID
	for id := range s.links {
		if s.sessions[id] == nil && s.options.Robots.Trusts(id) {
			open = append(open, id)
		}
	}
	for id, r := range s.sessions {
		if r.greeted.Load() && s.options.Robots.Trusts(id) {
			open = append(open, id)
		}
	}
	slices.Sort(open)
	return open
}

// Feel has the robot wear a face.
func (s *Server) Feel(ctx context.Context, id device.ID, e agent.Emotion) error {
	err := s.post(ctx, id, dialogue.ShowEmotion{Emotion: e})
	if k := s.linkOf(id); errors.Is(err, dialogue.ErrOffline) && k != nil {
		return k.send(xiaozhi.LLM{Emotion: e.On(k.robot.Board).Name, Text: e.Emoji})
	}
	return err
}

// Hear takes a text as if it had been spoken to the robot.
func (s *Server) Hear(ctx context.Context, id device.ID, text string) error {
	return s.post(ctx, id, dialogue.InjectText{Text: text})
}

// Abort makes a robot quiet. What it speaks between talks is not spoken again.
func (s *Server) Abort(ctx context.Context, id device.ID) error {
	err := s.post(ctx, id, dialogue.Abort{})
	if k := s.linkOf(id); errors.Is(err, dialogue.ErrOffline) && k != nil {
		k.teller.skip()
		return nil
	}
	return err
}

// Reboot restarts a robot, which takes it a second to begin.
func (s *Server) Reboot(ctx context.Context, id device.ID) error {
	return s.sendOutside(id, xiaozhi.Reboot{}, s.post(ctx, id, dialogue.Reboot{}))
}

// Hangup closes a robot's channel, and its MQTT connection. It returns ErrOffline
// where there is neither.
func (s *Server) Hangup(ctx context.Context, id device.ID, why string) error {
	err := s.post(ctx, id, dialogue.HangUp{Why: why})
	if k := s.linkOf(id); k != nil {
		k.conn.Close()
		return nil
	}
	return err
}

// Call runs one of a robot's tools and returns what it answered.
func (s *Server) Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	r, err := s.session(id)
	if k := s.linkOf(id); err != nil && k != nil {
		return k.call(ctx, tool, arguments)
	}
	if err != nil {
		return device.Result{}, err
	}
	return r.call(ctx, tool, arguments)
}

// Questions are those that wait for an answer, the oldest first.
func (s *Server) Questions() []agent.Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := []agent.Question{}
	for _, r := range s.sessions {
		if q := r.question.Load(); q != nil {
			open = append(open, *q)
		}
	}
	slices.SortFunc(open, func(a, b agent.Question) int { return a.Asked.Compare(b.Asked) })
	return open
}

// asking is the session that waits for an answer to a question.
func (s *Server) asking(id string) (*running, *agent.Question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.sessions {
		if q := r.question.Load(); q != nil && q.ID == id {
			return r, q
		}
	}
	return nil, nil
}

// Reply answers a question by its id, instead of the people near the robot. It returns agent.ErrNoQuestion where that does not wait.
func (s *Server) Reply(id string, allow bool) error {
	r, q := s.asking(id)
	// Who takes the question answers it; what comes after is too late.
	if q == nil || !r.question.CompareAndSwap(q, nil) {
		return agent.ErrNoQuestion
	}
	err := s.post(s.ctx, q.Robot, dialogue.DecideQuestion{ID: id, Allow: allow})
	if errors.Is(err, dialogue.ErrOffline) {
		return agent.ErrNoQuestion // the channel has just closed, which was a no
	}
	return err
}

// mostStatuses are kept; there are fewer robots.
const mostStatuses = 1000

// Status is what a robot has last reported of itself, or false where it has not since
// the appliance started.
func (s *Server) Status(id device.ID) (event.RobotStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, known := s.statuses[id]
	return status, known
}

// keepStatus keeps it of an adopted robot; strangers could push out all others.
func (s *Server) keepStatus(id device.ID, status event.RobotStatus) {
	if !s.options.Robots.Trusts(id) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.statuses) >= mostStatuses { // robots that were forgotten
		clear(s.statuses)
	}
	s.statuses[id] = status
}

// Tools returns what a robot lists, or listed when it was last here.
func (s *Server) Tools(id device.ID) []device.Tool {
	if r, err := s.session(id); err == nil {
		return r.toolbox.Tools()
	}
	if k := s.linkOf(id); k != nil {
		return k.toolbox.Tools()
	}
	r, err := s.options.Robots.Get(id)
	if err != nil {
		return nil // it is unknown
	}
	return r.KnownTools()
}

// Mute drops a robot's sound on arrival, also in later sessions, or ends that.
func (s *Server) Mute(id device.ID, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.muted[id] = true
	} else {
		delete(s.muted, id)
	}
	if r, open := s.sessions[id]; open {
		r.muted.Store(on)
	}
}
