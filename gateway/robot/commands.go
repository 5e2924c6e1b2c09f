package robot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/gateway/robot/dialogue"
)

// Speak speaks a text, at once or after the turn under way. An emoji may begin it. For a closed channel
// the text is stored until the next hello, or until a robot has spoken it that speaks between talks.
// Queued is true if it waits.
func (s *Server) Speak(ctx context.Context, id device.ID, text string) (queued bool, err error) {
	text, err = dialogue.Speakable(text)
	if err != nil {
		return false, err
	}
	return s.orLater(ctx, id, Command{Thing: dialogue.CommandSay, Text: text})
}

// Alert shows a message on the robot's screen, with its short sound, no matter what it is doing. If
// its channel is closed the latest one is stored. The emotion may also be an icon of the firmware's;
// empty is neutral.
func (s *Server) Alert(ctx context.Context, id device.ID, status, message, emotion string) (queued bool, err error) {
	return s.orLater(ctx, id, Command{Thing: commandAlert, Text: message, Status: status, Emotion: cmp.Or(emotion, agent.Neutral.Name)})
}

// orLater carries a command out, or stores it for the robot's next hello.
func (s *Server) orLater(ctx context.Context, id device.ID, c Command) (queued bool, err error) {
	err = s.post(ctx, id, c.input())
	if c.Thing == commandAlert {
		err = s.orByMQTT(id, err, func(k *link) error { return k.send(c.alert()) })
	}
	if !errors.Is(err, dialogue.ErrOffline) {
		return false, err
	}
	if err := s.store(id, c); err != nil {
		return false, err
	}
	if c.Thing == dialogue.CommandSay && s.links.of(id).speaksNow() { // an alert would have been shown
		return false, nil
	}
	s.options.Bus.Publish(id, "", event.Command{Thing: c.Thing, State: event.CommandQueued})
	// A channel that has just opened may have read the store before.
	if err := s.post(ctx, id, dialogue.CollectCommands{}); err != nil && !errors.Is(err, dialogue.ErrOffline) {
		return true, err
	}
	return true, nil
}

// SayKept is Say for a sentence that must not be lost: it is stored before SayKept returns, until it
// was spoken. Queued is true if the robot's channel is closed.
func (s *Server) SayKept(ctx context.Context, id device.ID, text string) (queued bool, err error) {
	text, err = dialogue.Speakable(text)
	if err != nil {
		return false, err
	}
	if err := s.store(id, Command{Thing: dialogue.CommandSay, Text: text}); err != nil {
		return false, err
	}
	err = s.post(ctx, id, dialogue.CollectCommands{})
	switch {
	case !errors.Is(err, dialogue.ErrOffline):
		return false, err
	case s.links.of(id).speaksNow():
		return false, nil
	default:
		s.options.Bus.Publish(id, "", event.Command{Thing: dialogue.CommandSay, State: event.CommandQueued})
		return true, nil
	}
}

// errStranger is returned for a notification to a stranger.
var errStranger = &httpserver.Fault{Word: "not_adopted", HTTP: http.StatusConflict,
	Sentence: "notifications are not sent to a robot that nobody has adopted; perch robot adopt ROBOT adopts it"}

// Announce makes a robot speak a notification, at once or after the turn under way, or only show it,
// and publishes NotificationChanged with what has become of it. It returns dialogue.ErrOffline if the
// robot's channel is closed and it is not connected by MQTT, and another error for a stranger.
func (s *Server) Announce(ctx context.Context, id device.ID, a notice.Announcement) error {
	if !s.options.Robots.Trusts(id) {
		return errStranger
	}
	var in dialogue.Input = dialogue.Announce{Announcement: dialogue.Announcement{Text: a.Text, Notice: a.ID, Urgent: a.Urgent}}
	if !a.Speak {
		in = dialogue.ShowAlert{Alert: alertOf(a), Notice: a.ID}
	}
	return s.orByMQTT(id, s.post(ctx, id, in), func(k *link) error { return k.announce(a) })
}

// KeepOpen keeps a robot's channel open until a time; the zero time ends that. It does nothing for a
// closed channel.
func (s *Server) KeepOpen(id device.ID, until time.Time) {
	_ = s.post(s.ctx, id, dialogue.HoldChannel{Until: until})
}

// Feel changes the robot's face.
func (s *Server) Feel(ctx context.Context, id device.ID, e agent.Emotion) error {
	return s.orByMQTT(id, s.post(ctx, id, dialogue.ShowEmotion{Emotion: e}), func(k *link) error {
		return k.send(xiaozhi.LLM{Emotion: e.On(k.robot.Board).Name, Text: e.Emoji})
	})
}

// InjectText answers a text as if it had been spoken to the robot.
func (s *Server) InjectText(ctx context.Context, id device.ID, text string) error {
	return s.post(ctx, id, dialogue.InjectText{Text: text})
}

// Abort makes a robot quiet. What it speaks between talks is not spoken again.
func (s *Server) Abort(ctx context.Context, id device.ID) error {
	return s.orByMQTT(id, s.post(ctx, id, dialogue.Abort{}), func(k *link) error {
		k.announcer.skip()
		return nil
	})
}

// Reboot restarts a robot, which takes it a second to begin.
func (s *Server) Reboot(ctx context.Context, id device.ID) error {
	return s.orByMQTT(id, s.post(ctx, id, dialogue.Reboot{}), func(k *link) error { return k.send(xiaozhi.Reboot{}) })
}

// Hangup closes a robot's channel and its MQTT connection. It returns dialogue.ErrOffline if the
// robot has neither.
func (s *Server) Hangup(ctx context.Context, id device.ID, why string) error {
	err := s.post(ctx, id, dialogue.HangUp{Why: why})
	if k := s.links.of(id); k != nil {
		k.conn.Close()
		return nil
	}
	return err
}

// Call runs one of a robot's tools and returns its answer. Errors are those of package tools, or
// dialogue.ErrOffline.
func (s *Server) Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	r, err := s.sessions.of(id)
	if k := s.links.of(id); err != nil && k != nil {
		return k.call(ctx, tool, arguments)
	}
	if err != nil {
		return device.Result{}, err
	}
	return r.call(ctx, tool, arguments)
}

// Tools returns the tools that a robot lists, or listed when it was last here.
func (s *Server) Tools(id device.ID) []device.Tool {
	if r, err := s.sessions.of(id); err == nil {
		return r.toolbox.Tools()
	}
	if k := s.links.of(id); k != nil {
		return k.tools.Tools()
	}
	r, err := s.options.Robots.Get(id)
	if err != nil {
		return nil // it is unknown
	}
	return r.KnownTools()
}

// Open lists the adopted robots that can be reached: whose hello was answered on an open channel, or
// that are connected by MQTT. They may speak and show notifications.
func (s *Server) Open() []device.ID {
	reachable := s.greeted()
	for _, k := range s.links.all() {
		if _, err := s.sessions.of(k.robot.ID); err != nil {
			reachable = append(reachable, k.robot.ID)
		}
	}
	reachable = slices.DeleteFunc(reachable, func(id device.ID) bool { return !s.options.Robots.Trusts(id) })
	slices.Sort(reachable)
	return slices.Compact(reachable) // a talk may have ended in between
}

// Play makes a robot play a sound outside any turn, and returns when it begins to. It can be
// interrupted as speech can. Errors wrap fs.ErrNotExist for an unknown name; they are
// dialogue.ErrSpeaking while the robot speaks or a turn is under way, and dialogue.ErrOffline if its
// channel is closed: a sound does not wait.
func (s *Server) Play(ctx context.Context, id device.ID, name string) error {
	if _, err := s.sessions.of(id); err != nil {
		return err // before a sound is decoded in vain
	}
	pcm, err := s.options.Sounds.Load(ctx, name)
	if err != nil {
		return fmt.Errorf("play a sound: %w", err)
	}
	answer := make(chan error, 1)
	if err := s.post(ctx, id, dialogue.PlaySound{Sound: &dialogue.Sound{Name: name, PCM: pcm}, Answer: answer}); err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	default: // the session ended before it came to that
		return dialogue.ErrOffline
	}
}

// orByMQTT calls do if a robot's channel is closed, as err says, and it is connected by MQTT. Else it
// returns err.
func (s *Server) orByMQTT(id device.ID, err error, do func(*link) error) error {
	if k := s.links.of(id); errors.Is(err, dialogue.ErrOffline) && k != nil {
		return do(k)
	}
	return err
}
