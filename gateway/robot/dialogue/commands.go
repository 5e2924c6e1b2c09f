package dialogue

import (
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device/xiaozhi"
	"perch/event"
)

// Inputs of the appliance. All but Ask, Withdraw, PlaySound, HangUp and Configure wait for the
// robot's hello.
type (
	// Announce has something spoken.
	Announce struct{ Announcement }
	// ShowAlert shows a message without sound, a notification's if Notice is its id.
	ShowAlert struct {
		Alert  xiaozhi.Alert
		Notice string
	}
	// ShowEmotion changes the robot's face.
	ShowEmotion struct{ Emotion agent.Emotion }
	// InjectText is a text as if it had been spoken.
	InjectText struct{ Text string }
	// Abort makes the robot quiet.
	Abort struct{}
	// HoldChannel keeps the channel open until a time.
	HoldChannel struct{ Until time.Time }
	// CollectCommands says that more waits for the robot than it was given at its hello.
	CollectCommands struct{}
	// DecideQuestion answers the question with an id.
	DecideQuestion struct {
		ID    string
		Allow bool
	}
	// Reboot restarts the robot.
	Reboot struct{}
	// Ask asks people a question, after what waits to be spoken.
	Ask struct{ About *Question }
	// Withdraw takes a question back.
	Withdraw struct{ About *Question }
	// PlaySound plays a sound. Its one answer is whether it is.
	PlaySound struct {
		Sound  *Sound
		Answer chan<- error // has a slot for one
	}
	// HangUp closes the channel.
	HangUp struct{ Why string }
	// Configure changes the settings.
	Configure struct{ Settings }
)

// waitsForHello reports whether an input that comes before hello is stored until then.
func waitsForHello(in Input) bool {
	switch in.(type) {
	case Announce, ShowAlert, ShowEmotion, InjectText, Abort, HoldChannel, CollectCommands, DecideQuestion, Reboot:
		return true
	}
	return false
}

func (Abort) step(s *stepper)           { s.interrupt(true) }
func (CollectCommands) step(s *stepper) { s.emit(CollectWaiting{}) }
func (in HoldChannel) step(s *stepper)  { s.channel.heldUntil = in.Until }
func (Reboot) step(s *stepper)          { s.emit(Send{xiaozhi.Reboot{}}) }
func (in HangUp) step(s *stepper)       { s.close(in.Why) }
func (in Configure) step(s *stepper)    { s.settings = in.Settings }

func (in ShowEmotion) step(s *stepper) {
	s.emit(Send{xiaozhi.LLM{Emotion: in.Emotion.Name, Text: in.Emotion.Emoji}},
		Publish{event.Emotion{Name: in.Emotion.Name, Emoji: in.Emotion.Emoji}})
}

// step shows the alert, no matter what the robot is doing.
func (in ShowAlert) step(s *stepper) {
	s.emit(Send{in.Alert})
	if in.Notice != "" {
		s.emit(Publish{event.NotificationChanged{ID: in.Notice, State: notice.Shown}})
	}
}

func (in InjectText) step(s *stepper) {
	s.interrupt(false)
	s.beginTurn(TurnStart{Text: in.Text})
}

// step speaks something at once, or after the turn under way. An urgent announcement comes
// before all others and waits for nothing but a question: to cut that off would answer it.
func (in Announce) step(s *stepper) {
	a := in.Announcement
	if a.Notice != "" || a.Command != "" {
		same := func(b Announcement) bool { return b.Notice == a.Notice && b.Command == a.Command }
		if same(s.turn.announcement) {
			return // it is being spoken
		}
		s.queue.remove(same)
	}
	switch waiting := len(s.queue.waiting); {
	case waiting >= mostQueued && a.Notice == "":
		s.emit(Publish{event.Command{Thing: CommandSay, State: event.CommandRejected, Reason: "too much waits to be said"}})
	case waiting >= 2*mostQueued: // a notification is stored elsewhere, and offered again at the next hello
	case a.Urgent:
		if s.channel.settled && s.turn.active && !s.question.published {
			preempt(s)
		}
		s.queue.pushFront(a)
		s.queue.yieldsUntil = time.Time{}
	default:
		s.queue.push(a)
	}
	s.speakNext()
}

// preempt stops the turn under way for something more urgent. Its own announcement is spoken
// again afterwards: the robot was not asked to be quiet.
func preempt(s *stepper) {
	if s.turn.announcement.isSpeech() {
		s.queue.pushFront(s.turn.announcement)
		s.turn.announcement = Announcement{}
	}
	s.interrupt(false)
}

// step queues a question.
func (in Ask) step(s *stepper) {
	switch about := in.About; {
	case s.phase == greeting:
		s.emit(EndInquiry{about, Ending{Err: ErrOffline}})
	case about.expired(s.now):
		s.emit(EndInquiry{about, endedBy(agent.AnswerExpired)})
	case len(s.queue.waiting) >= mostQueued:
		s.emit(EndInquiry{about, Ending{Err: ErrBusy}})
	default:
		s.queue.push(Announcement{Question: about})
		s.speakNext()
	}
}

// step takes back a question that waits or is being put.
func (in Withdraw) step(s *stepper) {
	s.queue.remove(func(a Announcement) bool { return a.Question == in.About })
	if s.turn.announcement.Question == in.About {
		s.turn.announcement = Announcement{}
		s.stopAsking()
	}
}

// step answers the question that waits, if it has the id.
func (in DecideQuestion) step(s *stepper) {
	if !s.question.waits() || s.question.asked.ID != in.ID {
		return
	}
	outcome := agent.AnswerDenied
	if in.Allow {
		outcome = agent.AnswerAllowed
	}
	s.emit(AnswerQuestion{agent.Answer{Outcome: outcome}})
}

// step begins a sound if nothing else is heard, or once the robot has connected.
func (in PlaySound) step(s *stepper) {
	switch {
	case s.phase == greeting:
		s.emit(AnswerPlay{in.Answer, ErrOffline})
	case s.turn.active || len(s.queue.waiting) > 0:
		s.emit(AnswerPlay{in.Answer, ErrSpeaking})
	case !s.channel.settled:
		s.queue.waiting = []Announcement{{Sound: in.Sound}}
		s.emit(AnswerPlay{in.Answer, nil})
	default:
		s.beginTurn(TurnStart{Announcement: Announcement{Sound: in.Sound}})
		s.emit(AnswerPlay{in.Answer, nil})
	}
}
