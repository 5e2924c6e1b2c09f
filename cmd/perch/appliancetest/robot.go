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

// Sentences returns texts as speech. Package simrobot synthesizes the speech, not an engine of the
// appliance.
func Sentences(t testing.TB, texts ...string) (sentences []simrobot.Sentence) {
	t.Helper()
	for _, text := range texts {
		pcm := must.Value(simrobot.Speak(t.Context(), text, "slt"))(t)
		sentences = append(sentences, simrobot.Sentence{Text: text, PCM: pcm})
	}
	return sentences
}

// Robot is a simulated robot, and what it has observed.
type Robot struct {
	*simrobot.Robot
	Off func() // switches the robot off; nil unless StartRobot or StartCompanion has started it

	t        testing.TB
	on       atomic.Bool
	lateness time.Duration // maximum delay of a timer while the robot was on

	mu   sync.Mutex
	seen []timedObservation
}

// Stats returns the robot's counters and turns. The robot must be off.
func (r *Robot) Stats() simrobot.Stats {
	r.requireOff()
	return r.Robot.Stats()
}

// Lateness returns the maximum delay of a timer on this machine while the robot was on. The robot must be
// off.
func (r *Robot) Lateness() time.Duration {
	r.requireOff()
	return r.lateness
}

// requireOff ends the test if the robot is on.
func (r *Robot) requireOff() {
	if r.on.Load() {
		r.t.Helper()
		r.t.Fatal("the robot must be switched Off before its counters can be read")
	}
}

type timedObservation struct {
	at          time.Time
	observation simrobot.Observation
}

// Values of Lateness beyond which late packets are the machine's fault, not the appliance's. The tests of
// gateway/robot check the timing with a virtual clock.
const (
	// The appliance sends the first packet of speech 14 ms after the order to speak. The robot needs 5 ms
	// of that time to get ready, so this machine may be 9 ms late.
	maxLatenessAtStart = 9 * time.Millisecond
	// MaxLateness applies while a robot speaks: its buffer then holds enough sound for a longer delay.
	MaxLateness = 25 * time.Millisecond
)

// NewRobot returns a robot for this appliance that is off.
func (h *Appliance) NewRobot(o simrobot.Options) *Robot {
	h.T.Helper()
	r, observe := &Robot{t: h.T}, o.Observe
	o.OTA, o.MAC = h.OTA(), cmp.Or(o.MAC, "A0:B1:C2:D3:E4:F5")
	o.Observe = func(e simrobot.Observation) {
		r.mu.Lock()
		r.seen = append(r.seen, timedObservation{time.Now(), e})
		r.mu.Unlock()
		if observe != nil {
			observe(e)
		}
	}
	r.Robot = must.Value(simrobot.New(o))(h.T)
	return r
}

// Run runs the robot until it has done everything in its options, and measures Lateness.
func (r *Robot) Run(ctx context.Context) error {
	r.on.Store(true)
	defer r.on.Store(false)
	ctx, cancel := context.WithCancel(ctx)
	var timer sync.WaitGroup
	timer.Go(func() {
		const interval = 10 * time.Millisecond
		for ctx.Err() == nil {
			began := time.Now()
			time.Sleep(interval)
			r.lateness = max(r.lateness, time.Since(began)-interval)
		}
	})
	err := r.Robot.Run(ctx)
	cancel()
	timer.Wait()
	return err
}

// TryRobot runs a robot for at most two minutes and returns the error of Run.
func (h *Appliance) TryRobot(o simrobot.Options) (*Robot, error) {
	h.T.Helper()
	r := h.NewRobot(o)
	ctx, cancel := context.WithTimeout(h.T.Context(), 2*time.Minute)
	defer cancel()
	return r, r.Run(ctx)
}

// RunRobot is like TryRobot, but ends the test if Run fails.
func (h *Appliance) RunRobot(o simrobot.Options) *Robot {
	h.T.Helper()
	r, err := h.TryRobot(o)
	if err != nil {
		h.T.Fatalf("the robot: %v", err)
	}
	return r
}

// StartRobot runs a robot in the background until the test ends. If o.Forever is set, Run must not fail.
func (h *Appliance) StartRobot(o simrobot.Options) *Robot {
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
func (r *Robot) Observations() (observations []simrobot.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.seen {
		observations = append(observations, e.observation)
	}
	return observations
}

// ObservationsOf returns the robot's observations of type O so far.
func ObservationsOf[O simrobot.Observation](r *Robot) (observations []O) {
	for _, e := range r.Observations() {
		if o, ok := e.(O); ok {
			observations = append(observations, o)
		}
	}
	return observations
}

// Match returns a function that reports whether an observation has the type O and matches a condition.
func Match[O simrobot.Observation](condition func(O) bool) func(simrobot.Observation) bool {
	return func(e simrobot.Observation) bool { o, ok := e.(O); return ok && condition(o) }
}

// HeadAt matches movements of the head to a position at any speed. yaw and pitch are in degrees.
func HeadAt(yaw, pitch int) func(simrobot.Observation) bool {
	return Match(func(m simrobot.HeadMoved) bool { return m.Yaw == yaw && m.Pitch == pitch })
}

// LastTime returns the time of the last observation that matches a condition.
func (r *Robot) LastTime(condition func(simrobot.Observation) bool) (at time.Time, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(r.seen) {
		if condition(e.observation) {
			return e.at, true
		}
	}
	return at, false
}

// Shows matches observations that the robot shows a sentence.
func Shows(text string) func(simrobot.Observation) bool {
	return Match(func(s simrobot.SentenceShown) bool { return s.Text == text })
}

// HasShown reports whether the robot has shown a sentence.
func (r *Robot) HasShown(text string) bool {
	_, found := r.LastTime(Shows(text))
	return found
}

// CheckTiming checks that no packet came late, or before the robot was ready. If this machine itself was
// late, it only logs such packets. The pause after "One moment." is allowed: the recognizer is busy, and
// the answer follows.
func (r *Robot) CheckTiming(t *testing.T) {
	t.Helper()
	s := r.Stats()
	underruns := s.Underruns
	for _, turn := range s.Turns {
		if turn.Underruns > 0 && slices.Contains(turn.Answer, "One moment.") {
			underruns--
		}
	}
	switch {
	case s.Ignored > 0 && r.lateness <= maxLatenessAtStart, underruns > 0 && r.lateness <= MaxLateness:
		t.Errorf("the robot's speaker ran dry, or it ignored packets: %+v", s)
	case s.Ignored+underruns > 0:
		t.Logf("the robot ran dry %d times and ignored %d packets, on a machine that was late by %s", underruns, s.Ignored, r.lateness)
	}
}

// CheckComplete checks the timing, that no packet was lost, and that every utterance was understood and
// got a reply.
func (r *Robot) CheckComplete(t *testing.T) {
	t.Helper()
	r.CheckTiming(t)
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

// Adopt checks robots in, with the Client-Ids that simulated robots have, and adopts them.
func (h *Appliance) Adopt(macs ...string) {
	h.T.Helper()
	for _, mac := range macs {
		id := must.Value(device.ParseID(mac))(h.T)
		s := sha256.Sum256([]byte("client " + id)) // simrobot derives the Client-Id, a UUID, from the MAC address in the same way
		s[6], s[8] = s[6]&0x0f|0x40, s[8]&0x3f|0x80
		c := device.NewClient(fmt.Sprintf("%x-%x-%x-%x-%x", s[:4], s[4:6], s[6:8], s[8:10], s[10:16]))
		h.Robots.CheckIn(device.CheckIn{ID: id, Client: c}, time.Now())
		if _, err := h.Robots.Adopt(string(id), time.Now()); err != nil {
			h.T.Fatal(err)
		}
	}
}

// StartCompanion is StartRobot with o.Forever set.
func (h *Appliance) StartCompanion(o simrobot.Options) *Robot {
	o.Forever = true
	return h.StartRobot(o)
}

// SendSensorEvent sends an event of the robot's sensors. data is JSON.
func (r *Robot) SendSensorEvent(name, data string) {
	r.SendEvent(xiaozhi.Event{Name: name, Data: []byte(data)})
}

// Entered matches observations that the robot enters a state.
func Entered(state simrobot.State) func(simrobot.Observation) bool {
	return func(e simrobot.Observation) bool { return e == simrobot.Entered{State: state} }
}

// WaitForTools waits until the appliance has read a robot's tools.
func (h *Appliance) WaitForTools(id device.ID) {
	h.T.Helper()
	h.Eventually("the appliance has read the robot's tools", func() bool { return len(h.Talk.Tools(id)) > 0 })
}

// Stopped matches observations that the appliance orders the robot to stop speaking.
func Stopped(e simrobot.Observation) bool { _, ok := e.(simrobot.Stopped); return ok }

// Await waits for an observation that matches a condition, and returns its time. what describes the
// condition in the error after a timeout.
func (h *Appliance) Await(r *Robot, what string, condition func(simrobot.Observation) bool) (at time.Time) {
	h.T.Helper()
	h.Eventually(what, func() bool {
		var found bool
		at, found = r.LastTime(condition)
		return found
	})
	return at
}
