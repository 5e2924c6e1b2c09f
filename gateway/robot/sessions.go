package robot

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/robot/dialogue"
	"perch/socket"
)

// sessions are the open channels of all robots.
type sessions struct {
	*shared
	mu      sync.Mutex
	open    map[device.ID]*session
	muted   map[device.ID]bool
	entered chan struct{} // closed and replaced when a session begins
	lost    atomic.Int64  // robots disconnected because they did not read
}

func newSessions(s *shared) *sessions {
	return &sessions{shared: s, open: map[device.ID]*session{}, muted: map[device.ID]bool{}, entered: make(chan struct{})}
}

// serve holds a session on a channel until it ends. A second session of the same robot replaces
// the first one without RobotOffline.
func (s *sessions) serve(c channel, r device.Robot, client device.Client) error {
	l, err := newLoop(s.shared, c, r)
	if err != nil {
		c.Close(socket.ServerError, "cannot start a session")
		return err
	}
	if !s.enter() {
		c.Close(socket.GoingAway, ErrStopping.Error())
		return ErrStopping
	}
	defer s.wg.Done()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	l.cancel = cancel
	s.replace(l.session)
	s.phrases.Prepare()
	s.phrases.in(s.current.Load().Character(r.ID).Speech)
	l.unsaved.record = &SessionRecord{ID: c.id, Robot: r.ID, Client: client, Firmware: r.Firmware, Framing: int(c.framing), Opened: time.Now()}
	l.unsaved.save()
	l.log.Info("a robot opened its channel", "framing", c.framing, "firmware", r.Firmware)
	why := l.run(ctx)
	s.storeUnspoken(l)
	s.remove(l.session, why)
	if l.replaced.Load() {
		why = whyReplaced
	} else {
		l.publish(event.RobotOffline{Why: why})
	}
	l.unsaved.set(func(u *unsaved) { u.record = nil })
	s.options.Records.closed(c.id, why, string(l.state.Mode()), l.turnCount, time.Now())
	l.log.Info("a robot's channel is closed", "why", why, "turns", l.turnCount)
	close(l.done)
	l.turns.Wait() // one may still be in C; the robot's next session need not wait for it
	return nil
}

// replace replaces the robot's earlier session, and waits for its end.
func (s *sessions) replace(me *session) {
	id := me.robot.ID
	s.mu.Lock()
	before := s.open[id]
	s.open[id] = me
	me.muted.Store(s.muted[id])
	close(s.entered)
	s.entered = make(chan struct{})
	s.mu.Unlock()
	if before != nil {
		before.replaced.Store(true)
		before.cancel()
		<-before.done
	}
}

func (s *sessions) remove(me *session, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why == whyTooSlow || why == whySendingFailed {
		s.lost.Add(1)
	}
	if s.open[me.robot.ID] == me {
		delete(s.open, me.robot.ID)
	}
}

// storeUnspoken stores what a session that has ended was still to speak. What had waited before is
// still stored, and notifications are stored elsewhere.
func (s *sessions) storeUnspoken(ended *loop) {
	var unspoken []Command
	for _, text := range ended.state.Unspoken() {
		unspoken = append(unspoken, Command{Thing: dialogue.CommandSay, Text: text})
	}
	if len(unspoken) == 0 {
		return
	}
	if err := s.store(ended.robot.ID, unspoken...); err != nil && !errors.Is(err, errNotAdopted) {
		ended.log.Error("what was to be spoken is lost", "err", err)
	}
}

// of returns a robot's session, or ErrOffline.
func (s *sessions) of(id device.ID) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, open := s.open[id]
	if !open {
		return nil, dialogue.ErrOffline
	}
	return r, nil
}

// next returns a robot's session, as soon as it has one.
func (s *sessions) next(ctx context.Context, id device.ID) (*session, error) {
	for {
		s.mu.Lock()
		r, open := s.open[id]
		entered := s.entered
		s.mu.Unlock()
		if open {
			return r, nil
		}
		select {
		case <-entered:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.ctx.Done():
			return nil, ErrStopping
		}
	}
}

// post gives a robot's session an input. It returns ErrOffline if the robot has none.
func (s *sessions) post(ctx context.Context, id device.ID, in dialogue.Input) error {
	r, err := s.of(id)
	if err != nil {
		return err
	}
	return r.post(ctx, 0, in)
}

// greeted returns the robots whose hello was answered.
func (s *sessions) greeted() (ids []device.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.open {
		if r.greeted.Load() {
			ids = append(ids, id)
		}
	}
	return ids
}

// Lost returns how many robots were disconnected because they did not read.
func (s *sessions) Lost() int { return int(s.lost.Load()) }

// Status is a session as others see it.
type Status struct {
	Robot   device.ID `json:"robot"`
	Session string    `json:"session"`
	Tools   int       `json:"tools"`
	Muted   bool      `json:"muted"`
}

// List returns the open sessions, by robot.
func (s *sessions) List() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Status, 0, len(s.open))
	for id, r := range s.open {
		list = append(list, Status{Robot: id, Session: r.id, Tools: len(r.toolbox.Tools()), Muted: r.muted.Load()})
	}
	slices.SortFunc(list, func(a, b Status) int { return cmp.Compare(a.Robot, b.Robot) })
	return list
}

// Questions returns the questions that wait for an answer, the oldest first.
func (s *sessions) Questions() []agent.Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := []agent.Question{}
	for _, r := range s.open {
		if q := r.question.Load(); q != nil {
			open = append(open, *q)
		}
	}
	slices.SortFunc(open, func(a, b agent.Question) int { return a.Asked.Compare(b.Asked) })
	return open
}

// Reply answers a question by its id, instead of the people near the robot. It returns
// agent.ErrNoQuestion if the question does not wait.
func (s *sessions) Reply(id string, allow bool) error {
	r, q := s.asking(id)
	// The first to remove the question answers it; what comes after is too late.
	if q == nil || !r.question.CompareAndSwap(q, nil) {
		return agent.ErrNoQuestion
	}
	err := s.post(s.ctx, q.Robot, dialogue.DecideQuestion{ID: id, Allow: allow})
	if errors.Is(err, dialogue.ErrOffline) {
		return agent.ErrNoQuestion // the channel has just closed, which was a no
	}
	return err
}

// asking returns the session that waits for the answer to a question.
func (s *sessions) asking(id string) (*session, *agent.Question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.open {
		if q := r.question.Load(); q != nil && q.ID == id {
			return r, q
		}
	}
	return nil, nil
}

// Mute drops a robot's sound on arrival, also in later sessions, or ends that.
func (s *sessions) Mute(id device.ID, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.muted[id] = true
	} else {
		delete(s.muted, id)
	}
	if r, open := s.open[id]; open {
		r.muted.Store(on)
	}
}
