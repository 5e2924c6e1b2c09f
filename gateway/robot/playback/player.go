// Package playback sends a robot its messages and speech. Each session of package robot has a Player, which
// is the only sender on the session's channel. The player sends speech a little ahead of what the robot
// plays, and records whether the robot speaks and which face it shows. The messages tts start and tts stop
// make the robot enter and leave its speaking state. A turn adds sentences and sound to a Speech. The
// session's loop starts and cancels the Speech, and reads the player's progress.
package playback

import (
	"context"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/gateway/robot/transport"
	"perch/voice"
)

// Player sends the messages and the speech of one session. Run does the sending, in a goroutine of its
// caller. The session's loop calls the other methods; Send may be called by any goroutine.
type Player struct {
	sender
	encoder  encoder
	robot    device.ID
	reported chan struct{} // has one slot, filled when there is progress
}

// New returns the player of a robot's session. The tap records what is sent. All sessions share the
// scheduler and the loudness. It returns the error of the Opus encoder.
func New(out transport.Transport, session string, r device.Robot, t tap, scheduler *Scheduler, loudness *voice.Loudness) (*Player, error) {
	codec, err := voice.NewEncoder(voice.SpeakerRate)
	if err != nil {
		return nil, err
	}
	return &Player{
		sender: sender{handover: handover{orders: make(chan order, maxOrders), changed: make(chan struct{}, 1)},
			out: out, session: session, board: r.Board, depth: queueDepth(r.Board, r.Firmware), tap: t},
		encoder: encoder{codec: codec, loudness: loudness, scheduler: scheduler, waiter: newWaiter()},
		robot:   r.ID, reported: make(chan struct{}, 1),
	}, nil
}

// StartSpeech returns the speech of a new turn, which takes the place of any earlier speech.
func (p *Player) StartSpeech() *Speech {
	q := &queue{added: make(chan struct{}, 1), reported: p.reported}
	p.setSpeech(q)
	return &Speech{queue: q, encoder: &p.encoder}
}

// Clear removes speech that the robot has played to its end.
func (p *Player) Clear() { p.setSpeech(nil) }

// Cancel drops the speech. After the call, Run sends no packet of this speech; one packet may be sent
// during the call. Cancel returns the state of the speech, or the zero Leftover if there was no speech.
func (p *Player) Cancel(now time.Time) (left Leftover) {
	if q := p.current.Load(); q != nil {
		left = q.cancel(now)
	}
	p.setSpeech(nil)
	return left
}

// SkipToPause drops the speech before the next pause, so that the pause begins at once. It does nothing if
// no pause is queued.
func (p *Player) SkipToPause() {
	if q := p.current.Load(); q != nil {
		q.skipToPause()
	}
}

// Reported returns a channel that receives a value when Progress has something to return.
func (p *Player) Reported() <-chan struct{} { return p.reported }

// Progress returns the progress of the speech since the last call.
func (p *Player) Progress() Progress {
	if q := p.current.Load(); q != nil {
		return q.progress()
	}
	return Progress{}
}

// Send queues a message to be sent at once. It returns false if too many messages wait, because the robot
// does not read.
func (p *Player) Send(m xiaozhi.ToRobot) bool { return p.send(order{message: m}) }

// RestartSpeech queues another tts start, for a robot that may have ignored the first one. Run does not send
// it if no speech is under way by then. RestartSpeech returns false if too many messages wait, because the
// robot does not read.
func (p *Player) RestartSpeech() bool { return p.send(order{restart: p.current.Load()}) }

// SetEcho sets the echo canceller, which receives all packets sent to the robot. nil means that the
// appliance does not cancel the robot's echo.
func (p *Player) SetEcho(e *voice.Echo) { p.echo.Store(e) }

// Run sends until ctx ends or the channel fails. Messages that wait when ctx ends are still sent, such as
// the last tts stop. Run returns nil after ctx has ended, or the error of the channel.
func (p *Player) Run(ctx context.Context) error {
	p.mouth = p.encoder.loudness.Mouth(string(p.robot))
	defer p.mouth.Shut()
	return p.run(ctx)
}
