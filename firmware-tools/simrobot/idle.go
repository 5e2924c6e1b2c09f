package simrobot

import (
	"context"
	"errors"
	"time"
)

// idle runs the robot while no channel is open. It returns the command that opens the next
// channel, or an error, for example when ctx ends. With MQTT the robot stays connected to the server.
func (r *Robot) idle(ctx context.Context) (opening, error) {
	for ctx.Err() == nil {
		var op *opening
		var err error
		if !r.byMQTT || time.Now().Before(r.reconnectAt) {
			op, err = r.idleOffline(ctx)
		} else if c, connectErr := r.connectMQTT(ctx); connectErr == nil {
			op, err = r.idleOnline(ctx, c)
		} else if ctx.Err() == nil {
			r.connectionLost(time.Now(), connectErr)
		}
		switch {
		case errors.Is(err, errRebooted):
			r.disconnectMQTT()
			if err := r.Boot(ctx); err != nil {
				return opening{}, err
			}
		case err != nil:
			return opening{}, err
		case op != nil:
			return *op, nil
		}
	}
	return opening{}, ctx.Err()
}

// idleOffline waits for a command that opens a channel. If the transport is MQTT, it returns nil, nil
// at reconnectAt, when the robot must connect again.
func (r *Robot) idleOffline(ctx context.Context) (*opening, error) {
	for {
		now := time.Now()
		r.ringReminders(now)
		if r.byMQTT && !now.Before(r.reconnectAt) {
			return nil, nil
		}
		wait := time.Hour
		if r.byMQTT {
			wait = r.reconnectAt.Sub(now)
		}
		if due := r.body.nextReminder(); !due.IsZero() {
			wait = min(wait, due.Sub(now))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		case c := <-r.commands:
			if r.opensChannel(c) {
				return &opening{command: c}, nil
			}
		}
	}
}

// idleOnline runs the main loop with MQTT while no channel is open: it handles tools, alerts,
// reboots and notifications until a command opens a channel. It returns nil, nil if the
// connection to the MQTT server is lost, and errRebooted if the robot reboots.
func (r *Robot) idleOnline(ctx context.Context, c *control) (*opening, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := newSession(r, opening{})
	if err != nil {
		return nil, err
	}
	s.ctx, s.ch, s.state, s.id, s.inbox, r.unhandled = ctx, newMQTTChannel(c, r), Idle, r.lastSession, r.unhandled, nil
	defer func() {
		s.stopNotification()
		if s.busy {
			cancel()
			<-s.tools
		}
		if r.control != nil {
			r.unhandled = s.inbox
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Now()
		r.ringReminders(now)
		s.play.advance(now)
		if err := s.handleDueTexts(now); err != nil {
			return nil, err
		}
		s.updateNotification(now)
		if !s.rebootAt.IsZero() && !now.Before(s.rebootAt) {
			return nil, errRebooted
		}
		timer.Reset(time.Until(s.earliest(s.notification.nextStart())))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case a := <-c.texts:
			if a.err != nil {
				r.connectionLost(a.at, a.err)
				return nil, nil
			}
			_, err = s.receive(a)
		case d := <-s.tools:
			err = s.toolReturned(time.Now(), d)
		case p := <-s.notificationInput():
			s.queueNotificationPacket(time.Now(), p)
		case c := <-r.commands:
			if r.opensChannel(c) {
				return &opening{command: c}, nil
			}
		case <-timer.C:
		}
		if err != nil {
			return nil, err
		}
	}
}
