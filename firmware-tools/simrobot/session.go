package simrobot

import (
	"context"
	"hash/fnv"
	"time"

	"perch/device/xiaozhi"
)

// mainLoopLag is how long the firmware takes to get to a message: texts are
// carried out on its main loop, while sound goes straight to its queue.
const mainLoopLag = 5 * time.Millisecond

// session is one channel, from the tap that opens it until it is gone. The
// goroutine in Talk owns it.
type session struct {
	r       *Robot
	ctx     context.Context // of the channel: ends what its tools are doing
	ch      channel
	framing xiaozhi.Framing
	frame   []byte // of audio, to be sent

	id       string // session_id
	state    State
	mode     xiaozhi.Mode
	mic      *mic
	play     player
	draining bool // it will listen once its queue is empty
	cut      int  // packets lost at the last tts stop
	arrived  arrivals

	in        chan arrival
	inbox     []arrival // texts the main loop has not got to
	busy      bool      // with a tool
	tools     chan toolDone
	lastHeard time.Time
	rebootAt  time.Time
}

func newSession(r *Robot) (*session, error) {
	h := fnv.New64a()
	h.Write([]byte(r.id))
	m, err := newMic(h.Sum64())
	if err != nil {
		return nil, err
	}
	s := &session{r: r, framing: r.flash.WebSocket.framing(), mode: r.o.Mode, mic: m, state: Connecting, in: make(chan arrival, 64), tools: make(chan toolDone, 1)}
	if r.o.Framing != 0 {
		s.framing = r.o.Framing
	}
	s.play = player{stats: &r.stats, out: &r.speaker, ready: r.firmware.ready}
	return s, s.play.open(r.audio)
}

// session opens a channel and holds it. It returns why the channel ended.
func (r *Robot) session(ctx context.Context) error {
	s, err := newSession(r)
	if err != nil {
		return err
	}
	r.o.Observe(Entered{State: Connecting})
	s.ch, err = r.o.dial(ctx, r.flash.WebSocket.URL, r.upgradeHeader(s.framing))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	s.ctx = ctx
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		receive(s.ch, s.in, stop)
	}()
	err = s.greet(ctx)
	if err == nil {
		err = s.run(ctx)
	}
	cancel()
	close(stop)
	s.ch.Drop()
	<-stopped
	if s.busy {
		<-s.tools
	}
	s.play.finish()
	r.o.Observe(Entered{State: Idle})
	return err
}

// greet sends hello and waits for the server's.
func (s *session) greet(ctx context.Context) error {
	began := time.Now()
	hello := xiaozhi.Hello{
		Version: int(s.framing), Transport: "websocket",
		Features: xiaozhi.Features{MCP: true, GlyphPush: s.r.firmware.glyphs},
		Audio:    xiaozhi.AudioParams{SampleRate: 16000, FrameDuration: 60},
	}
	if err := s.send(began, hello); err != nil {
		return err
	}
	limit := time.NewTimer(helloLimit)
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return ErrHello
		case a := <-s.in:
			welcomed, err := s.arrive(a)
			if err != nil {
				return err
			}
			if welcomed {
				s.r.stats.HelloLatency = a.at.Sub(began)
				s.r.o.Observe(Welcomed{Session: s.id, Audio: s.play.params, Latency: a.at.Sub(began)})
				return s.opened(time.Now())
			}
		}
	}
}

// opened is the moment the channel is there: a robot that was tapped listens,
// one that only had events to send stays idle.
func (s *session) opened(now time.Time) error {
	s.enter(Idle)
	s.lastHeard = now
	events := s.r.o.Events
	if s.r.firmware.events {
		events = append([]xiaozhi.Event{{Name: "state_changed", Data: []byte(`{"state":"idle"}`)}}, events...)
	}
	for _, e := range events {
		if err := s.send(now, e); err != nil {
			return err
		}
		s.r.o.Observe(Sensed{Event: e})
	}
	if s.mode == xiaozhi.Manual || len(s.r.o.Events) > 0 && len(s.r.o.Say) == 0 {
		return nil // the button is pressed when there is something to say
	}
	return s.listen(now)
}

// run holds the talk until it ends.
func (s *session) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		err := s.advance(time.Now())
		if err != nil {
			return err
		}
		timer.Reset(time.Until(s.due()))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-s.in:
			_, err = s.arrive(a)
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

// advance does all that is due.
func (s *session) advance(now time.Time) error {
	s.play.advance(now)
	if s.draining && s.play.drained() {
		if err := s.openMic(now); err != nil {
			return err
		}
	}
	for !s.stuck() && len(s.inbox) > 0 && !now.Before(s.inbox[0].at.Add(mainLoopLag)) {
		text := s.inbox[0].data
		s.inbox = s.inbox[1:]
		if err := s.carryOut(now, text); err != nil {
			return err
		}
	}
	if err := s.mic.advance(now, func(p []byte) error { return s.sendAudio(now, p) }); err != nil {
		return err
	}
	if err := s.personActs(now); err != nil {
		return err
	}
	return s.maybeEnd(now)
}

// stuck reports whether the main loop has no time for messages.
func (s *session) stuck() bool { return s.busy || s.draining && s.r.firmware.blocks }

func (s *session) maybeEnd(now time.Time) error {
	switch p := &s.r.person; {
	case !s.rebootAt.IsZero() && !now.Before(s.rebootAt):
		return errRebooted
	case s.r.o.Stay || !p.done() || s.state == Speaking || !s.play.silent() || s.busy:
		return nil
	case len(p.sentences) > 0, !now.Before(s.lastHeard.Add(lastWords)):
		return errAllSaid
	}
	return nil
}

// due is when there is something to do next.
func (s *session) due() time.Time {
	due := time.Now().Add(time.Minute)
	for _, t := range []time.Time{s.play.due(), s.mic.due(), s.r.person.due(), s.rebootAt} {
		if !t.IsZero() && t.Before(due) {
			due = t
		}
	}
	if !s.stuck() && len(s.inbox) > 0 && s.inbox[0].at.Add(mainLoopLag).Before(due) {
		due = s.inbox[0].at.Add(mainLoopLag)
	}
	if end := s.lastHeard.Add(lastWords); !s.r.o.Stay && len(s.r.o.Say) == 0 && end.Before(due) {
		due = end
	}
	return due
}
