package robot

import (
	"perch/device"
	"perch/device/xiaozhi"
	"perch/gateway/robot/dialogue"
	"perch/voice"
)

// loop is the part of a session that only the goroutine of run uses.
type loop struct {
	*session
	options   *Options // options applied last
	state     dialogue.State
	packet    dialogue.Packet // the current packet of sound; reused as input, so that packets cause no allocation
	mic       microphone
	turn      *turn            // nil if no turn is under way
	number    int              // number of the latest turn; the first turn has number 1
	utterance *voice.Utterance // nil if no utterance is under way
	hearing   string           // latest published text of the utterance under way
	ending    string           // latest text of the utterance under way that may be all of it
	drafted   bool             // an answer was drafted in the current pause of the utterance
	spoken    []string         // sentences of the turn that the robot has begun to play
	turnCount int              // turns so far, without played sounds
	closedWhy string           // why the channel was closed; empty while the session is open
	badAudio  logOnce
	badMCP    logOnce
	manyTools logOnce
	tooSlow   bool // the robot does not read the messages that are sent to it
}

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

// applyOptions applies the options that concern the whole session and not a single turn, and returns
// the dialogue's settings.
func (l *loop) applyOptions(o *Options) dialogue.Settings {
	l.options = o
	l.mic.endPointer.SetSilence(o.Silence)
	return dialogue.Settings{Greet: o.Greet, Idle: o.Idle, Standing: l.robot.ByHand}
}

// send queues a message. If the queue is full, runLoop disconnects the robot.
func (l *loop) send(m xiaozhi.ToRobot) {
	l.tooSlow = !l.player.Send(m) || l.tooSlow
}
