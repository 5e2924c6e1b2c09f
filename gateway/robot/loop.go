package robot

import (
	"perch/device"
	"perch/device/xiaozhi"
	"perch/gateway/robot/dialogue"
	"perch/voice"
)

// loop is what only the loop's goroutine uses: no other can write the state.
type loop struct {
	*session
	options   *Options // as they were applied
	state     dialogue.State
	packet    dialogue.Packet // memory for an input
	mic       microphone
	turn      *turn
	number    int // of the turn
	utterance *voice.Utterance
	spoken    []string // by the turn
	turnCount int      // turns that are recorded
	closedWhy string
	badAudio  logOnce
	badMCP    logOnce
	manyTools logOnce
	tooSlow   bool // the robot does not read
}

// newLoop returns the loop of a new session.
func newLoop(s *shared, c channel, r device.Robot) (*loop, error) {
	mic, err := newMicrophone()
	if err != nil {
		return nil, err
	}
	n, err := newSession(s, c, r)
	if err != nil {
		return nil, err
	}
	return &loop{session: n, mic: mic}, nil
}

// configure applies options that concern no turn, and returns those of the dialogue.
func (l *loop) configure(o *Options) dialogue.Settings {
	l.options = o
	l.mic.pointer.SetSilence(o.Silence)
	return dialogue.Settings{Greet: o.Greet, Idle: o.Idle}
}

// send queues a message. A robot that does not read is disconnected.
func (l *loop) send(m xiaozhi.ToRobot) {
	l.tooSlow = !l.player.Send(m) || l.tooSlow
}
