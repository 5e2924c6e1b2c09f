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

// session is the state of a robot's open channel that four goroutines share:
//
//	reader  parses the messages that the transport receives (readMessages)
//	loop    owns the state and never blocks (loop.run)
//	turn    runs a turn until its speech is queued; at most one that is not cancelled (turn.run)
//	writer  sends all messages and sound, each at its time (Player.Run)
type session struct {
	*Options // options given to NewServer; shared.current holds the fields that Apply changes
	shared   *shared
	channel
	robot    device.Robot
	log      *slog.Logger
	incoming chan frame  // messages from the reader
	inputs   chan posted // inputs from turns and from the appliance
	player   *playback.Player
	toolbox  *tools.Client
	tap      transcript.Tap
	unsaved  unsaved
	trying   sync.Mutex     // held while a source of music is tried
	turns    sync.WaitGroup // running turns, drafts of answers, and other goroutines that may wait for the disk

	muted    atomic.Bool                    // the robot's sound is dropped on arrival
	question atomic.Pointer[agent.Question] // question that waits for an answer; nil if no question waits
	greeted  atomic.Bool                    // the robot's hello was answered
	replaced atomic.Bool                    // a newer session of the same robot has replaced this one
	cancel   context.CancelFunc
	done     chan struct{} // closed once the session has ended
}

// channel is the connection that a session runs on.
type channel struct {
	transport.Transport
	id      string // session ID
	framing xiaozhi.Framing
	udp     *xiaozhi.UDP // address and encryption key for sound, sent in the appliance's hello; nil over a WebSocket
	// tools returns a client for the robot's tools that outlives the session. While the session is
	// open, the client sends its requests by send. If tools is nil, the session makes its own client.
	tools func(send func(xiaozhi.Request) error) *tools.Client
}

// frame is a received message. Once the loop has handled a frame, the reader reuses the memory of its
// audio.
type frame struct {
	message xiaozhi.FromRobot // nil for audio
	audio   xiaozhi.Audio
}

// posted is an input for the loop. The loop ignores the inputs of a cancelled turn.
type posted struct {
	dialogue.Input
	turn    int           // loop.number of the turn that posts the input; 0 if another part of the appliance posts it
	handled chan struct{} // closed once the loop has handled the input; may be nil
}

// newSessionID returns a random session ID.
func newSessionID() string { return rand.Text()[:16] }

// maxMessagesPerSecond is how many messages the appliance accepts from one robot in a second. A
// listening robot sends 17, or 50 with the shortest packets, and more after the network has stalled.
const maxMessagesPerSecond = 250

// incomingFrames is how many messages may wait for the loop: some seconds of sound.
const incomingFrames = 64

// newSession returns a session of a robot on a channel. loop.run starts its goroutines.
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

// readMessages parses the messages that arrive and hands them to the loop, until the transport closes.
func (s *session) readMessages() {
	// One buffer for each frame that may wait in the channel, one for the frame that the loop handles, and
	// one for the frame being read.
	var buffers [incomingFrames + 2][]byte
	var bad, big logOnce
	for n := 0; ; {
		text, audio, isText, err := s.Receive()
		if err != nil {
			if errors.Is(err, socket.ErrTooBig) {
				s.log.Warn("the robot sent a message that is too large; the channel is closed", "limit", xiaozhi.MaxMessage+1)
			}
			return
		}
		if !isText && len(audio.Opus) > voice.MaxPacket {
			big.warn(s.log, "the robot sent sound packets that are too large for Opus; such packets are dropped", fmt.Errorf("%d bytes", len(audio.Opus)))
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
			bad.warn(s.log, "the robot sent a message that cannot be parsed; such messages are ignored", err)
			continue
		}
		s.incoming <- frame{message: m}
	}
}

// post hands an input to the loop and waits until the loop has handled it. turn is as in posted. post
// returns dialogue.ErrOffline if the session has ended, and ctx's error if ctx ends first.
func (s *session) post(ctx context.Context, turn int, in dialogue.Input) error {
	handled := make(chan struct{})
	select {
	case s.inputs <- posted{in, turn, handled}:
	case <-s.done:
		return dialogue.ErrOffline
	case <-ctx.Done():
		return ctx.Err()
	}
	// The loop may end without having read the input.
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

// sendRPC sends a JSON-RPC request to the robot's MCP server.
func (s *session) sendRPC(r xiaozhi.Request) error {
	if !s.player.Send(xiaozhi.ToMCP{Payload: r.Append(nil)}) {
		return tools.ErrChannelClosed
	}
	return nil
}

// publish publishes an event of this session on the bus.
func (s *session) publish(e event.Event) { s.Bus.Publish(s.robot.ID, s.id, e) }

func (s *session) callTool(ctx context.Context, tool string, arguments map[string]any) (device.Result, error) {
	return s.shared.callTool(ctx, s.toolbox, s.robot.ID, s.id, tool, arguments)
}

// collectCommands posts the robot's stored commands to the loop, and rejects the expired ones. It reads from
// disk, so the loop runs it in another goroutine.
func (s *session) collectCommands(ctx context.Context) {
	if !s.unsaved.save() {
		return // the commands are meant for an adopted robot, and this one is a stranger
	}
	now := time.Now()
	for _, c := range s.Commands.list(s.robot.ID) {
		if !now.Before(c.Expires) {
			s.Commands.drop(s.robot.ID, c.ID)
			for _, e := range c.rejected(dialogue.ReasonExpired) {
				s.publish(e)
			}
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

// unsaved holds data of a session that is not stored yet: nothing about a stranger is stored. save stores
// it once the robot is adopted.
type unsaved struct {
	options *Options
	robot   device.ID

	mu     sync.Mutex
	record *SessionRecord // nil if it is stored already
	echo   *bool          // whether the appliance cancels the robot's echo; nil if it is stored or not reported yet
	tools  []device.Tool  // the robot's tools; nil if they are stored or have not changed
}

// update changes the unsaved data. It calls change with mu held.
func (u *unsaved) update(change func(*unsaved)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(u)
}

// save reports whether the robot is adopted, and if so stores all unsaved data. It may wait for the
// disk.
func (u *unsaved) save() (trusted bool) {
	if !u.options.Robots.Trusts(u.robot) {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.record != nil {
		u.options.Records.addSession(*u.record)
	}
	if u.echo != nil {
		u.options.Robots.StoreEcho(u.robot, *u.echo)
	}
	if u.tools != nil {
		u.options.Robots.StoreTools(u.robot, u.tools)
	}
	u.record, u.echo, u.tools = nil, nil, nil
	return true
}
