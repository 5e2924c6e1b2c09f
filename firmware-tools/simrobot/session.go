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

// mainLoopLag is how long a message waits: the main loop carries texts out,
// while sound goes straight to its queue.
const mainLoopLag = 5 * time.Millisecond

// session is one channel, from its opening to its end. Talk's goroutine owns it.
type session struct {
	r     *Robot
	how   opening
	stays bool // does not hang up after the last answer
	link
	speech
	mainLoop
	notification notification // between talks
}

// link is the session's WebSocket.
type link struct {
	ctx     context.Context // of the channel: ends what its tools are doing
	ch      channel
	talk    *talkChannel // the same by MQTT; nil for a WebSocket
	framing xiaozhi.Framing
	frame   []byte // of audio, to be sent
	id      string // session_id
	in      chan arrival
	lastIn  time.Time // when the latest message arrived
	stale   bool      // the latest message arrived too long ago
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
	bargedIn bool // a person interrupted the speech that it plays, or has just played
	late     bool // it stopped by itself before the server's tts stop
	cut      int  // packets lost at the last tts stop
	arrived  arrivals
}

// mainLoop is the firmware's main loop, which carries out texts and tools.
type mainLoop struct {
	inbox    []arrival // texts that wait
	busy     bool      // with a tool
	tools    chan toolDone
	lastText time.Time // when the latest text arrived
	tickAt   time.Time // when a build that watches its channel does so
	idleAt   time.Time // when it notices the end of the channel before this one
	deafAt   time.Time // when it stops reading its socket
	rebootAt time.Time
}

func newSession(r *Robot, how opening) (*session, error) {
	m, err := newMic(r.seed())
	if err != nil {
		return nil, err
	}
	s := &session{
		r: r, how: how, stays: r.o.Stay || r.o.Forever && r.person.done(),
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

// session opens a channel and holds it. It returns why the channel ended.
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
		s.talk, s.inbox, r.left = t, r.left, nil
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
	s.leave(err)
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

// leave keeps messages that arrived by MQTT and were not handled, since the connection
// outlasts the talk.
func (s *session) leave(why error) {
	if s.talk == nil {
		return
	}
	s.r.talked = s.id
	for range len(s.in) { // its sender has ended
		if a := <-s.in; a.isText && a.err == nil {
			s.r.record(a.at, "server", true, a.data)
			s.inbox = append(s.inbox, a)
		}
	}
	s.r.left = append(s.r.left, s.inbox...)
	if s.talk.lost {
		s.r.lose(time.Now(), cmp.Or(why, io.EOF))
	}
}

func (s *session) greet(ctx context.Context) error {
	began := time.Now()
	if err := s.sendText(began, s.hello()); err != nil {
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
			welcomed, err := s.arrive(a)
			if err != nil {
				return err
			}
			if welcomed {
				s.r.stats.Channels++
				s.r.stats.HelloLatency = a.at.Sub(began)
				s.r.o.Observe(Welcomed{Session: s.id, Audio: s.play.params, Latency: a.at.Sub(began)})
				return s.opened(time.Now())
			}
		}
	}
}

func (s *session) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		err := s.advance(time.Now())
		if err != nil {
			return err
		}
		timer.Reset(time.Until(s.nextDeadline()))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-s.in:
			// What was due when this came is done before it, however late we
			// are: the firmware's main loop does not wait for us.
			if err = s.carryOutDue(a.at); err == nil {
				_, err = s.arrive(a)
			}
		case d := <-s.tools:
			err = s.toolReturned(time.Now(), d)
		case c := <-s.r.commands:
			err = s.obey(time.Now(), c)
		case <-timer.C:
		}
		if err != nil {
			return err
		}
	}
}

func (s *session) advance(now time.Time) error {
	if err := s.keepTime(now); err != nil {
		return err
	}
	s.play.advance(now)
	if s.draining && s.play.drained() {
		if err := s.openMic(now); err != nil {
			return err
		}
	}
	if err := s.carryOutDue(now); err != nil {
		return err
	}
	err := s.mic.advance(now, func(p []byte) error { return s.sendAudio(now, xiaozhi.Audio{Timestamp: s.stamps.next(), Opus: p}) })
	if err != nil {
		return err
	}
	if err := s.personActs(now); err != nil {
		return err
	}
	return s.maybeEnd(now)
}

// carryOutDue handles the messages that the main loop has reached by now.
func (s *session) carryOutDue(now time.Time) error {
	for !s.stuck() && len(s.inbox) > 0 && !now.Before(s.inbox[0].at.Add(mainLoopLag)) {
		text := s.inbox[0].data
		s.inbox = s.inbox[1:]
		if err := s.carryOut(now, text); err != nil {
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
	case s.stays || !p.done() || s.state == Speaking || !s.play.silent() || s.busy:
		return nil
	case len(p.sentences) > 0, !now.Before(s.lastText.Add(lastWords)):
		return errAllAnswered
	}
	return nil
}

func (s *session) nextDeadline() time.Time {
	var end time.Time
	if !s.stays && len(s.r.o.Say) == 0 {
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
