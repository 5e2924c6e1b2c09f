package robot

import (
	"context"
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
	"perch/socket"
	"perch/voice"
)

// session is one open channel of a robot. Four goroutines share it, each with
// one duty:
//
//	read   socket to messages
//	loop   owns the state, and never blocks
//	turn   at most one; lives as long as its context
//	write  the only one that sends, and the one that owns time
type session struct {
	*Options
	id        string
	robot     device.Robot
	framing   xiaozhi.Framing
	transport transport
	log       *slog.Logger
	phrases   *phrasebook                     // in the house's voice
	phrasesOf func(voice.Options) *phrasebook // in another
	cameras   *cameras
	guests    chan struct{} // places for strangers' utterances
	answered  chan struct{} // and for their answers
	pending   pendingRecords

	incoming chan frame    // from read
	inputs   chan posted   // from turns, and from the house
	reported chan struct{} // from write: look at the playback's progress

	writer  *writer
	toolbox *toolbox
	encoder sharedEncoder
	tap     tap

	muted    atomic.Bool
	question atomic.Pointer[agent.Question] // that waits for an answer
	greeted  atomic.Bool                    // its hello was answered
	replaced atomic.Bool                    // another session of the robot has taken its place

	// Of the loop.
	state     state
	ear       audioInput
	turn      *turn
	turns     sync.WaitGroup
	utterance *voice.Utterance
	spoken    []string
	turnCount int
	next      []input // that a step has brought about
	closedWhy string
	badAudio  logOnce
	badMCP    logOnce
	manyTools logOnce
	tooSlow   bool // the writer's lane of now was full
}

// once tells of the first fault of a kind: a robot that has one, has it
// seventeen times a second.
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

// incomingFrames is how many messages may wait for the loop: some seconds of
// sound, more than it ever falls behind.
const incomingFrames = 64

func newSession(server *Server, t transport, robot device.Robot, f xiaozhi.Framing, id string) (*session, error) {
	o := server.options
	encoder, err := voice.NewEncoder(voice.SpeakerRate)
	if err != nil {
		return nil, err
	}
	ear, err := newAudioInput(o.Silence)
	if err != nil {
		return nil, err
	}
	s := &session{
		Options: o, id: id, robot: robot, framing: f, transport: t,
		phrases: &server.phrases, phrasesOf: server.phrasesOf, cameras: &server.cameras, guests: server.strangerUtterances, answered: server.strangerTurns,
		log:      server.logOf(robot.ID).With("robot", robot.ID, "session", id),
		incoming: make(chan frame, incomingFrames), inputs: make(chan posted, incomingFrames),
		reported: make(chan struct{}, 1), ear: ear,
	}
	s.writer = newWriter(t, id, robot, &s.tap)
	s.encoder.encoder = encoder
	s.toolbox = newToolbox(robot.KnownTools(), server.toolLimitOf(robot.ID), s.sendRPC)
	s.state = state{greets: o.Greet, limits: limits{
		hello: helloWithin, idle: o.Idle, stalled: stalledAfter, longest: voice.LongestUtterance,
	}}
	return s, nil
}

// Why a robot that does not read is let go.
const (
	whyTooSlow       = "too slow" // the lane of now is full
	whySendingFailed = "sending failed"
	whyReplaced      = "replaced by a newer channel"
)

// Limits of a session.
const (
	helloWithin  = 10 * time.Second
	stalledAfter = 1200 * time.Millisecond // without a packet, an utterance is over
	lastWords    = time.Second             // for what is queued when a session ends
)

// run holds the session until it ends, and returns why it did.
func (s *session) run(ctx context.Context) string {
	s.state.channel.opened = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(s.incoming)
		s.read()
	})
	writeCtx, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	writeEnded, wrote := make(chan error, 1), make(chan struct{})
	wg.Go(func() {
		defer close(wrote)
		writeEnded <- s.writer.run(writeCtx)
	})

	s.loop(ctx, writeEnded)

	s.toolbox.close()
	s.stopTurn()
	s.writer.play(nil)
	stopWriting()
	// What waits to be said at once still leaves, unless the robot does not read.
	last := time.NewTimer(lastWords)
	select {
	case <-wrote:
	case <-last.C:
	}
	last.Stop()
	s.transport.Close(socket.Normal, s.closedWhy)
	for range s.incoming { // let read see that the transport is closed
	}
	wg.Wait()
	s.ear.close()
	s.cameras.dismiss(s.id)
	return s.closedWhy
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
		s.tap.fromRobot(text, m)
		if err != nil {
			bad.warn(s.log, "the robot sent a message that cannot be read; such messages are ignored", err)
			continue
		}
		s.incoming <- frame{message: m}
	}
}

// posted is an input on its way to the loop. What a turn posted before it was
// cancelled does not concern the next one.
type posted struct {
	input
	from    *turn         // nil from the house
	handled chan struct{} // closed when the loop has dealt with it; may be nil
}

// loop owns the state. It ends when the step closes the channel, when the
// robot does, or with ctx.
func (s *session) loop(ctx context.Context, writeEnded <-chan error) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for s.state.phase != closing {
		armed := s.state.due()
		if !armed.IsZero() {
			timer.Reset(time.Until(armed))
		}
		select {
		case f, open := <-s.incoming:
			if f.message != nil {
				s.readProgress(ctx)
			}
			if !open {
				s.input(ctx, hangUp{"the robot closed the channel"})
				return
			}
			s.frame(ctx, f)
		case in := <-s.inputs:
			s.readProgress(ctx)
			if in.from == nil {
				s.tap.given(words(in.input))
			}
			if in.from == nil || in.from == s.turn {
				s.input(ctx, in.input)
			}
			if in.handled != nil {
				close(in.handled)
			}
		case <-s.reported:
			s.progress(ctx)
		case err := <-writeEnded:
			s.log.Info("the robot cannot be reached any more", "err", err)
			s.input(ctx, hangUp{whySendingFailed})
		case <-timer.C:
			s.input(ctx, tick{})
		case <-ctx.Done():
			why := "the appliance stops"
			if s.replaced.Load() {
				why = whyReplaced
			}
			s.input(ctx, hangUp{why})
		}
		if s.tooSlow && s.state.phase != closing {
			s.log.Warn("the robot does not read what it is sent; the channel is closed")
			s.input(ctx, hangUp{whyTooSlow})
		}
	}
}

// input runs one step and carries out its effects, and then what they have
// brought about.
func (s *session) input(ctx context.Context, in input) {
	s.next = append(s.next[:0], in)
	for len(s.next) > 0 {
		var effects []effect
		in, s.next = s.next[0], s.next[1:]
		s.state, effects = step(s.state, time.Now(), in)
		if s.stepped != nil {
			s.stepped(in, s.state)
		}
		for _, e := range effects {
			s.perform(ctx, e)
		}
	}
}

func (s *session) frame(ctx context.Context, f frame) {
	if f.message != nil {
		s.input(ctx, fromRobot{f.message})
		return
	}
	s.audio(ctx, f.audio)
}

// look takes note of what the writer has reported before anything else happens,
// so that nobody interrupts what has ended already.
func (s *session) readProgress(ctx context.Context) {
	select {
	case <-s.reported:
		s.progress(ctx)
	default:
	}
}

// progress looks at what the writer has done with the current playback.
func (s *session) progress(ctx context.Context) {
	if s.turn == nil {
		return
	}
	p := s.turn.playback.takeProgress()
	if !p.first.IsZero() {
		s.turn.clock.markAt(event.StageFirstPacket, p.first)
	}
	s.spoken = append(s.spoken, p.spoken...)
	s.input(ctx, p)
}

// send gives a message to the writer's lane of now. A robot that does not
// read is let go.
func (s *session) send(m xiaozhi.ToRobot) {
	select {
	case s.writer.now <- m:
	default:
		s.tooSlow = true
	}
}

func (s *session) sendRPC(r xiaozhi.Request) error {
	select {
	case s.writer.now <- xiaozhi.ToMCP{Payload: r.Append(nil)}:
		return nil
	default:
		return ErrChannelClosed
	}
}

func (s *session) publish(e event.Event) { s.Bus.Publish(s.robot.ID, s.id, e) }
