// Package playback sends a robot its messages and speech. Only the Player sends on a channel, and only
// it decides when: it is a little ahead of what the robot plays, and knows what the robot was made to
// do. A turn fills a Speech; the session's loop starts and cancels it, and asks the player for its
// progress.
package playback

import (
	"context"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/voice"
)

// Player sends for one session. Run sends; the other methods are for the session's loop.
type Player struct {
	sender
	encoder  encoder
	robot    device.ID
	reported chan struct{}
}

// New returns the player of a robot's session.
func New(out Output, session string, r device.Robot, t tap, shared *Scheduler, all *voice.Loudness) (*Player, error) {
	codec, err := voice.NewEncoder(voice.SpeakerRate)
	if err != nil {
		return nil, err
	}
	return &Player{
		sender: sender{lanes: lanes{now: make(chan order, nowLane), changed: make(chan struct{}, 1)},
			out: out, session: session, board: r.Board, depth: queueDepth(r.Board, r.Firmware), tap: t},
		encoder: encoder{codec: codec, loudness: all, shared: shared, waiter: newPlace()},
		robot:   r.ID, reported: make(chan struct{}, 1),
	}, nil
}

// StartSpeech starts the speech of a turn in place of any other.
func (p *Player) StartSpeech() *Speech {
	q := &queue{added: make(chan struct{}, 1), reported: p.reported}
	p.play(q)
	return &Speech{queue: q, encoder: &p.encoder}
}

// Clear forgets speech that has been played to its end.
func (p *Player) Clear() { p.play(nil) }

// Cancel drops the speech, if there is any. No packet of it leaves any more, unless it is just
// being sent.
func (p *Player) Cancel(now time.Time) (left Leftover) {
	if q := p.current.Load(); q != nil {
		left = q.cancel(now)
	}
	p.play(nil)
	return left
}

// Hurry drops what precedes the next pause, which then comes at once.
func (p *Player) Hurry() {
	if q := p.current.Load(); q != nil {
		q.hurry()
	}
}

// Reported gets a value when there is progress.
func (p *Player) Reported() <-chan struct{} { return p.reported }

// Progress returns what has been sent of the speech since it was last called.
func (p *Player) Progress() Progress {
	if q := p.current.Load(); q != nil {
		return q.progress()
	}
	return Progress{}
}

// Send sends a message at once. It returns false if the robot does not read.
func (p *Player) Send(m xiaozhi.ToRobot) bool { return p.send(order{message: m}) }

// RestartSpeech makes a robot speak again that is speaking, and may have refused to. It returns
// false if the robot does not read.
func (p *Player) RestartSpeech() bool { return p.send(order{restart: p.current.Load()}) }

// SetEcho sets the echo canceller that is given what is played; nil means none.
func (p *Player) SetEcho(e *voice.Echo) { p.echo.Store(e) }

// Run sends until ctx ends or the channel fails. Messages that wait when ctx ends still leave: the
// last tts stop, say.
func (p *Player) Run(ctx context.Context) error {
	p.mouth = p.encoder.loudness.Mouth(string(p.robot))
	defer p.mouth.Close()
	return p.run(ctx)
}
