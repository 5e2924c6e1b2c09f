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

// Sentences returns texts as spoken by another synthesizer than the appliance's.
func Sentences(t testing.TB, texts ...string) (all []simrobot.Sentence) {
	t.Helper()
	for _, text := range texts {
		pcm := must.Value(simrobot.Speak(t.Context(), text, "slt"))(t)
		all = append(all, simrobot.Sentence{Text: text, PCM: pcm})
	}
	return all
}

// Robot is a simulated robot and its observations.
type Robot struct {
	*simrobot.Robot
	Off func() // switches it off; only of Stays and Companion

	t    testing.TB
	on   atomic.Bool
	late time.Duration

	mu   sync.Mutex
	seen []observed
}

// Stats returns the robot's counters and turns. The robot has to be off.
func (r *Robot) Stats() simrobot.Stats {
	r.isOff()
	return r.Robot.Stats()
}

// Late returns how late this machine was, at most, while the robot was on.
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

// Bounds of the machine's lateness beyond which late packets are not the appliance's fault; the tests
// of gateway/robot check the timing with a virtual clock. Packets for a robot that is to speak may
// leave 14 ms later, and the robot needs 5 ms of them to be ready; while it speaks it has sound for
// longer than TooLate.
const (
	tooLateToBegin = 9 * time.Millisecond
	TooLate        = 25 * time.Millisecond
)

// NewRobot returns a robot of this appliance that is off.
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

// Run runs the robot until it has done all that its options say, and records how late the machine is.
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

// TalkWith runs a robot for at most two minutes and returns the error that ended it.
func (h *Appliance) TalkWith(o simrobot.Options) (*Robot, error) {
	h.T.Helper()
	r := h.NewRobot(o)
	ctx, cancel := context.WithTimeout(h.T.Context(), 2*time.Minute)
	defer cancel()
	return r, r.Run(ctx)
}

// Robot runs a robot, which has to succeed.
func (h *Appliance) Robot(o simrobot.Options) *Robot {
	h.T.Helper()
	r, err := h.TalkWith(o)
	if err != nil {
		h.T.Fatalf("the robot: %v", err)
	}
	return r
}

// Stays runs a robot in the background until the test ends. With o.Forever the robot must not fail
// before.
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

// Observations returns the robot's observations so far.
func (r *Robot) Observations() (all []simrobot.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.seen {
		all = append(all, e.what)
	}
	return all
}

// Seen returns the observations of type O that a robot has made so far.
func Seen[O simrobot.Observation](r *Robot) (all []O) {
	for _, e := range r.Observations() {
		if o, is := e.(O); is {
			all = append(all, o)
		}
	}
	return all
}

// Is returns a function that reports whether an observation is of type O and satisfies is.
func Is[O simrobot.Observation](is func(O) bool) func(simrobot.Observation) bool {
	return func(e simrobot.Observation) bool { o, of := e.(O); return of && is(o) }
}

// HeadAt is for observations that the head moves to a place, at any speed.
func HeadAt(yaw, pitch int) func(simrobot.Observation) bool {
	return Is(func(m simrobot.HeadMoved) bool { return m.Yaw == yaw && m.Pitch == pitch })
}

// When returns the time of the last observation that satisfies is.
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

// Shows is for observations that a sentence is shown.
func Shows(text string) func(simrobot.Observation) bool {
	return Is(func(s simrobot.SentenceShown) bool { return s.Text == text })
}

// Showed reports whether the robot has shown a sentence.
func (r *Robot) Showed(text string) bool {
	_, showed := r.When(Shows(text))
	return showed
}

// InTime checks that no packet came late, or before the robot was ready.
func (r *Robot) InTime(t *testing.T) {
	t.Helper()
	s := r.Stats()
	switch {
	case s.Ignored > 0 && r.late <= tooLateToBegin, s.Underruns > 0 && r.late <= TooLate:
		t.Errorf("the robot's speaker ran dry, or it ignored packets: %+v", s)
	case s.Ignored+s.Underruns > 0:
		t.Logf("the robot ran dry %d times and ignored %d packets, on a machine that was late by %s", s.Underruns, s.Ignored, r.late)
	}
}

// Whole checks that every sentence was answered and no packet was lost.
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

// Adopt has simulated robots check in, and adopts them.
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

// Companion runs a robot in the background until the test ends. The robot must not fail before.
func (h *Appliance) Companion(o simrobot.Options) *Robot {
	o.Forever = true
	return h.Stays(o)
}

// Senses sends an event of the robot's sensors.
func (r *Robot) Senses(name, data string) {
	r.SendEvents(xiaozhi.Event{Name: name, Data: []byte(data)})
}

// Entered is for observations that the robot changes its state.
func Entered(state simrobot.State) func(simrobot.Observation) bool {
	return func(e simrobot.Observation) bool { return e == simrobot.Entered{State: state} }
}

// KnowsTools waits until the appliance has read a robot's tools.
func (h *Appliance) KnowsTools(id device.ID) {
	h.T.Helper()
	h.Eventually("its tools are known", func() bool { return len(h.Talk.Tools(id)) > 0 })
}

// Stopped reports whether an observation is an order to stop speaking.
func Stopped(e simrobot.Observation) bool { _, ok := e.(simrobot.Stopped); return ok }

// Await waits for an observation that satisfies is, and returns its time.
func (h *Appliance) Await(c *Robot, what string, is func(simrobot.Observation) bool) (at time.Time) {
	h.T.Helper()
	h.Eventually(what, func() bool {
		var found bool
		at, found = c.When(is)
		return found
	})
	return at
}
