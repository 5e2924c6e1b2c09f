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

// mainLoopLag is how long a text waits for the main loop; sound goes straight to its
// queue.
const mainLoopLag = 5 * time.Millisecond

// session is one channel, from its opening to its end. Talk's goroutine owns it.
type session struct {
	r         *Robot
	how       opening
	staysOpen bool // does not hang up after the last answer
	link
	speech
	mainLoop
	notification notification // between talks
}

// link is the session's channel.
type link struct {
	ctx     context.Context // of the channel: cancels its tools
	ch      channel
	talk    *talkChannel // ch by MQTT; nil for a WebSocket
	framing xiaozhi.Framing
	frame   []byte // of audio, to be sent
	id      string // session_id
	in      chan arrival
	lastIn  time.Time // when the latest message arrived
	stale   bool      // lastIn is too long ago
}

// speech is the robot's part in the conversation.
type speech struct {
	state    State
	mode     xiaozhi.Mode
	usual    xiaozhi.Mode // mode after a tap or a wake word
	mic      *mic
	play     player
	stamps   stamps
	draining bool // listens once its queue is empty
	bargedIn bool // the person interrupted the current or the last speech
	late     bool // it stopped speaking before the server's tts stop
	cut      int  // packets lost at the last tts stop
	arrived  arrivals
}

// mainLoop is the firmware's main loop, which carries out texts and tools.
type mainLoop struct {
	inbox    []arrival // texts to be handled
	busy     bool      // a tool is running
	tools    chan toolDone
	lastText time.Time // when the latest text arrived
	tickAt   time.Time // next check of the channel, by builds that do so
	idleAt   time.Time // when it notices the end of the previous channel
	deafAt   time.Time // when it stops reading its socket
	rebootAt time.Time
}

func newSession(r *Robot, how opening) (*session, error) {
	m, err := newMic(r.seed())
	if err != nil {
		return nil, err
	}
	s := &session{
		r: r, how: how, staysOpen: r.o.Stay || r.o.Forever && r.person.done(),
		link:     link{framing: r.flash.WebSocket.framing(), in: make(chan arrival, 64)},
		speech:   speech{mode: r.o.Mode, usual: r.o.Mode, mic: m, state: Connecting},
		mainLoop: mainLoop{tools: make(chan toolDone, 1)},
	}
	switch {
	case r.byMQTT:
		s.framing = xiaozhi.Framing2
	case r.o.Framing != 0:
		s.framing = r.o.Framing
	}
	if r.o.Mode == xiaozhi.Manual {
		s.usual = r.o.AEC.mode()
	}
	out := &r.speaker
	out.echo, out.stamps = nil, nil
	if r.o.AEC == AECServer {
		out.stamps = &s.stamps
	}
	if s.usual == xiaozhi.Realtime && r.o.AEC != AECDevice {
		out.echo = newEcho(r.seed())
		m.echo = out.echo
	}
	r.person.overlap, r.person.cutIn = false, time.Time{}
	s.play = player{stats: &r.stats, out: out, ready: r.firmware.ready, size: r.firmware.queue}
	return s, s.play.open(r.audio)
}

// seed returns the robot's seed for its noise and its room.
func (r *Robot) seed() uint64 {
	h := fnv.New64a()
	h.Write([]byte(r.id))
	return h.Sum64()
}

// session opens a channel and runs it to its end. It returns why it ended.
func (r *Robot) session(ctx context.Context, how opening) error {
	s, err := newSession(r, how)
	if err != nil {
		return err
	}
	r.o.Observe(Entered{State: Connecting})
	s.ch, err = r.connect(ctx, how, s.framing)
	if err != nil {
		return &unopened{err}
	}
	if t, is := s.ch.(*talkChannel); is {
		s.talk, s.inbox, r.unhandled = t, r.unhandled, nil
		t.bye = func() []byte { return fmt.Appendf(nil, `{"session_id":"%s","type":"goodbye"}`, s.id) }
	}
	ctx, cancel := context.WithCancel(ctx)
	s.ctx = ctx
	var receives sync.WaitGroup
	receives.Go(func() { r.receive(ctx, s.ch, s.in) })
	err = s.greet(ctx)
	if err == nil {
		err = s.run(ctx)
	}
	cancel()
	s.ch.Drop()
	receives.Wait()
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

// saveUnhandled saves texts that arrived by MQTT and were not handled, since the connection
// outlasts the talk.
func (s *session) saveUnhandled(why error) {
	if s.talk == nil {
		return
	}
	s.r.lastSession = s.id
	for range len(s.in) { // nothing is sent to it any more
		if a := <-s.in; a.isText && a.err == nil {
			s.r.record(a.at, "server", true, a.data)
			s.inbox = append(s.inbox, a)
		}
	}
	s.r.unhandled = append(s.r.unhandled, s.inbox...)
	if s.talk.lost {
		s.r.connectionLost(time.Now(), cmp.Or(why, io.EOF))
	}
}

// greet sends hello and waits for the server's.
func (s *session) greet(ctx context.Context) error {
	start := time.Now()
	if err := s.sendText(start, s.hello()); err != nil {
		return err
	}
	limit := time.After(helloLimit)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit:
			return &unopened{ErrHello}
		case a := <-s.in:
			welcomed, err := s.receive(a)
			if err != nil {
				return err
			}
			if welcomed {
				s.r.stats.Channels++
				s.r.stats.HelloLatency = a.at.Sub(start)
				s.r.o.Observe(Welcomed{Session: s.id, Audio: s.play.params, Latency: a.at.Sub(start)})
				return s.opened(time.Now())
			}
		}
	}
}

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
			// Texts that were due before it arrived are handled first, even if this
			// goroutine is late: the firmware's main loop would not have been.
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

func (s *session) advance(now time.Time) error {
	if err := s.runTimers(now); err != nil {
		return err
	}
	s.play.advance(now)
	if s.draining && s.play.drained() {
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
	return s.maybeEnd(now)
}

// handleDueTexts handles the texts that the main loop has reached by now.
func (s *session) handleDueTexts(now time.Time) error {
	for !s.stuck() && len(s.inbox) > 0 && !now.Before(s.inbox[0].at.Add(mainLoopLag)) {
		text := s.inbox[0].data
		s.inbox = s.inbox[1:]
		if err := s.handleText(now, text); err != nil {
			return err
		}
	}
	return nil
}

// stuck reports whether the main loop is blocked.
func (s *session) stuck() bool { return s.busy || s.draining && s.r.firmware.blocks }

func (s *session) maybeEnd(now time.Time) error {
	switch p := &s.r.person; {
	case !s.rebootAt.IsZero() && !now.Before(s.rebootAt):
		return errRebooted
	case s.staysOpen || !p.done() || s.state == Speaking || !s.play.silent() || s.busy:
		return nil
	case len(p.sentences) > 0, !now.Before(s.lastText.Add(lastWords)):
		return errAllAnswered
	}
	return nil
}

func (s *session) nextDeadline() time.Time {
	var end time.Time
	if !s.staysOpen && len(s.r.o.Say) == 0 {
		end = s.lastText.Add(lastWords)
	}
	return s.earliest(s.mic.next, s.r.person.nextAction(), s.staleAt(), s.tickAt, s.idleAt, s.deafAt, end)
}

// earliest returns the earliest of times and of the timers that also run between talks. Zero
// times do not count.
func (s *session) earliest(times ...time.Time) time.Time {
	due := time.Now().Add(time.Hour)
	if !s.stuck() && len(s.inbox) > 0 {
		times = append(times, s.inbox[0].at.Add(mainLoopLag))
	}
	for _, t := range append(times, s.play.nextAdvance(), s.r.body.nextReminder(), s.rebootAt) {
		if !t.IsZero() && t.Before(due) {
			due = t
		}
	}
	return due
}
