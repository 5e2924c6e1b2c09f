package simrobot

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"sync"
	"time"

	"perch/device/xiaozhi"
)

// mainLoopLag is how long a text message waits for the firmware's main loop. Packets of sound
// do not wait.
const mainLoopLag = 5 * time.Millisecond

// session is the state of the robot during one channel. With MQTT the robot also has a session
// while it is idle and no channel is open. The goroutine that runs the robot owns the session.
type session struct {
	r         *Robot
	opening   opening // the command that opened the channel
	staysOpen bool    // the robot does not hang up after the last answer
	link
	speech
	mainLoop
	notification notification // only while no channel is open
}

// link is the connection of a session.
type link struct {
	ctx     context.Context // ends with the channel and cancels its tools
	ch      channel
	mqtt    *mqttChannel // the same channel as ch if the transport is MQTT; nil for a WebSocket
	framing xiaozhi.Framing
	frame   []byte       // buffer for outgoing frames of sound
	id      string       // session ID from the server's hello
	in      chan arrival // received messages
	lastIn  time.Time    // arrival of the latest message
	stale   bool         // no message has arrived for staleAfter
}

// speech is the robot's part in the conversation.
type speech struct {
	state        State
	mode         xiaozhi.Mode // current listening mode
	defaultMode  xiaozhi.Mode // listening mode after a tap or a wake word
	mic          *mic
	play         player
	stamps       stamps
	draining     bool     // the robot listens again once its queue is empty
	bargedIn     bool     // the person interrupted what the robot is saying or has said last
	stoppedEarly bool     // the robot stopped speaking before the server's tts stop
	cut          int      // queued packets that were dropped at the latest tts stop
	gaps         gapMeter // measures the gaps between the packets of the current speech
}

// mainLoop is the state of the firmware's main loop, which handles texts and runs tools. A
// zero time means that nothing is scheduled.
type mainLoop struct {
	inbox         []arrival       // texts to be handled
	busy          bool            // a slow tool is running
	tools         chan toolResult // receives the result of a slow tool
	lastText      time.Time       // arrival of the latest text
	checkAt       time.Time       // next check for a stale channel (dotty's firmware only)
	idleAt        time.Time       // time at which the robot notices that the replaced channel has closed
	stopReadingAt time.Time       // time at which the robot stops reading its socket
	rebootAt      time.Time
}

// newSession returns a session whose channel is not open yet.
func newSession(r *Robot, op opening) (*session, error) {
	m, err := newMic(r.seed())
	if err != nil {
		return nil, err
	}
	s := &session{
		r: r, opening: op, staysOpen: r.o.Stay || r.o.Forever && r.person.isDone(),
		link:     link{framing: r.flash.WebSocket.framing(), in: make(chan arrival, 64)},
		speech:   speech{mode: r.o.Mode, defaultMode: r.o.Mode, mic: m, state: Connecting},
		mainLoop: mainLoop{tools: make(chan toolResult, 1)},
	}
	switch {
	case r.byMQTT:
		s.framing = xiaozhi.Framing2
	case r.o.Framing != 0:
		s.framing = r.o.Framing
	}
	if r.o.Mode == xiaozhi.Manual {
		s.defaultMode = r.o.AEC.mode()
	}
	speaker := &r.speaker
	speaker.echo, speaker.stamps = nil, nil
	if r.o.AEC == AECServer {
		speaker.stamps = &s.stamps
	}
	if s.defaultMode == xiaozhi.Realtime && r.o.AEC != AECDevice {
		speaker.echo = newEcho(r.seed())
		m.echo = speaker.echo
	}
	r.person.overlap, r.person.interruptedAt = false, time.Time{}
	s.play = player{stats: &r.stats, out: speaker, ready: r.firmware.ready, size: r.firmware.queue}
	return s, s.play.open(r.audio)
}

// seed returns the seed for the random noise and the echo of the robot's room. It depends
// only on the robot ID.
func (r *Robot) seed() uint64 {
	h := fnv.New64a()
	h.Write([]byte(r.id))
	return h.Sum64()
}

// runSession opens a channel and runs it to its end. It returns the reason for the end, never
// nil.
func (r *Robot) runSession(ctx context.Context, op opening) error {
	s, err := newSession(r, op)
	if err != nil {
		return err
	}
	r.o.Observe(Entered{State: Connecting})
	s.ch, err = r.connect(ctx, op, s.framing)
	if err != nil {
		return &openError{err}
	}
	if c, ok := s.ch.(*mqttChannel); ok {
		s.mqtt, s.inbox, r.unhandled = c, r.unhandled, nil
		c.bye = func() []byte { return fmt.Appendf(nil, `{"session_id":"%s","type":"goodbye"}`, s.id) }
	}
	ctx, cancel := context.WithCancel(ctx)
	s.ctx = ctx
	var receiver sync.WaitGroup
	receiver.Go(func() { r.receive(ctx, s.ch, s.in) })
	err = s.greet(ctx)
	if err == nil {
		err = s.run(ctx)
	}
	cancel()
	s.ch.Drop()
	receiver.Wait()
	s.saveUnhandled(err)
	if s.busy {
		<-s.tools
	}
	s.play.finish()
	if s.state != Idle {
		r.wakeOff = false
	}
	r.o.Observe(Entered{State: Idle})
	return err
}

// saveUnhandled saves texts that arrived by MQTT but were not handled before the channel closed.
// They are handled later, because the connection to the MQTT server stays open. cause is the
// reason for the end of the channel.
func (s *session) saveUnhandled(cause error) {
	if s.mqtt == nil {
		return
	}
	s.r.lastSession = s.id
	for range len(s.in) { // the receiver has ended
		if a := <-s.in; a.isText && a.err == nil {
			s.r.record(a.at, "server", true, a.data)
			s.inbox = append(s.inbox, a)
		}
	}
	s.r.unhandled = append(s.r.unhandled, s.inbox...)
	if s.mqtt.lost {
		s.r.connectionLost(time.Now(), cmp.Or(cause, io.EOF))
	}
}

// greet sends hello, waits for the server's hello, and starts the conversation. After helloTimeout it
// returns an openError with ErrHello.
func (s *session) greet(ctx context.Context) error {
	start := time.Now()
	if err := s.sendText(start, s.hello()); err != nil {
		return err
	}
	limit := time.After(helloTimeout)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit:
			return &openError{ErrHello}
		case a := <-s.in:
			welcomed, err := s.receive(a)
			if err != nil {
				return err
			}
			if welcomed {
				s.r.stats.Channels++
				s.r.stats.HelloLatency = a.at.Sub(start)
				s.r.o.Observe(Welcomed{Session: s.id, Audio: s.play.params, Latency: a.at.Sub(start)})
				return s.channelOpened(time.Now())
			}
		}
	}
}

// run handles messages, commands and timers until the channel ends. It returns the reason for
// the end.
func (s *session) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := s.advance(time.Now()); err != nil {
			return err
		}
		timer.Reset(time.Until(s.nextDeadline()))
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-s.in:
			// First handle the texts that were due before this message arrived. If this
			// goroutine runs late, they are still in the inbox.
			if err = s.handleDueTexts(a.at); err == nil {
				_, err = s.receive(a)
			}
		case d := <-s.tools:
			err = s.toolReturned(time.Now(), d)
		case c := <-s.r.commands:
			err = s.handleCommand(time.Now(), c)
		case <-timer.C:
		}
		if err != nil {
			return err
		}
	}
}

// advance does everything that is due by now.
func (s *session) advance(now time.Time) error {
	if err := s.runTimers(now); err != nil {
		return err
	}
	s.play.advance(now)
	if s.draining && s.play.isDrained() {
		if err := s.openMic(now); err != nil {
			return err
		}
	}
	if err := s.handleDueTexts(now); err != nil {
		return err
	}
	err := s.mic.advance(now, func(p []byte) error { return s.sendAudio(now, xiaozhi.Audio{Timestamp: s.stamps.next(), Opus: p}) })
	if err != nil {
		return err
	}
	if err := s.advancePerson(now); err != nil {
		return err
	}
	return s.checkEnd(now)
}

// handleDueTexts handles the texts that the firmware's main loop would have handled by now.
func (s *session) handleDueTexts(now time.Time) error {
	for !s.isStuck() && len(s.inbox) > 0 && !now.Before(s.inbox[0].at.Add(mainLoopLag)) {
		text := s.inbox[0].data
		s.inbox = s.inbox[1:]
		if err := s.handleText(now, text); err != nil {
			return err
		}
	}
	return nil
}

// isStuck reports whether the main loop is blocked.
func (s *session) isStuck() bool { return s.busy || s.draining && s.r.firmware.blocks }

// checkEnd returns errRebooted if the robot reboots now, and errAllAnswered if it hangs up now.
func (s *session) checkEnd(now time.Time) error {
	switch p := &s.r.person; {
	case !s.rebootAt.IsZero() && !now.Before(s.rebootAt):
		return errRebooted
	case s.staysOpen || !p.isDone() || s.state == Speaking || !s.play.isSilent() || s.busy:
		return nil
	case len(p.sentences) > 0, !now.Before(s.lastText.Add(quietTimeout)):
		return errAllAnswered
	}
	return nil
}

// nextDeadline returns the time at which advance must be called at the latest.
func (s *session) nextDeadline() time.Time {
	var end time.Time
	if !s.staysOpen && len(s.r.o.Say) == 0 {
		end = s.lastText.Add(quietTimeout)
	}
	return s.earliest(s.mic.next, s.r.person.nextAction(), s.staleAt(), s.checkAt, s.idleAt, s.stopReadingAt, end)
}

// earliest returns the earliest of the given times and of the timers that also run while no
// channel is open. It ignores zero times, and returns a time within the next hour.
func (s *session) earliest(times ...time.Time) time.Time {
	due := time.Now().Add(time.Hour)
	if !s.isStuck() && len(s.inbox) > 0 {
		times = append(times, s.inbox[0].at.Add(mainLoopLag))
	}
	for _, t := range append(times, s.play.nextAdvance(), s.r.body.nextReminder(), s.rebootAt) {
		if !t.IsZero() && t.Before(due) {
			due = t
		}
	}
	return due
}
