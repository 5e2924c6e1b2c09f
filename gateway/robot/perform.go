package robot

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"perch/agent"
	"perch/device/xiaozhi"
	"perch/event"
	"perch/voice"
)

// perform carries out one effect. It does not block.
func (s *session) perform(ctx context.Context, e effect) {
	switch e := e.(type) {
	case send:
		s.send(e.message)
	case publish:
		s.publish(e.event)
	case detected:
		s.sense(s.Senses.Detected(s.robot.ID, s.id, e.text))
	case sensed:
		s.sense(s.Senses.FromRobot(s.robot.ID, s.id, e.event.Name, e.event.Data))
	case welcome:
		s.welcome(e.hello, e.first)
	case introduce:
		s.introduce(e.list)
	case collect:
		s.turns.Go(func() { s.collect(ctx) })
	case deliver:
		s.deliver(e.payload)
	case listenNew:
		s.ear.reset()
	case keepHeard:
		s.turn.heard = e.text
		if s.ear.pointer.Speaking() { // somebody has gone on while we recognized
			s.next = append(s.next, speechBegan{})
		}
	case beginTurn:
		s.beginTurn(ctx, e.turnStart)
	case giveUtterance:
		s.startUtterance()
		select {
		case s.turn.utterances <- s.utterance:
		default: // the one before has not been looked at; it is the answer
		}
	case cutQuestion:
		s.turn.playback.hurry()
	case startAgain:
		s.turn.playback.startAgain()
	case finishUtterance:
		s.finishUtterance()
	case showQuestion:
		s.question.Store(e.question)
	case answerAsk:
		if o := e.Outcome; o == agent.AnswerAllowed || o == agent.AnswerDenied {
			select {
			case s.turn.decided <- e.Answer:
			default: // there is room: Reply has taken the question for itself
			}
			break
		}
		select {
		case s.turn.answers <- e.Answer:
		default: // answered already
		}
	case cancelTurn:
		speaking := s.stopTurn()
		s.keepTurn(event.EndCancelled)
		if speaking || e.abort {
			s.send(xiaozhi.TTSStop{})
		}
	case endTurn:
		s.endTurn(e)
	case answerPlay:
		e.answer <- e.err // there is room
	case endInquiry:
		e.about.ended <- e.ending // there is room
	case forgetCommand:
		s.turns.Go(func() { s.Waiting.drop(s.robot.ID, e.id) })
	case closeChannel:
		s.closedWhy = e.why
	}
}

// welcome answers a hello.
func (s *session) welcome(h xiaozhi.Hello, first bool) {
	s.send(xiaozhi.Welcome{Session: s.id, Audio: xiaozhi.AudioParams{
		SampleRate: voice.SpeakerRate, FrameDuration: int(voice.FrameDuration.Milliseconds()),
	}})
	if first {
		s.greeted.Store(true)
		s.publish(event.RobotOnline{Framing: int(s.framing)})
	}
	s.learn(func(u *unkept) { u.echo = &h.Features.AEC })
	s.turns.Go(func() { s.keep() })
	if err := s.cancelEcho(h.Features.AEC); err != nil {
		s.log.Warn("the robot leaves echo cancellation to us, and it cannot be had; speech will not interrupt it", "err", err)
	}
}

// introduce tells the robot's tools who we are and where to send pictures, and
// asks for their list. The firmware keeps neither from one channel to the next.
func (s *session) introduce(list bool) {
	url, token := s.cameras.admit(s.robot, s.id, time.Now())
	if err := s.toolbox.introduce(s.Version, url, token); err != nil {
		s.log.Warn("the robot's tools were not told who we are", "err", err)
	}
	if !list {
		return
	}
	if err := s.toolbox.list(); err != nil {
		s.log.Warn("the robot was not asked for its tools", "err", err)
	}
}

// collect takes over what was to be done while the channel was closed. It reads
// the store, which the loop does not wait for.
func (s *session) collect(ctx context.Context) {
	if !s.keep() {
		return // what waits is for its owner's robot, which this may not be
	}
	now := time.Now()
	for _, c := range s.Waiting.list(s.robot.ID) {
		if !now.Before(c.Expires) {
			s.Waiting.drop(s.robot.ID, c.ID)
			s.publish(event.Command{Thing: c.Thing, State: event.CommandRejected, Reason: waitedTooLong})
			continue
		}
		select {
		case s.inputs <- posted{input: c.input()}:
		case <-ctx.Done():
			return
		}
		if c.Thing == thingAlert {
			s.Waiting.drop(s.robot.ID, c.ID)
			s.publish(event.Command{Thing: c.Thing, State: event.CommandDone})
		}
	}
}

func (s *session) deliver(payload []byte) {
	listed, err := s.toolbox.deliver(payload)
	if err != nil {
		s.badMCP.say(s.log, "the robot's MCP answer cannot be used; others like it are not told", err)
		return
	}
	if listed != nil {
		if n := s.toolbox.omitted(); n > 0 {
			s.manyTools.say(s.log, "the robot lists more tools than are taken; the others cannot be used", fmt.Errorf("%d left out, of at most %d tools and %d bytes", n, mostTools, mostToolBytes))
		}
		s.learn(func(u *unkept) { u.tools = listed })
		s.turns.Go(func() { s.keep() })
		s.publish(event.ToolsListed{Count: len(listed)})
	}
}

func (s *session) beginTurn(ctx context.Context, start turnStart) {
	ctx, cancel := context.WithCancel(ctx)
	t := newTurn(s, start, cancel)
	s.turn, s.said = t, nil
	if start.telling.sound == nil {
		s.turnCount++
	}
	s.writer.play(t.playback)
	var u *voice.Utterance
	if start.utterance {
		u = s.startUtterance()
	} else {
		t.clock.begin(time.Now())
	}
	s.turns.Go(func() {
		defer cancel()
		t.run(ctx, u)
	})
}

// startUtterance begins to collect sound, with the moment before speech was
// found.
func (s *session) startUtterance() *voice.Utterance {
	if s.utterance != nil {
		s.utterance.Finish() // whoever waits for its end must not wait for ever
	}
	s.utterance = voice.NewUtterance()
	s.ear.before(s.utterance.Write)
	return s.utterance
}

func (s *session) finishUtterance() {
	if s.utterance == nil {
		return
	}
	if s.turn != nil {
		ended := time.Now()
		if s.state.mode != xiaozhi.Manual {
			ended = ended.Add(-s.ear.silence()) // which the end-pointer waited out
		}
		s.turn.clock.begin(ended)
		s.turn.clock.mark(event.StageEndpoint)
	}
	s.utterance.Finish()
	s.utterance = nil
}

// stopTurn cancels the turn and drops its playback. It reports whether the
// robot was left speaking.
func (s *session) stopTurn() (speaking bool) {
	if s.turn == nil {
		return false
	}
	s.turn.cancel()
	s.question.Store(nil)
	left := s.turn.playback.cancel(time.Now())
	for _, text := range left.report.said { // gone, and not looked at yet
		s.said = append(s.said, text)
		s.publish(event.Said{Text: text})
	}
	s.said = cutShort(s.said, left.heard)
	s.writer.play(nil)
	if s.utterance != nil {
		s.utterance.Finish()
		s.utterance = nil
	}
	return left.speaking
}

// cutShort leaves of the last sentence what was played of it: what was really
// spoken enters the history, not what was planned.
func cutShort(said []string, heard float64) []string {
	if len(said) == 0 || heard >= 1 {
		return said
	}
	words := strings.Fields(said[len(said)-1])
	played := math.Round(heard * float64(len(words)))
	if heard > 0 {
		played = max(1, played)
	}
	words = words[:int(played)]
	said = said[:len(said)-1]
	if len(words) > 0 {
		said = append(said, strings.Join(words, " ")+" …")
	}
	return said
}

// endTurn tells of a turn that has ended by itself. Of one that nothing came
// of, such as a noise, there is nothing to tell, and a sound is none.
func (s *session) endTurn(e endTurn) {
	s.writer.play(nil)
	reboot := false
	if e.end == event.EndFailed {
		s.log.Warn("a turn failed", "err", e.reason)
		s.publish(event.Fault{Part: "turn", Cause: e.reason})
	}
	if s.turn.start.telling.sound == nil && (e.end != "" || len(s.said) > 0) {
		if e.end == "" {
			e.end = event.EndDone
		}
		s.publish(event.TurnEnded{End: e.end, Reason: e.reason, Stages: s.turn.clock.all()})
		reboot = s.turn.reboot.Load()
		s.keepTurn(e.end)
	}
	s.turn = nil
	if reboot {
		s.send(xiaozhi.Reboot{})
	}
}

// keepTurn writes down what was heard and what was really said, however the
// turn ended. Of strangers' turns only the mind knows.
func (s *session) keepTurn(end string) {
	t := s.turn
	s.turn = nil
	if t == nil {
		return
	}
	if t.heard == "" && len(s.said) == 0 {
		return // nothing came of it
	}
	now := time.Now()
	words := strings.Join(s.said, " ")
	if t.heard != "" {
		s.Mind.Remembered(string(s.robot.ID), agent.Exchange{Heard: t.heard, Said: words}, now)
	}
	if t.trusted.Load() {
		s.Records.turn(TurnRecord{
			Robot: s.robot.ID, Session: s.id, At: now, Heard: t.heard, Said: words, End: end, Stages: t.clock.all(),
		})
	}
}

// sense notes what a robot told that is not taken. That it is too much is told
// by who refuses it.
func (s *session) sense(err error) {
	if err != nil {
		s.log.Debug("what the robot sensed is not taken", "err", err)
	}
}

// clip bounds a text of others' in bytes.
func clip(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }
