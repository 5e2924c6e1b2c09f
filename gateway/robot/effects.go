package robot

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/limit"
	"perch/voice"
)

// Effects are what a session does about it. The set is closed, and the loop
// carries them out in their order. None blocks.
type effect interface {
	perform(ctx context.Context, l *loop)
}

type (
	send    struct{ message xiaozhi.ToRobot }
	publish struct{ event event.Event }
	// reportWakeText is the text that woke a robot; reportSensor is a sensor event.
	reportWakeText struct{ text string }
	reportSensor   struct{ event xiaozhi.Event }

	welcome struct { // answer a hello
		hello xiaozhi.Hello
		first bool
	}
	introduce      struct{ list bool }      // us to the robot's tools, and ask for their list
	collectWaiting struct{}                 // what waited for the robot while its channel was closed
	deliverMCP     struct{ payload []byte } // an MCP response
	resetInput     struct{}                 // forget sound and speech so far
	keepTranscript struct{ text string }    // as what the turn answers

	beginTurn       struct{ turnStart }
	startAnswer     struct{} // to the turn that asks
	cutQuestion     struct{} // somebody answers before it has been put
	restartSpeech   struct{} // have the robot speak that may have gone on listening
	finishUtterance struct{}
	showQuestion    struct{ question *agent.Question } // to those who may answer elsewhere
	answerQuestion  struct{ agent.Answer }
	endTurn         struct{ end, reason string } // it has ended by itself: publish and record that
	closeChannel    struct{ why string }
	forgetCommand   struct{ id string } // it was carried out, or never will be
)

// cancelTurn stops a turn and drops its playback. A tts stop follows where
// the robot was made to speak, and always when it answers an abort.
type cancelTurn struct{ abort bool }

// turnStart is what a turn begins with: an utterance, a text or an announcement.
type turnStart struct {
	text         string
	announcement announcement
	aloud        bool // a refused utterance is answered aloud
	utterance    bool
}

func (e send) perform(_ context.Context, l *loop)    { l.send(e.message) }
func (e publish) perform(_ context.Context, l *loop) { l.publish(e.event) }
func (e collectWaiting) perform(c context.Context, l *loop) {
	l.turns.Go(func() { l.collectWaiting(c) })
}
func (resetInput) perform(_ context.Context, l *loop)     { l.audioIn.reset() }
func (cutQuestion) perform(_ context.Context, l *loop)    { l.turn.playback.hurry() }
func (restartSpeech) perform(_ context.Context, l *loop)  { l.turn.playback.restartSpeech() }
func (e showQuestion) perform(_ context.Context, l *loop) { l.question.Store(e.question) }
func (e closeChannel) perform(_ context.Context, l *loop) { l.closedWhy = e.why }

func (e forgetCommand) perform(_ context.Context, l *loop) {
	l.turns.Go(func() { l.Commands.drop(l.robot.ID, e.id) })
}

func (e reportWakeText) perform(_ context.Context, l *loop) {
	l.logRefused(l.Senses.Detected(l.robot.ID, l.id, e.text))
}

func (e reportSensor) perform(_ context.Context, l *loop) {
	l.logRefused(l.Senses.FromRobot(l.robot.ID, l.id, e.event.Name, e.event.Data))
}

func (e keepTranscript) perform(_ context.Context, l *loop) {
	l.turn.transcript = e.text
	if l.audioIn.pointer.Speaking() { // somebody has gone on while we recognized
		l.next = append(l.next, speechBegan{})
	}
}

func (startAnswer) perform(_ context.Context, l *loop) {
	l.startUtterance()
	select {
	case l.turn.utterances <- l.utterance:
	default: // the one before has not been looked at; it is the answer
	}
}

func (e answerQuestion) perform(_ context.Context, l *loop) {
	to := l.turn.answers
	if o := e.Outcome; o == agent.AnswerAllowed || o == agent.AnswerDenied {
		to = l.turn.decided // there is a slot: Reply has taken the question for itself
	}
	select {
	case to <- e.Answer:
	default: // answered already
	}
}

func (e cancelTurn) perform(_ context.Context, l *loop) {
	speaking := l.stopTurn()
	l.keepTurn(event.EndCancelled)
	if speaking || e.abort {
		l.send(xiaozhi.TTSStop{})
	}
}

// perform answers a hello.
func (e welcome) perform(_ context.Context, l *loop) {
	l.send(xiaozhi.Welcome{Session: l.id, Audio: xiaozhi.AudioParams{
		SampleRate: voice.SpeakerRate, FrameDuration: int(voice.FrameDuration.Milliseconds()),
	}, UDP: l.transport.Begin(l.id)})
	if e.first {
		l.greeted.Store(true)
		l.publish(event.RobotOnline{Framing: int(l.framing)})
	}
	l.learn(func(u *pendingRecords) { u.echo = &e.hello.Features.AEC })
	l.turns.Go(func() { l.keep() })
	if err := l.cancelEcho(e.hello.Features.AEC); err != nil {
		l.log.Warn("the robot leaves echo cancellation to us, and it cannot be had; speech will not interrupt it", "err", err)
	}
}

// perform gives the robot's tools our name and the address for pictures, and asks
// for their list. The firmware keeps neither from one channel to the next.
func (e introduce) perform(_ context.Context, l *loop) {
	url, token := l.server.cameras.issue(l.robot, l.id, time.Now())
	if err := l.toolbox.introduce(l.Version, url, token); err != nil {
		l.log.Warn("the robot's tools were not given our name", "err", err)
	}
	if !e.list {
		return
	}
	if err := l.toolbox.list(); err != nil {
		l.log.Warn("the robot was not asked for its tools", "err", err)
	}
}

// collectWaiting takes over what was to be done while the channel was closed. It reads
// the store, which the loop does not wait for.
func (s *session) collectWaiting(ctx context.Context) {
	if !s.keep() {
		return // what waits is for its owner's robot, which this may not be
	}
	now := time.Now()
	for _, c := range s.Commands.list(s.robot.ID) {
		if !now.Before(c.Expires) {
			s.Commands.drop(s.robot.ID, c.ID)
			s.publish(event.Command{Thing: c.Thing, State: event.CommandRejected, Reason: waitedTooLong})
			continue
		}
		select {
		case s.inputs <- posted{input: c.input()}:
		case <-ctx.Done():
			return
		}
		if c.Thing == commandAlert {
			s.Commands.drop(s.robot.ID, c.ID)
			s.publish(event.Command{Thing: c.Thing, State: event.CommandDone})
		}
	}
}

func (e deliverMCP) perform(_ context.Context, l *loop) {
	listed, err := l.toolbox.deliver(e.payload)
	if err != nil {
		l.badMCP.warn(l.log, "the robot's MCP answer cannot be used; others like it are not logged", err)
	}
	if listed != nil {
		if n := l.toolbox.omitted(); n > 0 {
			l.manyTools.warn(l.log, "the robot lists more tools than are taken; the others cannot be used",
				fmt.Errorf("%d left out, of at most %d tools and %d bytes", n, mostTools, limit.Body))
		}
		l.learn(func(u *pendingRecords) { u.tools = listed })
		l.turns.Go(func() { l.keep() })
		l.publish(event.ToolsListed{Count: len(listed)})
	}
}

func (e beginTurn) perform(ctx context.Context, l *loop) {
	ctx, cancel := context.WithCancel(ctx)
	t := newTurn(l.session, e.turnStart, cancel)
	l.turn, l.spoken = t, nil
	if e.announcement.sound == nil {
		l.turnCount++
	}
	l.writer.play(t.playback)
	var u *voice.Utterance
	if e.utterance {
		u = l.startUtterance()
	} else {
		t.clock.begin(time.Now())
	}
	l.turns.Go(func() {
		defer cancel()
		t.run(ctx, u)
	})
}

// startUtterance collects sound, from a moment before speech was found.
func (l *loop) startUtterance() *voice.Utterance {
	if l.utterance != nil {
		l.utterance.Finish() // its recognizer must not wait for ever
	}
	l.utterance = voice.NewUtterance()
	l.audioIn.before(l.utterance.Write)
	return l.utterance
}

func (finishUtterance) perform(_ context.Context, l *loop) {
	if l.utterance == nil {
		return
	}
	if l.turn != nil {
		ended := time.Now()
		if l.state.mic.mode != xiaozhi.Manual {
			ended = ended.Add(-l.audioIn.pointer.Quiet()) // which was waited out
		}
		l.turn.clock.begin(ended)
		l.turn.clock.mark(event.StageEndpoint)
	}
	l.utterance.Finish()
	l.utterance = nil
}

// stopTurn cancels the turn and its playback. It reports whether the robot still
// speaks.
func (l *loop) stopTurn() (speaking bool) {
	if l.turn == nil {
		return false
	}
	l.turn.cancel()
	l.question.Store(nil)
	left := l.turn.playback.cancel(time.Now())
	for _, text := range left.report.spoken { // gone, and not looked at yet
		l.spoken = append(l.spoken, text)
		l.publish(event.Said{Text: text})
	}
	l.spoken = cutShort(l.spoken, left.playedPart)
	l.writer.play(nil)
	if l.utterance != nil {
		l.utterance.Finish()
		l.utterance = nil
	}
	return left.speaking
}

// cutShort leaves of the last sentence what was played of it: what was really
// spoken enters the history, not what was planned.
func cutShort(spoken []string, playedPart float64) []string {
	if len(spoken) == 0 || playedPart >= 1 {
		return spoken
	}
	words := strings.Fields(spoken[len(spoken)-1])
	played := math.Round(playedPart * float64(len(words)))
	if playedPart > 0 {
		played = max(1, played)
	}
	words = words[:int(played)]
	spoken = spoken[:len(spoken)-1]
	if len(words) > 0 {
		spoken = append(spoken, strings.Join(words, " ")+" …")
	}
	return spoken
}

// perform publishes the end of a turn that has ended by itself. A turn without a
// result, such as that of a noise, is not published, and neither is a sound.
func (e endTurn) perform(_ context.Context, l *loop) {
	l.writer.play(nil)
	reboot := false
	if e.end == event.EndFailed {
		l.log.Warn("a turn failed", "err", e.reason)
		l.publish(event.Fault{Part: "turn", Cause: e.reason})
	}
	if l.turn.start.announcement.sound == nil && (e.end != "" || len(l.spoken) > 0) {
		e.end = cmp.Or(e.end, event.EndDone)
		l.publish(event.TurnEnded{End: e.end, Reason: e.reason, Stages: l.turn.clock.all()})
		reboot = l.turn.reboot.Load()
		l.keepTurn(e.end)
	}
	l.turn = nil
	if reboot {
		l.send(xiaozhi.Reboot{})
	}
}

// keepTurn records what was understood and what was really spoken, however the
// turn ended. Strangers' turns are not recorded; only their agent remembers them.
func (l *loop) keepTurn(end string) {
	t := l.turn
	l.turn = nil
	if t == nil {
		return
	}
	if t.transcript == "" && len(l.spoken) == 0 {
		return // nothing came of it
	}
	now := time.Now()
	words := strings.Join(l.spoken, " ")
	if t.transcript != "" {
		l.Mind.Remembered(string(l.robot.ID), agent.Exchange{Heard: t.transcript, Said: words}, now)
	}
	if t.trusted.Load() {
		l.Records.turn(TurnRecord{
			Robot: l.robot.ID, Session: l.id, At: now, Heard: t.transcript, Said: words, End: end, Stages: t.clock.all(),
		})
	}
}

// logRefused logs that a robot's sensor event was refused.
func (s *session) logRefused(err error) {
	if err != nil {
		s.log.Debug("what the robot sensed is not taken", "err", err)
	}
}
