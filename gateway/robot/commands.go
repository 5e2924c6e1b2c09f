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

// Speak makes a robot speak a text, at once or after the turn under way. The text may begin with an
// emoji, which sets the face. While the robot's channel is closed the text is stored until it is spoken;
// queued is true if the text is stored and the robot cannot speak it now.
func (s *Server) Speak(ctx context.Context, id device.ID, text string) (queued bool, err error) {
	text, err = dialogue.Speakable(text)
	if err != nil {
		return false, err
	}
	return s.doOrStore(ctx, id, Command{Thing: dialogue.CommandSay, Text: text})
}

// Alert shows a message on the robot's screen at once, even while the robot speaks, and plays the
// firmware's short sound. If the robot cannot be reached, the alert is stored in place of an earlier one,
// and queued is true. emotion names an emotion or an icon of the firmware; empty means neutral.
func (s *Server) Alert(ctx context.Context, id device.ID, status, message, emotion string) (queued bool, err error) {
	return s.doOrStore(ctx, id, Command{Thing: commandAlert, Text: message, Status: status, Emotion: cmp.Or(emotion, agent.Neutral.Name)})
}

// doOrStore carries a command out, or stores it if the robot cannot be reached.
func (s *Server) doOrStore(ctx context.Context, id device.ID, c Command) (queued bool, err error) {
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
	if c.Thing == dialogue.CommandSay && s.links.of(id).speakStored() {
		return false, nil
	}
	s.publishQueued(id, c)
	// A channel that opened in the meantime may have read the queue before the command was stored.
	if err := s.post(ctx, id, dialogue.CollectCommands{}); err != nil && !errors.Is(err, dialogue.ErrOffline) {
		return true, err
	}
	return true, nil
}

// publishQueued publishes that a command waits for its robot.
func (s *shared) publishQueued(id device.ID, c Command) {
	s.options.Bus.Publish(id, "", event.Command{Thing: c.Thing, State: event.CommandQueued})
	if c.Thing == dialogue.CommandSay {
		s.options.Bus.Publish(id, "", event.Speech{Text: c.Text, State: event.SpeechWaiting})
	}
}

// SpeakDurably is like Speak for a text that must not be lost: it is stored before SpeakDurably returns, and
// deleted once it is spoken. queued is as for Speak.
func (s *Server) SpeakDurably(ctx context.Context, id device.ID, text string) (queued bool, err error) {
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
	case s.links.of(id).speakStored():
		return false, nil
	default:
		s.publishQueued(id, Command{Thing: dialogue.CommandSay, Text: text})
		return true, nil
	}
}

// errStranger is returned for a notification to a stranger, a robot that nobody has adopted.
var errStranger = &httpserver.Fault{Word: "not_adopted", HTTP: http.StatusConflict,
	Sentence: "notifications are not sent to a robot that nobody has adopted; perch robot adopt ROBOT adopts it"}

// Announce makes a robot speak a notification, at once or after the turn under way, or only show it. The
// outcome is published as NotificationChanged. Announce returns dialogue.ErrOffline if the robot cannot
// be reached, and another error if the robot is a stranger.
func (s *Server) Announce(ctx context.Context, id device.ID, a notice.Announcement) error {
	if !s.options.Robots.Trusts(id) {
		return errStranger
	}
	var in dialogue.Input = dialogue.Announce{Announcement: dialogue.Announcement{Text: a.Text, Notice: a.ID, Urgent: a.Urgent}}
	if !a.Speak {
		in = dialogue.ShowAlert{Alert: newAlert(a), Notice: a.ID}
	}
	return s.orByMQTT(id, s.post(ctx, id, in), func(k *link) error { return k.announce(a) })
}

// KeepOpen keeps a robot's channel open until a time, even if the robot is idle. The zero time revokes an
// earlier call. KeepOpen does nothing if the channel is closed.
func (s *Server) KeepOpen(id device.ID, until time.Time) {
	_ = s.post(s.ctx, id, dialogue.HoldChannel{Until: until})
}

// ShowEmotion changes the robot's face.
func (s *Server) ShowEmotion(ctx context.Context, id device.ID, e agent.Emotion) error {
	return s.orByMQTT(id, s.post(ctx, id, dialogue.ShowEmotion{Emotion: e}), func(k *link) error {
		return k.send(xiaozhi.LLM{Emotion: e.On(k.robot.Board).Name, Text: e.Emoji})
	})
}

// InjectText makes a robot answer a text as if somebody had spoken it to the robot.
func (s *Server) InjectText(ctx context.Context, id device.ID, text string) error {
	return s.post(ctx, id, dialogue.InjectText{Text: text})
}

// AskAgent makes a robot answer a text as if somebody had spoken it to the robot, and returns "". While the
// robot's channel is closed, the agent answers without the robot's tools; AskAgent then returns the answer, and
// passes it to Speak, whose results queued and err it returns too. For a stranger whose channel is closed,
// AskAgent returns an error.
func (s *Server) AskAgent(ctx context.Context, id device.ID, text string) (answer string, queued bool, err error) {
	if text, err = dialogue.Speakable(text); err != nil {
		return "", false, err
	}
	if err = s.InjectText(ctx, id, text); !errors.Is(err, dialogue.ErrOffline) {
		return "", false, err
	}
	if !s.options.Robots.Trusts(id) {
		return "", false, errNotAdopted
	}
	spoken, err := s.answer(ctx, id, text)
	if err != nil || spoken.Text == "" {
		return "", false, err
	}
	queued, err = s.Speak(ctx, id, spoken.Face.Emoji+spoken.Text)
	return spoken.Text, queued, err
}

// answer returns the agent's answer to a text for a robot whose channel is closed, and records it as a turn.
func (s *shared) answer(ctx context.Context, id device.ID, text string) (agent.Spoken, error) {
	o, release := s.acquire()
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, o.Patience, errSilent)
	defer cancel()
	c := o.Character(id)
	spoken, err := agent.AnswerText(ctx, s.options.Mind, agent.Turn{
		Conversation: string(id), Robot: id, Text: text, Now: time.Now().In(o.Zone), Language: c.Speech.Language, Name: c.Name, Persona: c.Persona, Brain: c.Brain,
	}, nil)
	if err != nil {
		return agent.Spoken{}, cmp.Or(context.Cause(ctx), err)
	}
	s.options.Mind.AddExchange(string(id), agent.Exchange{Heard: text, Said: spoken.Text}, time.Now())
	s.options.Records.addTurn(TurnRecord{Robot: id, At: time.Now(), Heard: text, Said: spoken.Text, End: event.EndDone, Stages: map[string]int64{}})
	return spoken, nil
}

// Abort silences a robot: it cancels the turn under way, or skips the announcement that the robot speaks
// while idle.
func (s *Server) Abort(ctx context.Context, id device.ID) error {
	return s.orByMQTT(id, s.post(ctx, id, dialogue.Abort{}), func(k *link) error {
		k.announcer.skipCurrent()
		return nil
	})
}

// Reboot restarts a robot. The restart begins about a second later.
func (s *Server) Reboot(ctx context.Context, id device.ID) error {
	return s.orByMQTT(id, s.post(ctx, id, dialogue.Reboot{}), func(k *link) error { return k.send(xiaozhi.Reboot{}) })
}

// Hangup closes a robot's channel and its MQTT connection. It returns dialogue.ErrOffline if neither is
// open.
func (s *Server) Hangup(ctx context.Context, id device.ID, why string) error {
	err := s.post(ctx, id, dialogue.HangUp{Why: why})
	if k := s.links.of(id); k != nil {
		k.conn.Close()
		return nil
	}
	return err
}

// Call runs one of a robot's tools and returns its result. It returns an error of package tools, or
// dialogue.ErrOffline if the robot cannot be reached.
func (s *Server) Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	r, err := s.sessions.of(id)
	if k := s.links.of(id); err != nil && k != nil {
		return k.callTool(ctx, tool, arguments)
	}
	if err != nil {
		return device.Result{}, err
	}
	return r.callTool(ctx, tool, arguments)
}

// Tools returns the tools that a robot lists, or listed when it was last connected.
func (s *Server) Tools(id device.ID) []device.Tool {
	if r, err := s.sessions.of(id); err == nil {
		return r.toolbox.Tools()
	}
	if k := s.links.of(id); k != nil {
		return k.tools.Tools()
	}
	r, err := s.options.Robots.Get(id)
	if err != nil {
		return nil // no such robot is registered
	}
	return r.KnownTools()
}

// Reachable returns the adopted robots that can be reached, sorted: robots with an open channel whose hello
// was answered, and robots connected by MQTT. All of them can at least show notifications.
func (s *Server) Reachable() []device.ID {
	reachable := s.greeted()
	for _, k := range s.links.all() {
		if _, err := s.sessions.of(k.robot.ID); err != nil {
			reachable = append(reachable, k.robot.ID)
		}
	}
	reachable = slices.DeleteFunc(reachable, func(id device.ID) bool { return !s.options.Robots.Trusts(id) })
	slices.Sort(reachable)
	return slices.Compact(reachable) // a robot is in the list twice if its session has ended in the meantime
}

// Play makes a robot play a sound, and returns when the sound is accepted. Like speech, a sound can be
// interrupted. A sound is never queued: Play returns dialogue.ErrSpeaking while a turn is under way or an
// announcement waits, and dialogue.ErrOffline if the robot's channel is closed. For an unknown name the
// error wraps fs.ErrNotExist.
func (s *Server) Play(ctx context.Context, id device.ID, name string) error {
	if _, err := s.sessions.of(id); err != nil {
		return err // checked first, to save decoding the sound
	}
	pcm, err := s.options.Sounds.Load(ctx, name)
	if err != nil {
		return fmt.Errorf("play a sound: %w", err)
	}
	return s.playPCM(ctx, id, name, pcm)
}

// SaySecret makes a robot say a text that only the people near the robot may learn: no event, record or transcript
// contains the words. text returns the text in a language. Like a sound, the text is never queued; see Play for the
// errors. A robot that does not speak aloud is treated as one whose channel is closed.
func (s *Server) SaySecret(ctx context.Context, id device.ID, text func(language string) string) error {
	if _, err := s.sessions.of(id); err != nil {
		return err // checked first, to save synthesizing the text
	}
	o, done := s.acquire()
	defer done()
	speech := o.Character(id).Speech
	if speech.Mute {
		return dialogue.ErrOffline
	}
	var pcm []int16
	err := o.Synthesizer.Synthesize(ctx, text(speech.Language), speech, func(part []int16) error {
		pcm = append(pcm, part...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("say a secret: %w", err)
	}
	return s.playPCM(ctx, id, "a secret", pcm)
}

// playPCM makes a robot play sound; see Play.
func (s *sessions) playPCM(ctx context.Context, id device.ID, name string, pcm []int16) error {
	result := make(chan error, 1)
	if err := s.post(ctx, id, dialogue.PlaySound{Sound: &dialogue.Sound{Name: name, PCM: pcm}, Answer: result}); err != nil {
		return err
	}
	return accepted(result)
}

// accepted returns the answer to an input that the loop has handled, or dialogue.ErrOffline if the session ended
// without handling the input.
func accepted(answer <-chan error) error {
	select {
	case err := <-answer:
		return err
	default:
		return dialogue.ErrOffline
	}
}

// orByMQTT returns err, the result of posting to a robot's session, unless that is dialogue.ErrOffline
// and the robot is connected by MQTT. Then it calls do with the connection instead.
func (l *links) orByMQTT(id device.ID, err error, do func(*link) error) error {
	if k := l.of(id); errors.Is(err, dialogue.ErrOffline) && k != nil {
		return do(k)
	}
	return err
}
