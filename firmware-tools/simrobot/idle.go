package simrobot

import (
	"context"
	"errors"
	"time"
)

// idleByMQTT is the main loop between two talks, while the control connection is open: it
// handles tools, alerts, reboots and notifications. It returns what opens the next channel.
func (r *Robot) idleByMQTT(ctx context.Context) (opening, error) {
	for {
		wait := r.unconnected
		if !time.Now().Before(r.reconnectAt) {
			c, err := r.online(ctx)
			switch {
			case err == nil:
				wait = func(ctx context.Context) (*opening, error) { return r.rest(ctx, c) }
			case ctx.Err() == nil:
				r.lose(time.Now(), err)
			}
		}
		how, err := wait(ctx)
		switch {
		case errors.Is(err, errRebooted):
			r.offline()
			if err := r.Boot(ctx); err != nil {
				return opening{}, err
			}
			if !r.byMQTT {
				return r.idle(ctx)
			}
		case err != nil:
			return opening{}, err
		case how != nil:
			return *how, nil
		}
	}
}

// unconnected waits until it is time to connect again, or for what opens a channel.
func (r *Robot) unconnected(ctx context.Context) (*opening, error) {
	again := time.NewTimer(time.Until(r.reconnectAt))
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-again.C:
			return nil, nil
		case c := <-r.commands:
			if r.opens(c) {
				return &opening{command: c}, nil
			}
		}
	}
}

// rest idles until something opens a channel. It returns nil if the connection is lost.
func (r *Robot) rest(ctx context.Context, c *control) (*opening, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := newSession(r, opening{})
	if err != nil {
		return nil, err
	}
	s.ctx, s.ch, s.state, s.id, s.inbox, r.left = ctx, newTalkChannel(c, r), Idle, r.talked, r.left, nil
	defer func() {
		s.stopNotification()
		if s.busy {
			cancel()
			<-s.tools
		}
		if r.control != nil {
			r.left = s.inbox
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Now()
		r.ring(now)
		s.play.advance(now)
		if err := s.carryOutDue(now); err != nil {
			return nil, err
		}
		s.notified(now)
		if !s.rebootAt.IsZero() && !now.Before(s.rebootAt) {
			return nil, errRebooted
		}
		timer.Reset(time.Until(s.earliest(s.notification.soundEnd())))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case a := <-c.texts:
			if a.err != nil {
				r.lose(a.at, a.err)
				return nil, nil
			}
			if _, err := s.arrive(a); err != nil {
				return nil, err
			}
		case d := <-s.tools:
			err = s.toolReturned(time.Now(), d)
		case p := <-s.input():
			s.notice(time.Now(), p)
		case c := <-r.commands:
			if r.opens(c) {
				return &opening{command: c}, nil
			}
		case <-timer.C:
		}
		if err != nil {
			return nil, err
		}
	}
}
