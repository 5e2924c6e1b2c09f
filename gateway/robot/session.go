package robot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/playback"
	"perch/gateway/robot/tools"
	"perch/gateway/robot/transcript"
	"perch/gateway/robot/transport"
	"perch/socket"
	"perch/voice"
)

// session is one open channel of a robot, as its goroutines share it. There are four, each with
// one duty:
//
//	read   turns the transport's bytes into messages
//	loop   owns the state, and never blocks
//	turn   at most one; lives as long as its context
//	write  the player's; it alone sends, and decides when
type session struct {
	*Options
	shared *shared
	channel
	robot    device.Robot
	log      *slog.Logger
	incoming chan frame  // from read
	inputs   chan posted // from turns, and from the appliance
	player   *playback.Player
	toolbox  *tools.Client
	tap      transcript.Tap
	unsaved  unsaved
	turns    sync.WaitGroup // and what else may wait for the disk

	muted    atomic.Bool
	question atomic.Pointer[agent.Question] // that waits for an answer
	greeted  atomic.Bool                    // its hello was answered
	replaced atomic.Bool                    // by another session of the robot
	cancel   context.CancelFunc
	done     chan struct{} // closed when it has ended
}

// channel is what a session runs on.
type channel struct {
	transport.Transport
	id      string // of the session
	framing xiaozhi.Framing
	udp     *xiaozhi.UDP // where the sound is, for our hello; nil if it comes as texts do
	// tools returns the client of the robot's tools, which outlasts the session and sends by send
	// while that lasts. It is nil if the client is the session's own.
	tools func(send func(xiaozhi.Request) error) *tools.Client
}

// frame is a message as read, in the reader's memory until it is handled.
type frame struct {
	message xiaozhi.FromRobot // nil for audio
	audio   xiaozhi.Audio
}

// posted is an input on its way. An input of a cancelled turn is ignored.
type posted struct {
	dialogue.Input
	turn    int           // its number; 0 from the appliance
	handled chan struct{} // closed when the loop has dealt with it; may be nil
}

// newSessionID returns the id of a new session.
func newSessionID() string { return rand.Text()[:16] }

// mostMessages are accepted from one robot in a second. It sends 17 while it listens, 50 with the
// shortest packets, and more after a stall.
const mostMessages = 250

// incomingFrames may wait for the loop: some seconds of sound.
const incomingFrames = 64

func newSession(s *shared, c channel, r device.Robot) (*session, error) {
	n := &session{Options: s.options, shared: s, channel: c, robot: r, log: s.strangers.logOf(r.ID).With("robot", r.ID, "session", c.id),
		incoming: make(chan frame, incomingFrames), inputs: make(chan posted, incomingFrames), done: make(chan struct{}),
		unsaved: unsaved{options: s.options, robot: r.ID}}
	var err error
	if n.player, err = playback.New(c, c.id, r, &n.tap, s.scheduler, s.options.Loudness); err != nil {
		return nil, err
	}
	if c.tools != nil {
		n.toolbox = c.tools(n.sendRPC)
	} else {
		n.toolbox = tools.New(r.KnownTools(), s.strangers.budgetOf(r.ID), n.sendRPC)
	}
	return n, nil
}

// read turns what arrives into messages. It ends with the transport.
func (s *session) read() {
	// Frames in the channel keep the memory their audio was copied to, so
	// there is one more buffer than can wait, one being handled, one filling.
	var buffers [incomingFrames + 2][]byte
	var bad, big logOnce
	for n := 0; ; {
		text, audio, isText, err := s.Receive()
		if err != nil {
			if errors.Is(err, socket.ErrTooBig) {
				s.log.Warn("the robot sent a message that is too big; the channel is closed", "limit", xiaozhi.MaxMessage+1)
			}
			return
		}
		if !isText && len(audio.Opus) > voice.MaxPacket {
			big.warn(s.log, "the robot sent sound in packets that are no Opus; they are dropped", fmt.Errorf("%d bytes", len(audio.Opus)))
			continue
		}
		if !isText {
			buffers[n] = append(buffers[n][:0], audio.Opus...)
			audio.Opus = buffers[n]
			s.incoming <- frame{audio: audio}
			n = (n + 1) % len(buffers)
			continue
		}
		m, err := xiaozhi.ParseFromRobot(text)
		s.tap.FromRobot(text, m)
		if err != nil {
			bad.warn(s.log, "the robot sent a message that cannot be read; such messages are ignored", err)
			continue
		}
		s.incoming <- frame{message: m}
	}
}

// post gives the loop an input of a turn by its number, or of the appliance, and waits until it has
// dealt with it. It returns ErrOffline if the session has ended.
func (s *session) post(ctx context.Context, turn int, in dialogue.Input) error {
	handled := make(chan struct{})
	select {
	case s.inputs <- posted{in, turn, handled}:
	case <-s.done:
		return dialogue.ErrOffline
	case <-ctx.Done():
		return ctx.Err()
	}
	// A session that ends reads no more inputs.
	select {
	case <-handled:
		return nil
	case <-s.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-handled:
		return nil
	default:
		return dialogue.ErrOffline
	}
}

// sendRPC sends a request to the robot's tools.
func (s *session) sendRPC(r xiaozhi.Request) error {
	if !s.player.Send(xiaozhi.ToMCP{Payload: r.Append(nil)}) {
		return tools.ErrChannelClosed
	}
	return nil
}

func (s *session) publish(e event.Event) { s.Bus.Publish(s.robot.ID, s.id, e) }

// call runs one of the robot's tools.
func (s *session) call(ctx context.Context, tool string, arguments map[string]any) (device.Result, error) {
	return s.shared.call(ctx, s.toolbox, s.robot.ID, s.id, tool, arguments)
}

// collectWaiting posts what was to be done while the channel was closed. It reads the store, for
// which the loop does not wait.
func (s *session) collectWaiting(ctx context.Context) {
	if !s.unsaved.save() {
		return // what waits is for its owner's robot, which this may not be
	}
	now := time.Now()
	for _, c := range s.Commands.list(s.robot.ID) {
		if !now.Before(c.Expires) {
			s.Commands.drop(s.robot.ID, c.ID)
			s.publish(event.Command{Thing: c.Thing, State: event.CommandRejected, Reason: dialogue.ReasonExpired})
			continue
		}
		select {
		case s.inputs <- posted{Input: c.input()}:
		case <-ctx.Done():
			return
		}
		if c.Thing == commandAlert {
			s.Commands.drop(s.robot.ID, c.ID)
			s.publish(event.Command{Thing: c.Thing, State: event.CommandDone})
		}
	}
}

// unsaved is what a session has learnt for the appliance's records. It is saved once the robot's
// owner has adopted it: nothing of strangers is stored.
type unsaved struct {
	options *Options
	robot   device.ID

	mu     sync.Mutex
	record *SessionRecord
	echo   *bool
	tools  []device.Tool // nil if the list has not changed
}

// set changes what is unsaved.
func (u *unsaved) set(change func(*unsaved)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(u)
}

// save reports whether the robot is adopted, and if so saves everything. It may wait for the disk.
func (u *unsaved) save() (trusted bool) {
	if !u.options.Robots.Trusts(u.robot) {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.record != nil {
		u.options.Records.opened(*u.record)
	}
	if u.echo != nil {
		u.options.Robots.KeepEcho(u.robot, *u.echo)
	}
	if u.tools != nil {
		u.options.Robots.KeepTools(u.robot, u.tools)
	}
	u.record, u.echo, u.tools = nil, nil, nil
	return true
}
