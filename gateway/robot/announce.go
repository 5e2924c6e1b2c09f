package robot

import (
	"slices"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device/xiaozhi"
	"perch/event"
)

func (in showEmotion) step(s *stepper) {
	s.do(send{xiaozhi.LLM{Emotion: in.emotion.Name, Text: in.emotion.Emoji}},
		publish{event.Emotion{Name: in.emotion.Name, Emoji: in.emotion.Emoji}})
}

func (in injectText) step(s *stepper) {
	s.interrupt(false)
	s.begin(turnStart{text: in.text})
}

// announce speaks something at once, or after the turn under way. An urgent
// announcement comes before all others and waits for nothing but a question: to
// cut that off would answer it.
func (s *stepper) announce(a announcement) {
	if a.notice != "" || a.command != "" {
		same := func(b announcement) bool { return b.notice == a.notice && b.command == a.command }
		if same(s.turn.announcement) {
			return // it is being spoken
		}
		s.queue.remove(same)
	}
	switch waiting := len(s.queue.waiting); {
	case waiting >= mostQueued && a.notice == "":
		s.do(publish{event.Command{Thing: commandSay, State: event.CommandRejected, Reason: "too much waits to be said"}})
	case waiting >= 2*mostQueued: // a notification is kept elsewhere, and offered again at the next hello
	case a.urgent:
		if s.channel.settled && s.turn.active && !s.question.published {
			s.preempt()
		}
		s.queue.pushFront(a)
		s.queue.yieldsUntil = time.Time{}
	default:
		s.queue.push(a)
	}
	s.sayWaiting()
}

// preempt stops the turn under way for something more urgent. Its own
// announcement is spoken anew afterwards: the robot was not asked to be quiet.
func (s *stepper) preempt() {
	if s.turn.announcement.isSpeech() {
		s.queue.pushFront(s.turn.announcement)
		s.turn.announcement = announcement{}
	}
	s.interrupt(false)
}

// sayWaiting begins to speak what has waited for a turn to end, unless somebody has
// just interrupted to speak, or has opened the channel to speak.
func (s *stepper) sayWaiting() {
	if s.turn.active || !s.channel.settled {
		return
	}
	for len(s.queue.waiting) > 0 && s.queue.waiting[0].command != "" && !s.now.Before(s.queue.waiting[0].expires) {
		s.do(forgetCommand{s.queue.waiting[0].command},
			publish{event.Command{Thing: commandSay, State: event.CommandRejected, Reason: waitedTooLong}})
		s.queue.waiting = s.queue.waiting[1:]
	}
	next := slices.IndexFunc(s.queue.waiting, func(t announcement) bool { return !s.now.Before(s.speakableFrom(t)) })
	if next < 0 {
		return
	}
	first := s.queue.waiting[next]
	s.queue.waiting = slices.Delete(slices.Clone(s.queue.waiting), next, next+1)
	if first.canYield() {
		s.queue.openerUntil = time.Time{}
	}
	s.begin(turnStart{announcement: first})
}

// speakableFrom is when an announcement may begin without talking over people.
func (s *state) speakableFrom(t announcement) time.Time {
	if t.canYield() && s.queue.openerUntil.After(s.queue.yieldsUntil) {
		return s.queue.openerUntil
	}
	return s.queue.yieldsUntil
}

// unsolicited reports whether an announcement has just begun, without interruption.
func (s *stepper) unsolicited() bool {
	return s.now.Before(s.turn.unsolicitedUntil) && !s.justAborted()
}

// justAborted reports whether the robot has sent an abort a moment ago: a
// microphone that opens then is opened to speak.
func (s *stepper) justAborted() bool { return !passed(s.now, s.mic.abortedAt, unsolicitedFor) }

// listenLater lets an announcement go on. The microphone is listened to once all
// of it was spoken: with the listen start
// that a robot in auto mode then sends, and by itself in realtime. A robot that
// was connecting when tts start came has refused to speak; by now it can.
func (s *stepper) listenLater(mode xiaozhi.Mode) {
	s.mic.mode, s.turn.listensAfter, s.mic.listening = mode, true, false
	s.channel.activeAt = s.now
	s.mic.wokenAt = time.Time{} // it is spoken to already
	if s.phase == speaking {
		s.do(restartSpeech{})
	}
	s.settle()
}

// openMicrophone listens to a microphone that has opened during an announcement.
func (s *stepper) openMicrophone() {
	s.mic.listening, s.turn.listensAfter = s.mic.listening || s.turn.listensAfter, false
}

// step puts something on the robot's screen, whatever it is doing.
func (in showAlert) step(s *stepper) {
	s.do(send{in.alert})
	if in.notice != "" {
		s.do(publish{event.NotificationChanged{ID: in.notice, State: notice.Shown}})
	}
}

func (s *stepper) close(why string) {
	if s.turn.active {
		s.closeQuestion(agent.AnswerClosed)
		s.cancelled(false)
		if !s.turn.begun && s.turn.announcement.text != "" {
			s.queue.pushFront(s.turn.announcement)
		}
	}
	s.concludeAll()
	for _, in := range s.queue.early {
		if early, ok := in.(announce); ok {
			s.queue.push(early.announcement)
		}
	}
	s.phase, s.turn, s.queue.early = closing, turnState{}, nil
	s.do(closeChannel{why})
}
