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
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/tools"
	"perch/limit"
	"perch/plain"
	"perch/voice"
)

// performEffect carries out an effect of the dialogue. It does not block.
func (l *loop) performEffect(ctx context.Context, e dialogue.Effect) {
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
		l.sendWelcome(e)
	case dialogue.Introduce:
		l.initializeMCP(e.List)
	case dialogue.CollectWaiting:
		l.turns.Go(func() { l.collectCommands(ctx) })
	case dialogue.DeliverMCP:
		l.handleMCPResponse(e.Payload)
	case dialogue.ForgetCommand:
		l.turns.Go(func() { l.Commands.drop(l.robot.ID, e.ID) })
	case dialogue.CloseChannel:
		l.closedWhy = e.Why
	case dialogue.EndInquiry:
		e.Question.Ended <- e.Ending // does not block: buffered for the only value
	case dialogue.AnswerPlay:
		e.Answer <- e.Err // does not block: buffered for the only value
	default:
		l.performTurnEffect(ctx, e)
	}
}

// performTurnEffect carries out an effect that concerns the turn, its speech or its utterance.
func (l *loop) performTurnEffect(ctx context.Context, e dialogue.Effect) {
	switch e := e.(type) {
	case dialogue.BeginTurn:
		l.beginTurn(ctx, e.TurnStart)
	case dialogue.KeepTranscript:
		l.turn.transcript = e.Text
	case dialogue.ResetInput:
		l.mic.reset()
	case dialogue.FinishUtterance:
		l.finishUtterance()
	case dialogue.StartAnswer:
		l.startUtterance()
		select {
		case l.turn.utterances <- l.utterance:
		default: // an earlier utterance still waits for its recognition, and is the answer
		}
	case dialogue.CutQuestion:
		l.player.SkipToPause()
	case dialogue.RestartSpeech:
		l.tooSlow = !l.player.RestartSpeech() || l.tooSlow
	case dialogue.ShowQuestion:
		l.question.Store(e.Question)
	case dialogue.AnswerQuestion:
		l.answerQuestion(e.Answer)
	case dialogue.CancelTurn:
		speaking := l.stopTurn()
		l.recordTurn(event.EndCancelled, "")
		if speaking || e.Abort {
			l.send(xiaozhi.TTSStop{})
		}
	case dialogue.EndTurn:
		l.endTurn(e)
	}
}

// answerQuestion hands the turn the answer to its question.
func (l *loop) answerQuestion(a agent.Answer) {
	to := l.turn.answers
	if a.Outcome == agent.AnswerAllowed || a.Outcome == agent.AnswerDenied {
		to = l.turn.decisions // has room: Reply posts one decision per question
	}
	select {
	case to <- a:
	default: // the question is answered already
	}
}

// sendWelcome responds to a hello.
func (l *loop) sendWelcome(e dialogue.Welcome) {
	l.send(xiaozhi.Welcome{Session: l.id, Audio: xiaozhi.AudioParams{
		SampleRate: voice.SpeakerRate, FrameDuration: int(voice.FrameDuration.Milliseconds()),
	}, UDP: l.udp})
	if e.First {
		l.greeted.Store(true)
		l.publish(event.RobotOnline{Framing: int(l.framing), Standing: l.robot.ByHand})
	}
	l.unsaved.update(func(u *unsaved) { u.echo = &e.Hello.Features.AEC })
	l.turns.Go(func() { l.unsaved.save() })
	if err := l.cancelEcho(e.Hello.Features.AEC); err != nil {
		l.log.Warn("the robot leaves echo cancellation to the appliance, which could not start it; people cannot interrupt its speech", "err", err)
	}
}

// initializeMCP sends the robot's MCP server the appliance's name and the address to upload pictures to, and
// asks for the list of tools if list is set. The firmware forgets name and address when its channel closes.
func (l *loop) initializeMCP(list bool) {
	url, token := l.shared.vision.Issue(l.robot, l.id, time.Now())
	if err := l.toolbox.Introduce(l.Version, url, token); err != nil {
		l.log.Warn("the robot's MCP server could not be initialized", "err", err)
	}
	if !list {
		return
	}
	if err := l.toolbox.RequestList(); err != nil {
		l.log.Warn("the robot could not be asked for its tools", "err", err)
	}
}

// handleMCPResponse handles a response of the robot's MCP server.
func (l *loop) handleMCPResponse(payload []byte) {
	listed, err := l.toolbox.Deliver(payload)
	if err != nil {
		l.badMCP.warn(l.log, "the robot's MCP response cannot be used; further ones are not logged", err)
	}
	if listed != nil {
		if n := l.toolbox.Omitted(); n > 0 {
			l.manyTools.warn(l.log, "the robot lists more tools than the appliance accepts; the rest cannot be used",
				fmt.Errorf("%d left out; the limits are %d tools and %d bytes", n, tools.MaxTools, limit.Body))
		}
		l.unsaved.update(func(u *unsaved) { u.tools = listed })
		l.turns.Go(func() { l.unsaved.save() })
		l.publish(event.ToolsListed{Count: len(listed)})
	}
}

// beginTurn starts a turn in a goroutine.
func (l *loop) beginTurn(ctx context.Context, start dialogue.TurnStart) {
	ctx, cancel := context.WithCancel(ctx)
	l.number++
	t := newTurn(ctx, l.session, l.number, start, l.player.StartSpeech(), cancel)
	l.turn, l.spoken = t, nil
	if start.Announcement.Sound == nil {
		l.turnCount++
	}
	var u *voice.Utterance
	if start.Utterance {
		u = l.startUtterance()
	} else {
		t.clock.start(time.Now())
	}
	l.turns.Go(func() {
		defer cancel()
		t.run(ctx, u)
	})
}

// startUtterance begins an utterance with the buffered sound that belongs to it.
func (l *loop) startUtterance() *voice.Utterance {
	if l.utterance != nil {
		l.utterance.Finish() // otherwise its recognizer would wait forever
	}
	l.utterance, l.hearing, l.ending, l.drafted = voice.NewUtterance(), "", "", false
	l.mic.writeBuffered(l.utterance.Write)
	return l.utterance
}

// finishUtterance ends the utterance under way, and starts the turn's clock.
func (l *loop) finishUtterance() {
	if l.utterance == nil {
		return
	}
	if l.turn != nil {
		ended := time.Now()
		if l.state.Mode() != xiaozhi.Manual {
			ended = ended.Add(-l.mic.endPointer.Quiet()) // without the silence that ended the speech
		}
		l.turn.clock.start(ended)
		l.turn.clock.endStage(event.StageEndpoint)
	}
	l.utterance.Finish()
	l.utterance = nil
}

// stopTurn cancels the turn and its speech. It reports whether the robot is still speaking and must be
// stopped.
func (l *loop) stopTurn() (speaking bool) {
	if l.turn == nil {
		return false
	}
	l.turn.cancel()
	l.question.Store(nil)
	left := l.player.Cancel(time.Now())
	for _, text := range left.Spoken { // sentences that have begun to play, and that the loop has not published yet
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

// cutShort cuts the last sentence to the words that were played, so that the history holds only what
// people have heard. playedPart is between 0 and 1.
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

// endTurn handles a turn that has ended without being cancelled. It publishes and records the end,
// except for a turn without a result, as after a noise, and for a played sound.
func (l *loop) endTurn(e dialogue.EndTurn) {
	l.player.Clear()
	reboot := false
	if e.End == event.EndFailed {
		l.log.Warn("a turn failed", "err", e.Reason)
		l.publish(event.Fault{Part: "turn", Cause: e.Reason})
	}
	if l.turn.start.Announcement.Sound == nil && (e.End != "" || len(l.spoken) > 0) {
		e.End = cmp.Or(e.End, event.EndDone)
		l.publish(event.TurnEnded{End: e.End, Reason: e.Reason, Stages: l.turn.clock.durations()})
		reboot = l.turn.reboot.Load()
		l.recordTurn(e.End, e.Reason)
	}
	l.turn = nil
	if reboot {
		l.send(xiaozhi.Reboot{})
	}
}

// recordTurn records the words that were understood and the sentences that were really spoken, and clears
// the turn. A stranger's turn is not stored, but the agent adds it to the conversation like any other turn.
func (l *loop) recordTurn(end, reason string) {
	t := l.turn
	l.turn = nil
	if t == nil {
		return
	}
	if t.transcript == "" && len(l.spoken) == 0 {
		return // nothing was understood or spoken
	}
	if t.transcript == "" && t.sounded.Load() {
		t.transcript = agent.Unwritten
	}
	now := time.Now()
	said := strings.Join(l.spoken, " ")
	if t.transcript != "" {
		l.Mind.AddExchange(string(l.robot.ID), agent.Exchange{Heard: t.transcript, Said: said}, now)
	}
	if t.trusted.Load() {
		details := t.details.snapshot()
		details.Reason = plain.Clip(reason, limit.Line)
		l.Records.addTurn(TurnRecord{
			Robot: l.robot.ID, Session: l.id, At: now, Heard: t.transcript, Said: said, End: end, Stages: t.clock.durations(), Details: details,
		})
	}
}

// logRefused logs the error of a sensor event that was refused, if there is one.
func (l *loop) logRefused(err error) {
	if err != nil {
		l.log.Debug("a sensor event of the robot is refused", "err", err)
	}
}

// cancelEcho starts or stops removing the robot's own speech from the sound of its microphone.
func (l *loop) cancelEcho(on bool) error {
	l.mic.close()
	l.mic.echo = nil
	l.player.SetEcho(nil)
	if !on {
		return nil
	}
	if l.framing != xiaozhi.Framing2 {
		l.log.Warn("the robot leaves echo cancellation to the appliance, but its framing has no timestamps; " +
			"people cannot interrupt its speech until it has rebooted and received another framing")
	}
	echo, err := voice.NewEcho()
	if err != nil {
		return err
	}
	l.mic.echo = echo
	l.player.SetEcho(echo)
	return nil
}
