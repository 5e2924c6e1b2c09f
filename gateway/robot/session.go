package robot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/playback"
	"perch/gateway/robot/tools"
	"perch/gateway/robot/transcript"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/device"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/socket"
	"perch/voice"
)

// session is one open channel of a robot, as its goroutines share it. There are
// four, each with one duty:
//
//	read   socket to messages
//	loop   owns the state, and never blocks
//	turn   at most one; lives as long as its context
//	write  the only one that sends, and the one that owns time
type session struct {
	*Options
	server    *Server
	id        string
	robot     device.Robot
	framing   xiaozhi.Framing
	transport transport
	log       *slog.Logger
	inbox
	player   *playback.Player
	toolbox  *tools.Client
	ownTools bool // the toolbox ends with the session
	tap      transcript.Tap
	pending  pendingRecords
	turns    sync.WaitGroup // and what else may wait for the disk
	shared
}

// inbox is what the loop is sent.
type inbox struct {
	incoming chan frame  // from read
	inputs   chan posted // from turns, and from the appliance
}

// shared is what every goroutine may read of a session, and write.
type shared struct {
	muted    atomic.Bool
	question atomic.Pointer[agent.Question] // that waits for an answer
	greeted  atomic.Bool                    // its hello was answered
	replaced atomic.Bool                    // by another session of the robot
}

// loop is what only the loop has: no other goroutine can write the state.
type loop struct {
	*session
	options   *Options // that the state is set up by
	state     dialogue.State
	audioIn   audioInput
	turn      *turn
	utterance *voice.Utterance
	spoken    []string // by the turn
	turnCount int
	packet    dialogue.Packet // memory for an input
	closedWhy string
	badAudio  logOnce
	badMCP    logOnce
	manyTools logOnce
	tooSlow   bool // the writer's lane of now was full
}

// logOnce logs the first fault of a kind, which may come seventeen times a second.
type logOnce struct{ done bool }

func (o *logOnce) warn(log *slog.Logger, what string, err error) {
	if !o.done {
		log.Warn(what, "err", err)
	}
	o.done = true
}

// frame is a message as read, in the reader's memory until it is handled.
type frame struct {
	message xiaozhi.FromRobot // nil for audio
	audio   xiaozhi.Audio
}

// incomingFrames may wait for the loop: some seconds of sound.
const incomingFrames = 64

// newLoop returns the loop of a new session.
func newLoop(server *Server, t transport, robot device.Robot, f xiaozhi.Framing, id string) (*loop, error) {
	o := server.current.Load()
	audioIn, err := newAudioInput()
	if err != nil {
		return nil, err
	}
	s := &session{
		Options: server.options, server: server, id: id, robot: robot, framing: f, transport: t,
		log: server.logOf(robot.ID).With("robot", robot.ID, "session", id),
		inbox: inbox{
			incoming: make(chan frame, incomingFrames), inputs: make(chan posted, incomingFrames),
		},
	}
	if s.player, err = playback.New(t, id, robot, &s.tap, server.encoders, server.options.Loudness); err != nil {
		return nil, err
	}
	if s.toolbox = t.Toolbox(s.sendRPC); s.toolbox == nil {
		s.toolbox = tools.New(robot.KnownTools(), server.toolLimitOf(robot.ID), s.sendRPC)
		s.ownTools = true
	}
	l := &loop{session: s, audioIn: audioIn}
	l.follow(o)
	return l, nil
}

// follow takes over what is not a turn's own.
func (l *loop) follow(o *Options) {
	l.options = o
	l.audioIn.pointer.SetSilence(o.Silence)
}

// Why a robot that does not read is let go.
const (
	whyTooSlow       = "too slow" // the lane of now is full
	whySendingFailed = "sending failed"
	whyReplaced      = "replaced by a newer channel"
)

// lastWords is how long what is queued may take to leave when a session ends.
const lastWords = time.Second

// run holds the session until it ends, and returns why it did.
func (l *loop) run(ctx context.Context) string {
	l.state = dialogue.New(time.Now(), voice.LongestUtterance, l.options.dialogue())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(l.incoming)
		l.read()
	})
	writeCtx, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	writeEnded, wrote := make(chan error, 1), make(chan struct{})
	wg.Go(func() {
		defer close(wrote)
		writeEnded <- l.player.Run(writeCtx)
	})

	l.work(ctx, writeEnded)

	if l.ownTools {
		l.toolbox.Close()
	}
	l.stopTurn()
	stopWriting()
	// What waits in the lane of now still leaves, unless the robot does not read.
	last := time.NewTimer(lastWords)
	select {
	case <-wrote:
	case <-last.C:
	}
	last.Stop()
	l.transport.Close(socket.Normal, l.closedWhy)
	for range l.incoming { // let read see that the transport is closed
	}
	wg.Wait()
	l.audioIn.close()
	l.server.vision.Revoke(l.id)
	return l.closedWhy
}

// read turns what arrives into messages. It ends with the transport.
func (s *session) read() {
	// Frames in the channel keep the memory their audio was copied to, so
	// there is one more buffer than can wait, one being handled, one filling.
	var buffers [incomingFrames + 2][]byte
	var bad, big logOnce
	for n := 0; ; {
		text, audio, isText, err := s.transport.Receive()
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

// posted is an input on its way. An input of a cancelled turn is ignored.
type posted struct {
	dialogue.Input
	from    *turn         // nil from the appliance
	handled chan struct{} // closed when the loop has dealt with it; may be nil
}

// work handles what arrives, until the session or ctx ends.
func (l *loop) work(ctx context.Context, writeEnded <-chan error) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !l.state.Closed() {
		armed := l.state.Deadline()
		if !armed.IsZero() {
			timer.Reset(time.Until(armed))
		}
		select {
		case f, open := <-l.incoming:
			switch {
			case !open:
				l.input(ctx, dialogue.HangUp{Why: "the robot closed the channel"})
				return
			case f.message == nil:
				l.audio(ctx, f.audio)
			default:
				l.readProgress(ctx)
				l.input(ctx, dialogue.FromRobot{Message: f.message})
			}
		case in := <-l.inputs:
			l.readProgress(ctx)
			if in.from == nil {
				l.tap.Command(in.Input)
			}
			if in.from == nil || in.from == l.turn {
				l.input(ctx, in.Input)
			}
			if in.handled != nil {
				close(in.handled)
			}
		case <-l.player.Reported():
			l.progress(ctx)
		case err := <-writeEnded:
			l.log.Info("the robot cannot be reached any more", "err", err)
			l.input(ctx, dialogue.HangUp{Why: whySendingFailed})
		case <-timer.C:
			l.input(ctx, dialogue.Tick{})
		case <-ctx.Done():
			why := "the appliance stops"
			if l.replaced.Load() {
				why = whyReplaced
			}
			l.input(ctx, dialogue.HangUp{Why: why})
		}
		if l.tooSlow && !l.state.Closed() {
			l.log.Warn("the robot does not read what it is sent; the channel is closed")
			l.input(ctx, dialogue.HangUp{Why: whyTooSlow})
		}
	}
}

// input runs one step and its effects.
func (l *loop) input(ctx context.Context, in dialogue.Input) {
	if o := l.server.current.Load(); o != l.options {
		l.follow(o)
		l.step(ctx, dialogue.Configure{Settings: o.dialogue()})
	}
	l.step(ctx, in)
}

func (l *loop) step(ctx context.Context, in dialogue.Input) {
	var effects []dialogue.Effect
	l.state, effects = dialogue.Step(l.state, time.Now(), in)
	if l.stepped != nil {
		l.stepped(in, l.state)
	}
	for _, e := range effects {
		l.perform(ctx, e)
	}
}

// readProgress takes what the writer has reported before anything else happens, so
// that an interruption finds no turn that has ended already.
func (l *loop) readProgress(ctx context.Context) {
	select {
	case <-l.player.Reported():
		l.progress(ctx)
	default:
	}
}

// progress looks at what the writer has done with the current playback.
func (l *loop) progress(ctx context.Context) {
	if l.turn == nil {
		return
	}
	p := l.player.Progress()
	if !p.First.IsZero() {
		l.turn.clock.markAt(event.StageFirstPacket, p.First)
	}
	l.spoken = append(l.spoken, p.Spoken...)
	l.input(ctx, dialogue.Progress{Started: p.Started, Began: p.Began, Spoken: p.Spoken, Gesture: p.Gesture, Paused: p.Paused,
		Stopped: p.Stopped, AskFor: p.AskFor, Drained: p.Drained})
}

// send queues a message. A robot that does not read is disconnected.
func (l *loop) send(m xiaozhi.ToRobot) {
	l.tooSlow = !l.player.Send(m) || l.tooSlow
}

func (s *session) sendRPC(r xiaozhi.Request) error {
	if !s.player.Send(xiaozhi.ToMCP{Payload: r.Append(nil)}) {
		return tools.ErrChannelClosed
	}
	return nil
}

func (s *session) publish(e event.Event) { s.Bus.Publish(s.robot.ID, s.id, e) }

// call runs one of the robot's tools. It publishes the condition that a robot answers to any
// caller: its battery is reported nowhere else.
func (s *session) call(ctx context.Context, tool string, arguments map[string]any) (device.Result, error) {
	answer, err := s.toolbox.Call(ctx, tool, arguments)
	if status, ok := tools.ParseStatus(tool, answer.Text); ok && err == nil {
		s.server.keepStatus(s.robot.ID, status)
		s.publish(status)
	}
	return answer, err
}
