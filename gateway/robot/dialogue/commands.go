package dialogue

import (
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device/xiaozhi"
	"perch/event"
)

// Inputs from other parts of the appliance. All but Ask, Withdraw, PlaySound, PlayMusic, StopMusic, HangUp and
// Configure wait for the robot's hello.
type (
	// Announce makes the robot speak an announcement.
	Announce struct{ Announcement }
	// ShowAlert shows a message on the screen.
	ShowAlert struct {
		Alert  xiaozhi.Alert
		Notice string // ID of the notification that is shown; empty if the message is not a notification
	}
	// ShowEmotion changes the robot's face.
	ShowEmotion struct{ Emotion agent.Emotion }
	// InjectText begins a turn with a text as if somebody had spoken it.
	InjectText struct{ Text string }
	// Abort silences the robot.
	Abort struct{}
	// HoldChannel keeps the channel open until a time, even if the robot is idle.
	HoldChannel struct{ Until time.Time }
	// CollectCommands reports that commands have been stored since the robot's hello.
	CollectCommands struct{}
	// DecideQuestion is the owner's answer to the question with an ID.
	DecideQuestion struct {
		ID    string
		Allow bool
	}
	// Reboot restarts the robot.
	Reboot struct{}
	// Ask asks people a question, after the waiting announcements.
	Ask struct{ Question *Question }
	// Withdraw withdraws a question.
	Withdraw struct{ Question *Question }
	// PlaySound plays a sound.
	PlaySound struct {
		Sound  *Sound
		Answer chan<- error // receives one value, nil if the sound is accepted; must have a buffer for it
	}
	// PlayMusic plays music, in place of earlier music, whenever nothing else is spoken or played.
	PlayMusic struct {
		Sound  *Sound       // its field Music is set
		Answer chan<- error // as for PlaySound
	}
	// StopMusic stops the music.
	StopMusic struct{}
	// HangUp closes the channel.
	HangUp struct{ Why string }
	// Configure changes the settings.
	Configure struct{ Settings }
)

// waitsForHello reports whether an input waits for the robot's hello. Before the hello, Step stores such an
// input, and handleHello handles it later. Step drops an Abort instead, and inputs beyond maxEarly.
func waitsForHello(in Input) bool {
	switch in.(type) {
	case Announce, ShowAlert, ShowEmotion, InjectText, Abort, HoldChannel, CollectCommands, DecideQuestion, Reboot:
		return true
	}
	return false
}

func (Abort) step(s *stepper) {
	s.forgetMusic("")
	s.interrupt(true)
}

func (CollectCommands) step(s *stepper) { s.emit(CollectWaiting{}) }
func (in HoldChannel) step(s *stepper)  { s.channel.heldUntil = in.Until }
func (Reboot) step(s *stepper)          { s.emit(Send{xiaozhi.Reboot{}}) }
func (in HangUp) step(s *stepper)       { s.close(in.Why) }
func (in Configure) step(s *stepper)    { s.settings = in.Settings }

func (in ShowEmotion) step(s *stepper) {
	s.emit(Send{xiaozhi.LLM{Emotion: in.Emotion.Name, Text: in.Emotion.Emoji}},
		Publish{event.Emotion{Name: in.Emotion.Name, Emoji: in.Emotion.Emoji}})
}

// step shows the alert in every phase.
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

// step speaks the announcement at once, or after the turn under way. An urgent announcement comes before all
// others and interrupts the turn, unless the turn's question was published: the interruption would end that
// question without an answer.
func (in Announce) step(s *stepper) {
	a := in.Announcement
	if a.Notice != "" || a.Command != "" {
		same := func(b Announcement) bool { return b.Notice == a.Notice && b.Command == a.Command }
		if same(s.turn.announcement) {
			return // the announcement is being spoken
		}
		s.queue.remove(same)
	}
	switch waiting := len(s.queue.waiting); {
	case waiting >= maxQueued && a.Notice == "":
		s.endSay(Announcement{Text: a.Text}, "too much waits to be said")
	case waiting >= 2*maxQueued: // the sender stores the notification, and offers it again at the next hello
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

// preempt stops the turn under way for an urgent announcement. If the turn speaks an announcement, that
// announcement is repeated afterwards, because nobody has silenced the robot.
func preempt(s *stepper) {
	if s.turn.announcement.isSpeech() {
		s.queue.pushFront(s.turn.announcement)
		s.turn.announcement = Announcement{}
	}
	s.interrupt(false)
}

// step queues a question.
func (in Ask) step(s *stepper) {
	switch q := in.Question; {
	case s.phase == greeting:
		s.emit(EndInquiry{q, Ending{Err: ErrOffline}})
	case q.isExpired(s.now):
		s.emit(EndInquiry{q, withoutAnswer(agent.AnswerExpired)})
	case len(s.queue.waiting) >= maxQueued:
		s.emit(EndInquiry{q, Ending{Err: ErrBusy}})
	default:
		s.queue.push(Announcement{Question: q})
		s.speakNext()
	}
}

// step removes the question from the queue, or stops asking it.
func (in Withdraw) step(s *stepper) {
	s.queue.remove(func(a Announcement) bool { return a.Question == in.Question })
	if s.turn.announcement.Question == in.Question {
		s.turn.announcement = Announcement{}
		s.stopAsking()
	}
}

// step answers the question that waits for an answer, if it has the ID.
func (in DecideQuestion) step(s *stepper) {
	if !s.question.isWaiting() || s.question.asked.ID != in.ID {
		return
	}
	outcome := agent.AnswerDenied
	if in.Allow {
		outcome = agent.AnswerAllowed
	}
	s.emit(AnswerQuestion{agent.Answer{Outcome: outcome}})
}

// step begins the sound, unless a turn is under way or announcements wait. While the robot is still in its
// connecting state, the accepted sound waits.
func (in PlaySound) step(s *stepper) {
	switch {
	case s.phase == greeting:
		s.emit(AnswerPlay{in.Answer, ErrOffline})
	case s.turn.active && !s.playsMusic() || len(s.queue.waiting) > 0:
		s.emit(AnswerPlay{in.Answer, ErrSpeaking})
	case !s.channel.settled:
		s.queue.waiting = []Announcement{{Sound: in.Sound}}
		s.emit(AnswerPlay{in.Answer, nil})
	default:
		if s.turn.active {
			s.halt(false)
		}
		s.beginTurn(TurnStart{Announcement: Announcement{Sound: in.Sound}})
		s.emit(AnswerPlay{in.Answer, nil})
	}
}

// step begins the music as soon as no turn is under way and no announcement waits.
func (in PlayMusic) step(s *stepper) {
	if s.phase == greeting {
		s.emit(AnswerPlay{in.Answer, ErrOffline})
		return
	}
	s.stopMusic()
	s.music.sound = in.Sound
	s.emit(AnswerPlay{in.Answer, nil})
	s.speakNext()
}

func (StopMusic) step(s *stepper) {
	s.stopMusic()
	s.speakNext()
}
