package robot

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"perch/gateway/robot/tools"
	"strings"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/limit"
	"perch/voice"
)

// perform carries out an effect. It does not block.
func (l *loop) perform(ctx context.Context, e dialogue.Effect) {
	switch e := e.(type) {
	case dialogue.Send:
		l.send(e.Message)
	case dialogue.Publish:
		l.publish(e.Event)
	case dialogue.ReportWakeText:
		l.logRefused(l.Senses.Detected(l.robot.ID, l.id, e.Text))
	case dialogue.ReportSensor:
		l.logRefused(l.Senses.FromRobot(l.robot.ID, l.id, e.Event.Name, e.Event.Data))
	case dialogue.Welcome:
		l.welcome(e)
	case dialogue.Introduce:
		l.introduce(e.List)
	case dialogue.CollectWaiting:
		l.turns.Go(func() { l.collectWaiting(ctx) })
	case dialogue.DeliverMCP:
		l.deliver(e.Payload)
	case dialogue.ForgetCommand:
		l.turns.Go(func() { l.Commands.drop(l.robot.ID, e.ID) })
	case dialogue.CloseChannel:
		l.closedWhy = e.Why
	case dialogue.EndInquiry:
		e.About.Ended <- e.Ending // there is a slot
	case dialogue.AnswerPlay:
		e.Answer <- e.Err // there is a slot
	default:
		l.performInTurn(ctx, e)
	}
}

// performInTurn carries out the effects on the turn, its speech and its utterance.
func (l *loop) performInTurn(ctx context.Context, e dialogue.Effect) {
	switch e := e.(type) {
	case dialogue.BeginTurn:
		l.beginTurn(ctx, e.TurnStart)
	case dialogue.KeepTranscript:
		l.turn.transcript = e.Text
	case dialogue.ResetInput:
		l.audioIn.reset()
	case dialogue.FinishUtterance:
		l.finishUtterance()
	case dialogue.StartAnswer:
		l.startUtterance()
		select {
		case l.turn.utterances <- l.utterance:
		default: // the one before has not been read; it is the answer
		}
	case dialogue.CutQuestion:
		l.player.Hurry()
	case dialogue.RestartSpeech:
		l.tooSlow = !l.player.RestartSpeech() || l.tooSlow
	case dialogue.ShowQuestion:
		l.question.Store(e.Question)
	case dialogue.AnswerQuestion:
		l.answerQuestion(e.Answer)
	case dialogue.CancelTurn:
		speaking := l.stopTurn()
		l.keepTurn(event.EndCancelled)
		if speaking || e.Abort {
			l.send(xiaozhi.TTSStop{})
		}
	case dialogue.EndTurn:
		l.endTurn(e)
	}
}

// answerQuestion gives the turn the answer to its question.
func (l *loop) answerQuestion(a agent.Answer) {
	to := l.turn.answers
	if a.Outcome == agent.AnswerAllowed || a.Outcome == agent.AnswerDenied {
		to = l.turn.decided // there is a slot: Reply has claimed the question
	}
	select {
	case to <- a:
	default: // answered already
	}
}

// welcome answers a hello.
func (l *loop) welcome(e dialogue.Welcome) {
	l.send(xiaozhi.Welcome{Session: l.id, Audio: xiaozhi.AudioParams{
		SampleRate: voice.SpeakerRate, FrameDuration: int(voice.FrameDuration.Milliseconds()),
	}, UDP: l.transport.Begin(l.id)})
	if e.First {
		l.greeted.Store(true)
		l.publish(event.RobotOnline{Framing: int(l.framing)})
	}
	l.learn(func(u *pendingRecords) { u.echo = &e.Hello.Features.AEC })
	l.turns.Go(func() { l.keep() })
	if err := l.cancelEcho(e.Hello.Features.AEC); err != nil {
		l.log.Warn("the robot leaves echo cancellation to us, and it cannot be had; speech will not interrupt it", "err", err)
	}
}

// introduce gives the robot's tools our name and the address for pictures, and asks
// for their list. The firmware keeps neither from one channel to the next.
func (l *loop) introduce(list bool) {
	url, token := l.server.vision.Issue(l.robot, l.id, time.Now())
	if err := l.toolbox.Introduce(l.Version, url, token); err != nil {
		l.log.Warn("the robot's tools were not given our name", "err", err)
	}
	if !list {
		return
	}
	if err := l.toolbox.RequestList(); err != nil {
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

// deliver handles a response of the robot's tools.
func (l *loop) deliver(payload []byte) {
	listed, err := l.toolbox.Deliver(payload)
	if err != nil {
		l.badMCP.warn(l.log, "the robot's MCP answer cannot be used; others like it are not logged", err)
	}
	if listed != nil {
		if n := l.toolbox.Omitted(); n > 0 {
			l.manyTools.warn(l.log, "the robot lists more tools than are taken; the others cannot be used",
				fmt.Errorf("%d left out, of at most %d tools and %d bytes", n, tools.MaxTools, limit.Body))
		}
		l.learn(func(u *pendingRecords) { u.tools = listed })
		l.turns.Go(func() { l.keep() })
		l.publish(event.ToolsListed{Count: len(listed)})
	}
}

// beginTurn starts a turn.
func (l *loop) beginTurn(ctx context.Context, start dialogue.TurnStart) {
	ctx, cancel := context.WithCancel(ctx)
	t := newTurn(l.session, start, l.player.Begin(), cancel)
	l.turn, l.spoken = t, nil
	if start.Announcement.Sound == nil {
		l.turnCount++
	}
	var u *voice.Utterance
	if start.Utterance {
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

// finishUtterance ends the sound of the utterance.
func (l *loop) finishUtterance() {
	if l.utterance == nil {
		return
	}
	if l.turn != nil {
		ended := time.Now()
		if l.state.Mode() != xiaozhi.Manual {
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
	left := l.player.Cancel(time.Now())
	for _, text := range left.Spoken { // gone, and not looked at yet
		l.spoken = append(l.spoken, text)
		l.publish(event.Said{Text: text})
	}
	l.spoken = cutShort(l.spoken, left.PlayedPart)
	if l.utterance != nil {
		l.utterance.Finish()
		l.utterance = nil
	}
	return left.Speaking
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

// endTurn publishes the end of a turn that has ended by itself. A turn without a
// result, such as that of a noise, is not published, and neither is a sound.
func (l *loop) endTurn(e dialogue.EndTurn) {
	l.player.Clear()
	reboot := false
	if e.End == event.EndFailed {
		l.log.Warn("a turn failed", "err", e.Reason)
		l.publish(event.Fault{Part: "turn", Cause: e.Reason})
	}
	if l.turn.start.Announcement.Sound == nil && (e.End != "" || len(l.spoken) > 0) {
		e.End = cmp.Or(e.End, event.EndDone)
		l.publish(event.TurnEnded{End: e.End, Reason: e.Reason, Stages: l.turn.clock.all()})
		reboot = l.turn.reboot.Load()
		l.keepTurn(e.End)
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
