package appliancetest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perch/device"
	"perch/device/xiaozhi"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

// Sentences are spoken by a synthesizer that is not the appliance's.
func Sentences(t testing.TB, texts ...string) (all []simrobot.Sentence) {
	t.Helper()
	for _, text := range texts {
		pcm := must.Value(simrobot.Speak(t.Context(), text, "slt"))(t)
		all = append(all, simrobot.Sentence{Text: text, PCM: pcm})
	}
	return all
}

// Robot is a simulated robot, and what happened to it.
type Robot struct {
	*simrobot.Robot
	Off func() // switches off one that stays

	t    testing.TB
	on   atomic.Bool
	late time.Duration

	mu   sync.Mutex
	seen []observed
}

// Stats are the robot's counters, and its turns. They are its own while it is on.
func (r *Robot) Stats() simrobot.Stats {
	r.isOff()
	return r.Robot.Stats()
}

// Late is how late this machine was, at most, while the robot was on.
func (r *Robot) Late() time.Duration {
	r.isOff()
	return r.late
}

func (r *Robot) isOff() {
	if r.on.Load() {
		r.t.Helper()
		r.t.Fatal("the counters of a robot that is on would be read while it writes them: switch it Off first")
	}
}

type observed struct {
	at   time.Time
	what simrobot.Observation
}

// What has to come in time is nothing to judge an appliance by where others keep
// the machine from its work: gateway/robot's tests hold it on a clock of their
// own. A robot that is told to speak can be sent to 14 ms later and takes 5 of
// them to get to it; once it speaks it has sound for longer than TooLate.
const (
	tooLateToBegin = 9 * time.Millisecond
	TooLate        = 25 * time.Millisecond
)

// NewRobot makes a robot of this appliance, which does nothing yet.
func (h *Appliance) NewRobot(o simrobot.Options) *Robot {
	h.T.Helper()
	r, also := &Robot{t: h.T}, o.Observe
	o.OTA, o.MAC = h.OTA(), cmp.Or(o.MAC, "A0:B1:C2:D3:E4:F5")
	o.Observe = func(e simrobot.Observation) {
		r.mu.Lock()
		r.seen = append(r.seen, observed{time.Now(), e})
		r.mu.Unlock()
		if also != nil {
			also(e)
		}
	}
	made := must.Value(simrobot.New(o))(h.T)
	r.Robot = made
	return r
}

// Run has the robot do all that it is to do, and notes how late the machine is
// meanwhile.
func (r *Robot) Run(ctx context.Context) error {
	r.on.Store(true)
	defer r.on.Store(false)
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		const every = 10 * time.Millisecond
		for ctx.Err() == nil {
			began := time.Now()
			time.Sleep(every)
			r.late = max(r.late, time.Since(began)-every)
		}
	})
	err := r.Robot.Run(ctx)
	cancel()
	watch.Wait()
	return err
}

// TalkWith has a robot talk for two minutes at most, and returns what ended it.
func (h *Appliance) TalkWith(o simrobot.Options) (*Robot, error) {
	h.T.Helper()
	r := h.NewRobot(o)
	ctx, cancel := context.WithTimeout(h.T.Context(), 2*time.Minute)
	defer cancel()
	return r, r.Run(ctx)
}

// Robot is a robot that was switched on and has had its talk.
func (h *Appliance) Robot(o simrobot.Options) *Robot {
	h.T.Helper()
	r, err := h.TalkWith(o)
	if err != nil {
		h.T.Fatalf("the robot: %v", err)
	}
	return r
}

// Stays is a robot that is switched on until the test ends. One that lasts for
// ever does not fail meanwhile.
func (h *Appliance) Stays(o simrobot.Options) *Robot {
	h.T.Helper()
	r := h.NewRobot(o)
	ctx, cancel := context.WithCancel(h.T.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil && o.Forever && !errors.Is(err, context.Canceled) {
			h.T.Errorf("the robot: %v", err)
		}
	})
	r.Off = func() { cancel(); running.Wait() }
	h.T.Cleanup(r.Off)
	return r
}

// Observations are the robot's observations so far.
func (r *Robot) Observations() (all []simrobot.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.seen {
		all = append(all, e.what)
	}
	return all
}

// When is the time of the last observation of which is holds.
func (r *Robot) When(is func(simrobot.Observation) bool) (at time.Time, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(r.seen) {
		if is(e.what) {
			return e.at, true
		}
	}
	return at, false
}

// Shows is an observation: a sentence is shown.
func Shows(text string) func(simrobot.Observation) bool {
	return func(e simrobot.Observation) bool { s, ok := e.(simrobot.SentenceShown); return ok && s.Text == text }
}

// Showed reports whether the robot has shown a sentence.
func (r *Robot) Showed(text string) bool {
	_, showed := r.When(Shows(text))
	return showed
}

// InTime checks that no packet came late, or before the robot was ready for it.
func (r *Robot) InTime(t *testing.T) {
	t.Helper()
	s := r.Stats()
	switch {
	case s.Ignored > 0 && r.late <= tooLateToBegin, s.Underruns > 0 && r.late <= TooLate:
		t.Errorf("the robot ran dry, or ignored packets: %+v", s)
	case s.Ignored+s.Underruns > 0:
		t.Logf("the robot ran dry %d times and ignored %d packets, on a machine that was late by %s", s.Underruns, s.Ignored, r.late)
	}
}

// Whole checks that every sentence was answered, and not a packet lost.
func (r *Robot) Whole(t *testing.T) {
	t.Helper()
	r.InTime(t)
	s := r.Stats()
	if s.Dropped+s.Cut+s.Bad > 0 || s.Played+s.Ignored != s.Received || s.MaxQueue > 40 {
		t.Errorf("sound was lost: %+v", s)
	}
	for _, turn := range s.Turns {
		if turn.Transcript != turn.Text || !turn.Answered {
			t.Errorf("%q was heard as %q, answered %v", turn.Text, turn.Transcript, turn.Answer)
		}
	}
}

// Adopt has simulated robots be known, and adopted by their owner.
func (h *Appliance) Adopt(macs ...string) {
	h.T.Helper()
	for _, mac := range macs {
		id := must.Value(device.ParseID(mac))(h.T)
		s := sha256.Sum256([]byte("client " + id)) // as simrobot makes its Client-Id of its MAC
		s[6], s[8] = s[6]&0x0f|0x40, s[8]&0x3f|0x80
		c := device.NewClient(fmt.Sprintf("%x-%x-%x-%x-%x", s[:4], s[4:6], s[6:8], s[8:10], s[10:16]))
		h.Robots.CheckIn(device.CheckIn{ID: id, Client: c}, time.Now())
		if _, err := h.Robots.Adopt(string(id), time.Now()); err != nil {
			h.T.Fatal(err)
		}
	}
}

// Companion is a robot that stays switched on until the test ends, and senses
// things.
func (h *Appliance) Companion(o simrobot.Options) *Robot {
	o.Forever = true
	return h.Stays(o)
}

// Senses has a robot sense something.
func (r *Robot) Senses(name, data string) {
	r.SendEvents(xiaozhi.Event{Name: name, Data: []byte(data)})
}

// Entered is an observation: a robot changes its state.
func Entered(state simrobot.State) func(simrobot.Observation) bool {
	return func(e simrobot.Observation) bool { return e == simrobot.Entered{State: state} }
}

// KnowsTools returns once the appliance has read what tools a robot has.
func (h *Appliance) KnowsTools(id device.ID) {
	h.T.Helper()
	h.Eventually("its tools are known", func() bool { return len(h.Talk.Tools(id)) > 0 })
}

// Stopped is an observation: a robot is told to stop what it says.
func Stopped(e simrobot.Observation) bool { _, ok := e.(simrobot.Stopped); return ok }

// Await returns when that has happened, and the time.
func (h *Appliance) Await(c *Robot, what string, is func(simrobot.Observation) bool) (at time.Time) {
	h.T.Helper()
	h.Eventually(what, func() bool {
		var found bool
		at, found = c.When(is)
		return found
	})
	return at
}
