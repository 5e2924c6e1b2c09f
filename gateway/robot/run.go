package robot

import (
	"context"
	"sync"
	"time"

	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/socket"
	"perch/voice"
)

// Reasons for closing a channel. The first two usually mean that the robot does not read its messages.
const (
	whyTooSlow       = "too slow" // too many messages wait to be sent
	whySendingFailed = "sending failed"
	whyReplaced      = "replaced by a newer channel"
)

// flushTimeout is how long a session that ends waits for its queued messages to be sent.
const flushTimeout = time.Second

// run runs the session until it ends, and returns the reason for the end.
func (l *loop) run(ctx context.Context) string {
	l.state = dialogue.New(time.Now(), voice.MaxUtterance, l.applyOptions(l.shared.current.Load()))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(l.incoming)
		l.readMessages()
	})
	writeCtx, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	writeEnded, wrote := make(chan error, 1), make(chan struct{})
	wg.Go(func() {
		defer close(wrote)
		writeEnded <- l.player.Run(writeCtx)
	})

	l.runLoop(ctx, writeEnded)

	if l.tools == nil {
		l.toolbox.Close()
	}
	l.stopTurn()
	stopWriting()
	// Queued messages are still sent, unless the robot does not read them.
	select {
	case <-wrote:
	case <-time.After(flushTimeout):
	}
	l.Transport.Close(socket.Normal, l.closedWhy)
	for range l.incoming { // readMessages may be blocked because this channel is full
	}
	wg.Wait()
	l.mic.close()
	l.shared.vision.Revoke(l.id)
	return l.closedWhy
}

// runLoop handles messages, inputs, progress and timeouts, until the session ends. When ctx ends it
// hangs up.
func (l *loop) runLoop(ctx context.Context, writeEnded <-chan error) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !l.state.Closed() {
		if deadline := l.state.Deadline(); !deadline.IsZero() {
			timer.Reset(time.Until(deadline))
		}
		select {
		case f, open := <-l.incoming:
			switch {
			case !open:
				l.handleInput(ctx, dialogue.HangUp{Why: "the robot closed the channel"})
				return
			case f.message == nil:
				l.handleAudio(ctx, f.audio)
			default:
				l.handlePendingProgress(ctx)
				l.handleInput(ctx, dialogue.FromRobot{Message: f.message})
			}
		case in := <-l.inputs:
			l.handlePendingProgress(ctx)
			if in.turn == 0 {
				l.tap.Command(in.Input)
			}
			if in.turn == 0 || l.turn != nil && in.turn == l.number {
				l.handleInput(ctx, in.Input)
			}
			if in.handled != nil {
				close(in.handled)
			}
		case <-l.player.Reported():
			l.handleProgress(ctx)
		case err := <-writeEnded:
			l.log.Info("the robot can no longer be reached", "err", err)
			l.handleInput(ctx, dialogue.HangUp{Why: whySendingFailed})
		case <-timer.C:
			l.handleInput(ctx, dialogue.Tick{})
		case <-ctx.Done():
			why := "the appliance stops"
			if l.replaced.Load() {
				why = whyReplaced
			}
			l.handleInput(ctx, dialogue.HangUp{Why: why})
		}
		if l.tooSlow && !l.state.Closed() {
			l.log.Warn("the robot does not read the messages it is sent; the channel is closed")
			l.handleInput(ctx, dialogue.HangUp{Why: whyTooSlow})
		}
	}
}

// handleInput applies an input to the dialogue. If the options have changed, it applies them first.
func (l *loop) handleInput(ctx context.Context, in dialogue.Input) {
	if o := l.shared.current.Load(); o != l.options {
		l.runStep(ctx, dialogue.Configure{Settings: l.applyOptions(o)})
	}
	l.runStep(ctx, in)
}

// runStep runs one step of the dialogue and carries out its effects.
func (l *loop) runStep(ctx context.Context, in dialogue.Input) {
	var effects []dialogue.Effect
	l.state, effects = dialogue.Step(l.state, time.Now(), in)
	if l.stepped != nil {
		l.stepped(in, l.state)
	}
	for _, e := range effects {
		l.performEffect(ctx, e)
	}
}

// handlePendingProgress handles the player's progress, if there is any. It runs before each message and
// input, so that no message or input is taken for an interruption of a turn that has already ended.
func (l *loop) handlePendingProgress(ctx context.Context) {
	select {
	case <-l.player.Reported():
		l.handleProgress(ctx)
	default:
	}
}

// handleProgress handles the player's progress with the turn's speech.
func (l *loop) handleProgress(ctx context.Context) {
	if l.turn == nil {
		return
	}
	p := l.player.Progress()
	if !p.First.IsZero() {
		l.turn.clock.endStageAt(event.StageFirstPacket, p.First)
	}
	l.spoken = append(l.spoken, p.Spoken...)
	l.handleInput(ctx, p.Progress)
}

// handleAudio handles a packet of the robot's sound: it adds the sound to the utterance if one is under way,
// otherwise to the ring buffer, and looks for the beginning and the end of speech.
func (l *loop) handleAudio(ctx context.Context, a xiaozhi.Audio) {
	if len(a.Opus) == 0 && !a.Lost {
		return
	}
	if l.muted.Load() {
		l.packet = dialogue.Packet{Duration: voice.FrameDuration, Muted: true}
		l.handleInput(ctx, &l.packet)
		return
	}
	pcm, err := l.mic.decode(a)
	if err != nil {
		l.badAudio.warn(l.log, "the robot sent sound that cannot be decoded; such packets are dropped", err)
		return
	}
	l.packet = dialogue.Packet{Duration: time.Duration(len(pcm)) * time.Second / voice.MicRate}
	l.handleInput(ctx, &l.packet)
	pcm, echoOnly := l.mic.removeEcho(a.Timestamp, pcm)
	if l.state.Hearing() && l.utterance != nil {
		l.utterance.Write(pcm)
		if text := l.utterance.Partial().Text; text != "" && text != l.hearing {
			l.hearing = text
			l.publish(event.Hearing{Text: text})
		}
	} else {
		l.mic.bufferSound(pcm)
	}
	edge := voice.NoEdge
	// The robot's own speech is not an utterance, and must not count as background noise either.
	if l.state.FindsSpeech() && (!echoOnly || l.state.Hearing()) {
		l.expectEnding()
		edge = l.mic.endPointer.Feed(pcm)
	}
	if edge == voice.NoEdge && l.utterance != nil {
		paused := l.mic.endPointer.Paused()
		l.utterance.SetPaused(paused)
		l.draftAnswer(paused)
	}
	l.tap.PacketFromRobot(l.mic.endPointer.Voiced() || l.state.Mode() == xiaozhi.Manual && l.state.Hearing())
	switch edge {
	case voice.SpeechBegan:
		l.handleInput(ctx, dialogue.SpeechBegan{})
	case voice.SpeechEnded:
		l.handleInput(ctx, dialogue.SpeechEnded{})
	}
}

// expectEnding tells the end-pointer from the text so far how much silence the utterance needs. In manual mode the
// button ends it instead. A stranger's sentence always needs the usual silence, because Options.Ending looks a
// sentence up in private data of the appliance's owner.
func (l *loop) expectEnding() {
	if !l.state.Hearing() || l.utterance == nil || l.state.Mode() == xiaozhi.Manual || l.turn == nil || !l.turn.trusted.Load() {
		return
	}
	l.mic.endPointer.Expect(l.utterance, func(text string) voice.Ending {
		ending := l.turn.options.Ending(text, l.turn.options.Character(l.robot.ID).Speech.Language, l.state.Asking())
		if l.ending = text; ending == voice.Unfinished || l.state.Asking() {
			l.ending = ""
		}
		return ending
	})
}

// draftAnswer begins to answer the utterance if the person pauses after a text that may be all of it, once in each
// pause. If the person goes on, it discards the draft.
func (l *loop) draftAnswer(paused bool) {
	switch {
	case l.turn == nil || !l.turn.start.Utterance:
	case !paused && l.drafted:
		l.turn.keepDraft(nil)
		l.ending, l.drafted = "", false
	case paused && !l.drafted && l.ending != "" && l.utterance.Partial().Text == l.ending:
		l.drafted = true
		l.turn.draftAnswer(l.ending)
	}
}
