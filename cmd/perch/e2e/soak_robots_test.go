package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"perch/firmware-tools/simrobot"
)

// soakRobot is one simulated robot and its wire. It holds one conversation after the other, and checks in before each.
type soakRobot struct {
	s     *soak
	n     int
	mac   string
	wire  *soakWire
	rand  *rand.Rand
	shape simrobot.Options
	hurry chan struct{} // makes the robot begin a conversation now

	mu       sync.Mutex
	cancel   context.CancelFunc // ends the current conversation; nil if there is none
	vanished bool               // the robot was switched off during the conversation
	known    time.Time          // end of the first complete conversation
}

// newSoakRobots returns robots of different kinds. Most detect the end of a sentence, some are push-to-talk (mode manual),
// and some keep the microphone open (echo cancellation in the device). They run three versions of the firmware, and use
// every framing.
func newSoakRobots(s *soak) ([]*soakRobot, error) {
	var all []*soakRobot
	for n := range soakRobots {
		w, err := newSoakWire(fmt.Sprintf("127.0.1.%d", n+1), s.appliance.listen)
		if err != nil {
			return all, err
		}
		r := &soakRobot{s: s, n: n, mac: fmt.Sprintf("A0:B1:C2:50:AC:%02X", n), wire: w, hurry: make(chan struct{}, 1),
			rand: rand.New(rand.NewPCG(s.seed, uint64(n)))}
		r.shape.Firmware = []string{"2.2.4", "2.4", "2.2.4", "dotty"}[n%4]
		switch {
		case n%5 == 1:
			r.shape.Mode = "manual"
		case n%10 == 3:
			r.shape.AEC = simrobot.AECDevice
		}
		if n%3 > 0 {
			r.shape.Framing++ // the lowest framing, 1; the result is 2 or 3
			for range n % 3 {
				r.shape.Framing++
			}
		}
		all = append(all, r)
	}
	return all, nil
}

// live holds conversations until enough is closed or ctx ends. The current conversation ends first if only enough is
// closed.
func (r *soakRobot) live(ctx context.Context, enough <-chan struct{}) {
	wait := time.Duration(r.rand.Int64N(int64(r.s.pause)))
	for {
		select {
		case <-enough:
			return
		case <-ctx.Done():
			return
		case <-r.hurry:
		case <-time.After(wait):
		}
		r.talk(ctx)
		wait = r.s.pause/2 + time.Duration(r.rand.Int64N(int64(r.s.pause)))
	}
}

// options returns the options of the simulated robot, without sentences to say.
func (r *soakRobot) options() simrobot.Options {
	o := r.shape
	o.OTA, o.MAC = "http://"+r.wire.address()+"/xiaozhi/ota/", r.mac
	return o
}

// seenTurn is a turn, with the time when the sentence was spoken and the time when the turn ended.
type seenTurn struct {
	from, to time.Time
	simrobot.Turn
}

// talk holds one conversation of one or two turns, from the check-in to the end of the channel, and judges it.
func (r *soakRobot) talk(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	r.cancel, r.vanished = cancel, false
	r.mu.Unlock()
	o := r.options()
	for range 1 + r.rand.IntN(2) {
		o.Say = append(o.Say, simrobot.Sentence{Text: soakSentence, PCM: r.s.speech})
	}
	v := verdict{robot: r.mac, from: time.Now()}
	said := v.from
	o.Observe = func(e simrobot.Observation) {
		switch e := e.(type) {
		case simrobot.Spoken:
			said = time.Now()
		case simrobot.TurnEnded:
			v.turns = append(v.turns, seenTurn{said, time.Now(), e.Turn})
		case simrobot.HungUp:
			if e.ByServer {
				v.hungUp = e.Why
			}
		}
	}
	robot, err := simrobot.New(o)
	if err == nil {
		err = robot.Run(ctx)
		v.stats = robot.Stats()
	}
	v.to, v.err = time.Now(), err
	r.mu.Lock()
	r.cancel = nil
	v.vanished = r.vanished
	if err == nil && r.known.IsZero() {
		r.known = v.to
	}
	r.mu.Unlock()
	r.s.judge(v)
}

// kept reports whether the appliance must have stored the robot: it had a complete conversation, and no power cut
// happened within soakRecover after that.
func (r *soakRobot) kept() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.known.IsZero() && !r.s.troubled(r.known, r.known.Add(soakRecover), everybody)
}

// vanish switches the robot off and cuts its wire. It returns false, and does nothing, if the robot is in no conversation.
func (r *soakRobot) vanish() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel == nil {
		return false
	}
	r.vanished = true
	r.wire.vanish()
	r.cancel()
	return true
}

// verdict is the result of one conversation.
type verdict struct {
	robot    string
	from, to time.Time
	turns    []seenTurn
	stats    simrobot.Stats
	err      error
	hungUp   string // why the appliance closed the channel; empty if it did not
	vanished bool   // the robot was switched off
}

// judge adds a conversation to the figures. If it was not as it should be although no fault has touched it, judge records
// a failure.
func (s *soak) judge(v verdict) {
	if v.vanished || s.cutShort(v) || s.troubled(v.from, v.to, everybody) {
		s.count(func(f *figures) { f.touched++ })
		return
	}
	stood, others := s.stalls.within(v.from, v.to)
	late := stood+others > 0
	broken := v.broken(late)
	dry, excused := 0, 0
	for _, t := range v.turns {
		if t.Underruns > 0 && slices.Contains(t.Answer, "One moment.") { // the recognizer is busy, and the answer follows
			t.Underruns--
			excused++
		}
		switch {
		case t.Underruns == 0:
		case s.troubled(t.from, t.to, speakers), s.stalls.excuse(t.from, t.to):
			excused += t.Underruns
		default:
			dry += t.Underruns
		}
	}
	if broken == "" && dry > 0 {
		broken = fmt.Sprintf("the speaker ran dry %d times", dry)
	}
	s.count(func(f *figures) {
		f.talks++
		f.turns += len(v.turns)
		if f.early += v.stats.Ignored; late {
			f.late++
		}
		f.excused += excused
		f.hellos = append(f.hellos, v.stats.HelloLatency)
		for _, t := range v.turns {
			if t.Transcript == t.Text {
				f.understood++
			}
			if t.FirstAudio > 0 {
				f.answers.add(t.FirstAudio)
			}
		}
		for _, g := range v.stats.Gaps {
			f.gaps.add(g)
		}
		f.sent += v.stats.Sent
		f.received += v.stats.Received
	})
	if broken != "" {
		s.fail("%s, which no fault has touched, talked from %s to %s, and %s", v.robot, s.at(v.from), s.at(v.to), broken)
	}
}

// cutShort reports whether the conversation ended because the soak was interrupted.
func (s *soak) cutShort(v verdict) bool {
	return s.ctx.Err() != nil && errors.Is(v.err, context.Canceled)
}

// broken returns what was wrong with the conversation, or "". It does not consider pauses in the speech, which judge does.
// If the machine was late, ignored packets are not counted.
func (v verdict) broken(late bool) string {
	// The appliance sends the first packet of a speech 14 ms after tts start, which the robot handles after 5 ms. If the
	// machine delays the robot by more than the remaining 9 ms, the robot ignores that packet, which is mostly silent.
	// One ignored packet per turn is therefore allowed. The second packet is sent 60 ms after tts start.
	ignored := max(v.stats.Ignored-len(v.turns), 0)
	if late {
		ignored = 0
	}
	lost := v.stats.Dropped + ignored + v.stats.Cut + v.stats.Bad
	switch {
	case v.err != nil:
		return fmt.Sprintf("it ended with: %v", v.err)
	case v.hungUp != "":
		return "the appliance hung up: " + v.hungUp
	case lost > 0:
		return fmt.Sprintf("%d packets were lost: dropped %d, ignored %d, cut %d, bad %d", lost, v.stats.Dropped, v.stats.Ignored, v.stats.Cut,
			v.stats.Bad)
	}
	for _, t := range v.turns {
		if !t.Answered {
			return fmt.Sprintf("%q was not answered", t.Text)
		}
	}
	return ""
}
