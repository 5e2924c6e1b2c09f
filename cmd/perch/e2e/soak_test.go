package e2e

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"perch/cmd/perch/appliancetest"
	"perch/firmware-tools/simrobot"
	"perch/must"
)

// Numbers and times of the load. The pause between the conversations of a robot is long enough that two slow processors
// can recognize the speech locally while the fake recognizer fails: there are about 1.5 utterances a second, of which
// about a quarter are recognized locally.
const (
	soakRobots      = 20
	soakSkins       = 20
	soakConnections = 300
	// A sentinel (see stalls.watch) notices only delays of its own thread, so there are several.
	soakSentinels = 4
	soakPause     = 8 * time.Second // mean pause between two conversations of a robot; from half to one and a half of it
	// A program with the race detector needs three times the CPU time.
	soakPauseRaced = 3 * soakPause

	soakWriteEvery = 600 * time.Millisecond // mean pause between two writes of the owner
	soakBurst      = 30                     // maximum number of writes without a pause before a power cut
	soakBetween    = 2 * time.Second        // mean pause between two faults
	soakShortest   = 2 * time.Second        // minimum length of a fault
	soakLongest    = 5 * time.Second        // maximum length of a fault
	soakKillEvery  = 5 * time.Minute
	soakDisk       = 96 << 20 // bytes of the small file system

	soakPatience = 2 * time.Second  // how long the appliance waits for an engine before it asks the next in the list
	soakIdle     = 20 * time.Second // robots.idle: the appliance closes a quiet channel after this time
)

// Timeouts and bounds.
const (
	soakAnswerWithin  = 15 * time.Second // timeout of a request; much longer than needed, because the machine may be busy
	soakToolWithin    = 3 * soakPatience // from a text to the result of the tool call that it causes
	soakStopWithin    = 20 * time.Second
	soakReturn        = 3 * time.Second  // from a start until robots and skins have connected again
	soakRecover       = 10 * time.Second // from the end of a fault until everything works again
	soakRecoverWithin = time.Minute      // same for the broker; the appliance tries to reconnect at least every 30 s
	soakLetGo         = 45 * time.Second // time to close the channel of a vanished robot: soakIdle and the rest of a turn
	soakSettleWithin  = 75 * time.Second // an idle HTTP connection is closed after a minute

	// If a sentinel is late by more than soakStall, packets that a robot ignores then are blamed on the machine. The
	// second packet is sent 60 ms after tts start. A robot that reads later finds several packets at once, and may
	// ignore all of them.
	soakStall = 50 * time.Millisecond
	// If a sentinel is late by soakStandstill, pauses in a speech are blamed on the machine. A robot has 300 ms of sound
	// ahead, but the appliance may have been late too, and more than once, which the sentinels do not see.
	soakStandstill = 100 * time.Millisecond
	// Pauses are also blamed on the machine if other programs use more than this share of it. The appliance, the robots
	// and the engines use a third of two processors on average, and all of both for short times. One program that
	// computes all the time with a higher priority uses half of such a machine.
	soakOthers = 0.4

	// Memory may grow by a tenth between the two measurements. The longer the run, the smaller the leak that this
	// finds. In a run of less than a minute, caches still fill after the first measurement, so memory is not compared.
	soakGrowth     = 1.10
	soakGrowthFrom = time.Minute
)

// soak is one run.
type soak struct {
	t       *testing.T
	ctx     context.Context
	seed    uint64
	rand    *rand.Rand // chooses the faults
	began   time.Time
	quietly bool          // say prints nothing
	raced   bool          // the program was built with the race detector
	pause   time.Duration // mean pause between two conversations of a robot
	speech  []int16       // PCM samples of soakSentence
	small   string        // directory of the small file system; empty if it could not be mounted

	appliance *soakAppliance
	broker    *os.Process // mosquitto
	brokerAt  string      // the broker's address, host:port
	engines   *appliancetest.Peers
	timers    chan string // results of the timer tools
	robots    []*soakRobot
	owner     *soakOwner
	foreign   *soakStrangers
	checks    chan string // makes the owner call check; the value is its argument when
	stalls    stalls
	burst     atomic.Bool  // the owner writes without a pause
	written   atomic.Int64 // acknowledged writes

	mu       sync.Mutex
	figures  figures
	troubles []*trouble
	slow     []soakSocket // connections of slowSkin
	failures []string
}

// TestSoak runs the appliance for the time in SOAK, with many clients and a fault every few seconds; see docs/soak.md.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("SOAK"))
	if os.Getenv("SOAK") == "" {
		t.Skip("it takes minutes, and the program built: make soak runs it")
	}
	if err != nil || length < 10*time.Second {
		t.Fatalf("SOAK=%q: a duration of at least 10s, such as 30s, 3m or 8h", os.Getenv("SOAK"))
	}
	// An interrupt ends the run in order: all processes are ended, and the file system is unmounted.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := newSoak(ctx, t)
	s.run(length)
	s.close()
	s.table()
	if n := len(s.failed()); n > 0 {
		t.Errorf("%d failures; docs/soak.md says what they mean", n)
	}
}

// newSoak starts the broker, the engines and the appliance, and adopts the robots.
func newSoak(ctx context.Context, t *testing.T) *soak {
	seed := uint64(time.Now().UnixNano() % 1_000_000)
	if text := os.Getenv("SOAK_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SOAK_SEED: %v", err)
		}
	}
	s := &soak{t: t, ctx: ctx, seed: seed, rand: rand.New(rand.NewPCG(seed, 0)), began: time.Now(),
		timers: make(chan string, 1), checks: make(chan string, 1)}
	s.figures.faults = map[string]int{}
	s.owner = newSoakOwner(s)
	program := must.Value(filepath.Abs(programPath()))(t)
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: make build makes it, and PERCH_PROGRAM names another", err)
	}
	built, err := buildinfo.ReadFile(program)
	must.Succeed(t, err)
	s.raced = slices.Contains(built.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
	if s.pause = soakPause; s.raced {
		s.pause = soakPauseRaced
	}
	s.say("seed %d (SOAK_SEED repeats it), program %s", seed, program)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if s.small, err = smallFiles(t); err != nil {
		s.say("the disk is never full in this run: %v", err)
	} else {
		data = filepath.Join(s.small, "data")
	}
	s.speech, err = simrobot.Speak(t.Context(), soakSentence, "slt")
	must.Succeed(t, err)
	s.broker, s.brokerAt = appliancetest.StartMosquitto(t)
	s.engines = newSoakEngines(t, s.timers)
	manager, err := newSoakManager(dir, s.fail)
	must.Succeed(t, err)
	s.appliance = newSoakAppliance(t, program, data, s.brokerAt, s.engines, manager)
	t.Cleanup(func() {
		if s.appliance.running() {
			s.appliance.kill()
		}
	})
	must.Succeed(t, s.appliance.start())
	must.Succeed(t, s.appliance.installedLongAgo())
	s.robots, err = newSoakRobots(s)
	must.Succeed(t, err)
	s.foreign, err = newSoakStrangers(s)
	must.Succeed(t, err)
	must.Succeed(t, s.owner.adoptAll(s.ctx))
	must.Succeed(t, s.foreign.note(s.ctx))
	return s
}

// programPath returns PERCH_PROGRAM, or the path of the built program.
func programPath() string {
	if path := os.Getenv("PERCH_PROGRAM"); path != "" {
		return path
	}
	return "../../../bin/perch"
}

// smallFiles mounts a tmpfs of soakDisk bytes, and returns its directory. This needs root.
func smallFiles(t *testing.T) (string, error) {
	dir := t.TempDir()
	if err := syscall.Mount("perch-soak", dir, "tmpfs", 0, fmt.Sprintf("size=%d", soakDisk)); err != nil {
		return "", fmt.Errorf("a small file system cannot be mounted: %w", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir, nil
}

// run runs the soak: a phase with power cuts, for a third of length; a measurement without clients; a phase without power
// cuts, for two thirds; a second measurement, which is compared with the first; and a last power cut, after which all
// acknowledged writes must be found.
func (s *soak) run(length time.Duration) {
	stalled, watching := context.WithCancel(s.ctx)
	var sentinel sync.WaitGroup
	for range soakSentinels {
		sentinel.Go(func() { s.stalls.watch(stalled) })
	}
	sentinel.Go(func() { s.stalls.watchOthers(stalled, s.appliance) })
	defer sentinel.Wait()
	defer watching()

	s.phase(length/3, s.powerCut)
	if s.over() {
		return
	}
	least := min(soakRecover, length/6) // minimum duration of a measurement
	base, ok := s.quiet(least, measure{})
	if !ok {
		return
	}
	s.figures.base = base
	s.phase(length-length/3, nil)
	if s.over() {
		return
	}
	end, ok := s.quiet(least, base)
	if !ok {
		return
	}
	s.figures.end = end
	s.compare(length, base, end)
	if len(s.failed()) > 0 && end.goroutines > base.goroutines {
		s.say("goroutines, by who began them:\n%s", s.appliance.stacks())
		if err := s.appliance.start(); err != nil {
			s.fail("%v", err)
		}
	}
	s.lastCheck()
}

// over reports whether the soak was interrupted, which is a failure, or the appliance has ended.
func (s *soak) over() bool {
	if s.ctx.Err() != nil {
		s.fail("interrupted")
	}
	return s.ctx.Err() != nil || !s.appliance.running()
}

// phase runs all clients and faults for length, and checks afterwards. killed is passed to spoil.
func (s *soak) phase(length time.Duration, killed func(context.Context)) {
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	lasting, over := context.WithTimeout(ctx, length)
	defer over()
	var talking, owning, others sync.WaitGroup
	for _, r := range s.robots {
		talking.Go(func() { r.live(ctx, lasting.Done()) })
	}
	s.watch(ctx, &others)
	s.foreign.live(ctx, &others)
	others.Go(func() { s.keeper(ctx) })
	owning.Go(func() { s.owner.live(lasting) })
	others.Go(func() { s.report(lasting) })
	s.spoil(lasting, length, killed)
	over()         // needed if spoil returned early because the appliance has ended
	talking.Wait() // conversations that have begun are completed
	owning.Wait()
	select {
	case when := <-s.checks:
		s.owner.check(ctx, when)
	default:
	}
	if s.appliance.running() {
		s.foreign.check(ctx, "when all have talked")
	}
	if !s.appliance.running() {
		s.fail("the appliance has ended; its log ends with\n%s", s.appliance.tail())
	} else if err := s.mirrored(ctx); err != nil && ctx.Err() == nil {
		s.fail("%v", err)
	}
	stop()
	others.Wait()
}

// report logs measurements of the appliance every minute.
func (s *soak) report(ctx context.Context) {
	for wait(ctx, time.Minute); ctx.Err() == nil; wait(ctx, time.Minute) {
		if m, err := s.appliance.measure(ctx); err == nil {
			s.say("%d robots connected, %d goroutines, %d descriptors, %.1f MB, of these %.1f MB Go's heap, %s of the processor; the soak itself used %s",
				m.robots, m.goroutines, m.fds, mb(m.anonymous), mb(m.heap), m.cpu.Round(time.Second),
				processorTime("/proc/self/stat").Round(time.Second))
		}
	}
}

// quiet measures the appliance without clients, for at least the duration least and at most soakSettleWithin, until no
// robot is connected. Memory is the minimum of all samples. If base is zero, the numbers of goroutines and descriptors are
// the medians. Otherwise they are the minima, and quiet also waits until they are not above those of base, because some
// goroutines and connections of the appliance, for example to check an engine, exist only for a short time.
func (s *soak) quiet(least time.Duration, base measure) (m measure, ok bool) {
	s.mu.Lock()
	for _, c := range s.slow {
		c.drop()
	}
	s.slow = nil
	s.mu.Unlock()
	began := time.Now()
	for _, r := range s.robots {
		r.wire.release(began.Add(-soakLetGo)) // connections cut earlier must have been closed by the appliance
	}
	var goroutines, fds, anonymous, heap []int
	for settled := false; !settled && time.Since(began) < soakSettleWithin; {
		s.engines.CloseConnections() // otherwise idle connections to the engines would count
		var err error
		if m, err = s.appliance.measure(s.ctx); err != nil {
			s.fail("%v", err)
			return m, false
		}
		goroutines, fds = append(goroutines, m.goroutines), append(fds, m.fds)
		anonymous, heap = append(anonymous, m.anonymous), append(heap, m.heap)
		settled = time.Since(began) > least && m.robots == 0
		if base.goroutines > 0 {
			settled = settled && slices.Min(goroutines) <= base.goroutines && slices.Min(fds) <= base.fds
		}
		// Each measurement creates garbage in the appliance, so that its garbage collector runs.
		wait(s.ctx, 100*time.Millisecond)
	}
	m.goroutines, m.fds = slices.Min(goroutines), slices.Min(fds)
	m.anonymous, m.heap = slices.Min(anonymous), slices.Min(heap)
	if base.goroutines == 0 {
		slices.Sort(goroutines)
		slices.Sort(fds)
		m.goroutines, m.fds = goroutines[len(goroutines)/2], fds[len(fds)/2]
	}
	s.say("quiet after %s: %d goroutines, %d descriptors, %.1f MB, of these %.1f MB Go's heap", time.Since(began).Round(time.Second),
		m.goroutines, m.fds, mb(m.anonymous), mb(m.heap))
	return m, true
}

// compare records a failure if channels are open, or if goroutines, descriptors or memory have grown since base.
func (s *soak) compare(length time.Duration, base, end measure) {
	if end.robots > 0 {
		s.fail("%d channels are still open, and no robot is there", end.robots)
	}
	if end.goroutines > base.goroutines {
		s.fail("goroutines did not come back: %d, and there were %d", end.goroutines, base.goroutines)
	}
	if end.fds > base.fds {
		s.fail("descriptors did not come back: %d, and there were %d:\n%s", end.fds, base.fds, byCount(s.appliance.descriptors()))
	}
	before, after := base.anonymous, end.anonymous
	if s.raced { // the race detector needs memory for every address that was ever used, so the heap is compared
		before, after = base.heap, end.heap
	}
	growth := float64(after) / float64(before)
	if length >= soakGrowthFrom && growth > soakGrowth {
		s.fail("memory has grown by %.0f %%, from %.1f to %.1f MB", (growth-1)*100, mb(before), mb(after))
	}
}

// lastCheck kills the appliance during a burst of writes once more, and looks for all acknowledged writes.
func (s *soak) lastCheck() {
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	writing, enough := context.WithCancel(ctx)
	var owning sync.WaitGroup
	owning.Go(func() { s.owner.live(writing) })
	s.powerCut(ctx)
	enough()
	owning.Wait()
	select {
	case <-s.checks: // check is called below
	default:
	}
	var keeping sync.WaitGroup
	keeping.Go(func() { s.keeper(ctx) })
	wait(ctx, soakReturn)
	s.owner.check(ctx, "at the end")
	s.foreign.lastCheck()
	if n := len(s.owner.timers) + len(s.owner.notices); n > 0 {
		s.fail("%d notifications and timers could not be looked for at the end", n)
	}
	stop()
	keeping.Wait()
}

// close stops the appliance, reports data races in its log, and closes the wires and the manager.
func (s *soak) close() {
	if s.appliance.running() {
		if err := s.appliance.stop(); err != nil {
			s.fail("%v", err)
		}
	}
	if found := races(s.appliance.log()); len(found) > 0 {
		s.fail("the race detector reports %d races, the first of them:\n%s", len(found), found[0])
	}
	for _, r := range s.robots {
		r.wire.close()
	}
	s.foreign.close()
	s.appliance.ended.Wait()
	s.appliance.manager.close()
}
