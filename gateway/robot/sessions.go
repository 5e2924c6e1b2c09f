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

// sessions holds the sessions of all robots with an open channel.
type sessions struct {
	*shared
	mu    sync.Mutex
	open  map[device.ID]*session
	muted map[device.ID]bool // robots whose sound is dropped, see Mute
	added chan struct{}      // closed and replaced when a session begins
	lost  atomic.Int64       // number of channels closed because of whyTooSlow or whySendingFailed
}

func newSessions(s *shared) *sessions {
	return &sessions{shared: s, open: map[device.ID]*session{}, muted: map[device.ID]bool{}, added: make(chan struct{})}
}

// serve runs a session on a channel until the session ends. It replaces an open session of the same
// robot; for the replaced session, no RobotOffline is published. An error means that no session was
// started, and that the channel is closed.
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
	s.add(l.session)
	s.phrases.Prepare()
	s.phrases.forVoice(s.current.Load().Character(r.ID).Speech)
	l.unsaved.record = &SessionRecord{ID: c.id, Robot: r.ID, Client: client, Firmware: r.Firmware, Framing: int(c.framing), Opened: time.Now()}
	l.unsaved.save()
	l.log.Info("a robot opened its channel", "framing", c.framing, "firmware", r.Firmware)
	why := l.run(ctx)
	s.storeUnspoken(l)
	s.remove(l.session, why)
	if l.replaced.Load() {
		why = whyReplaced
	} else {
		s.options.Robots.RecordSeen(l.robot.ID, time.Now())
		l.publish(event.RobotOffline{Why: why})
	}
	l.unsaved.update(func(u *unsaved) { u.record = nil })
	s.options.Records.closeSession(c.id, why, string(l.state.Mode()), l.turnCount, time.Now())
	l.log.Info("a robot's channel is closed", "why", why, "turns", l.turnCount)
	close(l.done)
	l.turns.Wait() // a turn may still be inside a C function; the robot's next session does not wait for it
	return nil
}

// add registers a session as the open session of its robot. If the robot has an earlier session, add
// ends it and waits until it has ended.
func (s *sessions) add(added *session) {
	id := added.robot.ID
	s.mu.Lock()
	earlier := s.open[id]
	s.open[id] = added
	added.muted.Store(s.muted[id])
	close(s.added)
	s.added = make(chan struct{})
	s.mu.Unlock()
	if earlier != nil {
		earlier.replaced.Store(true)
		earlier.cancel()
		<-earlier.done
	}
}

// remove removes a session that has ended, unless another one has replaced it. why is the reason for the end. If it
// is whyTooSlow or whySendingFailed, remove counts the session in s.lost.
func (s *sessions) remove(ended *session, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why == whyTooSlow || why == whySendingFailed {
		s.lost.Add(1)
	}
	if s.open[ended.robot.ID] == ended {
		delete(s.open, ended.robot.ID)
	}
}

// storeUnspoken stores the sentences that a session still had to speak when it ended. Notifications and
// commands from the CommandQueue are not among them, because they are stored already.
func (s *sessions) storeUnspoken(ended *loop) {
	var unspoken []Command
	for _, text := range ended.state.Unspoken() {
		unspoken = append(unspoken, Command{Thing: dialogue.CommandSay, Text: text})
	}
	if len(unspoken) == 0 {
		return
	}
	if err := s.store(ended.robot.ID, unspoken...); errors.Is(err, errNotAdopted) {
		return
	} else if err != nil {
		ended.log.Error("sentences that were not spoken yet could not be stored; they are lost", "err", err)
		return
	}
	for _, c := range unspoken {
		ended.publish(event.Speech{Text: c.Text, State: event.SpeechWaiting})
	}
}

// of returns the open session of a robot, or dialogue.ErrOffline if none exists.
func (s *sessions) of(id device.ID) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, open := s.open[id]
	if !open {
		return nil, dialogue.ErrOffline
	}
	return r, nil
}

// waitFor returns the open session of a robot, and waits for one if necessary.
func (s *sessions) waitFor(ctx context.Context, id device.ID) (*session, error) {
	for {
		s.mu.Lock()
		r, open := s.open[id]
		added := s.added
		s.mu.Unlock()
		if open {
			return r, nil
		}
		select {
		case <-added:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.ctx.Done():
			return nil, ErrStopping
		}
	}
}

// post hands an input to the open session of a robot, as session.post does. It returns dialogue.ErrOffline if
// none exists.
func (s *sessions) post(ctx context.Context, id device.ID, in dialogue.Input) error {
	r, err := s.of(id)
	if err != nil {
		return err
	}
	return r.post(ctx, 0, in)
}

// greeted returns the robots that have completed the hello exchange on their open channel.
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

// Lost returns how many channels were closed because messages could not be sent fast enough or at all, usually
// because the robot did not read them.
func (s *sessions) Lost() int { return int(s.lost.Load()) }

// Status describes an open session.
type Status struct {
	Robot   device.ID `json:"robot"`
	Session string    `json:"session"`
	Tools   int       `json:"tools"` // how many tools the robot has
	Muted   bool      `json:"muted"`
}

// List returns the open sessions, sorted by robot.
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

// Questions returns the questions that wait for an answer, oldest first.
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

// Reply gives the owner's answer to the question with an ID, so that nobody near the robot needs to
// answer. It returns agent.ErrNoQuestion if no such question waits for an answer.
func (s *sessions) Reply(id string, allow bool) error {
	r, q := s.findQuestion(id)
	// Several answers may arrive at the same time: only the answer that removes the question counts.
	if q == nil || !r.question.CompareAndSwap(q, nil) {
		return agent.ErrNoQuestion
	}
	err := s.post(s.ctx, q.Robot, dialogue.DecideQuestion{ID: id, Allow: allow})
	if errors.Is(err, dialogue.ErrOffline) {
		return agent.ErrNoQuestion // the channel has just closed, which has ended the question
	}
	return err
}

// findQuestion returns the question with an ID and the session that asks it, or nil for both if no
// such question waits for an answer.
func (s *sessions) findQuestion(id string) (*session, *agent.Question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.open {
		if q := r.question.Load(); q != nil && q.ID == id {
			return r, q
		}
	}
	return nil, nil
}

// Mute makes the appliance drop a robot's sound on arrival, also in later sessions; with on false it
// accepts the sound again.
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
