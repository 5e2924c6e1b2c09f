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

// What the soak is made of. Robots rest between talks for as long as lets two
// small processors recognize real speech in the appliance whenever the engine
// that does it elsewhere is ill: about one and a half utterances a second, and a
// quarter or so of them there.
const (
	soakRobots      = 20
	soakSkins       = 20
	soakConnections = 300
	// One sees when its own thread is late, and not another.
	soakSentinels = 4
	soakPause     = 8 * time.Second // between two talks of a robot, from half of it to one and a half
	// A program with the race detector needs three times the processor.
	soakPauseRaced = 3 * soakPause

	soakWriteEvery = 600 * time.Millisecond
	soakBurst      = 30              // writes at most without a pause, before the power goes
	soakBetween    = 2 * time.Second // faults
	soakShortest   = 2 * time.Second // a fault
	soakLongest    = 5 * time.Second
	soakKillEvery  = 5 * time.Minute
	soakDisk       = 96 << 20 // bytes, of the file system that fills up

	soakPatience = 2 * time.Second  // with an engine, before the next in its list is asked
	soakIdle     = 20 * time.Second // until a talk with nobody is hung up
)

// What is waited for, and the bounds.
const (
	soakAnswerWithin  = 15 * time.Second // of a request: far more than it takes, for the machine may be busy
	soakToolWithin    = 3 * soakPatience // of a text that leads to a tool's being called
	soakStopWithin    = 20 * time.Second
	soakReturn        = 3 * time.Second  // after a start, until robots and skins are there again
	soakRecover       = 10 * time.Second // after a fault, until what it touched works again
	soakRecoverWithin = time.Minute      // the broker's: it is tried less and less often, at most every half minute
	soakLetGo         = 45 * time.Second // of a robot that has vanished: soakIdle, and what a turn may take
	soakSettleWithin  = 75 * time.Second // an HTTP connection that is idle is closed after a minute

	// Where the soak itself was not run for so long, what a robot then lost is the
	// machine's doing. A speech begins with 300 ms of sound, 60 ms after the
	// message that makes the robot ready for it; a robot that reads both at once
	// loses it all.
	soakStall = 50 * time.Millisecond
	// And a speaker runs dry by the machine's doing where it stood still for so
	// long: the soak sees when it was late itself, and the appliance, which it
	// does not see, was so by as much again, and several times.
	soakStandstill = 100 * time.Millisecond
	// Nor are pauses judged while other programs have more than this share of the
	// machine. Appliance, robots and engines take a third of two processors, and
	// all of them for moments. One program that computes without end, with a higher
	// priority than theirs, has half of such a machine.
	soakOthers = 0.4

	// Memory may grow by a tenth from one quiet point to the other. The longer the
	// run, the less a leak can hide in that. Under a minute caches have not filled
	// before the first of the two points, and growth says nothing.
	soakGrowth     = 1.10
	soakGrowthFrom = time.Minute
)

// soak is one run.
type soak struct {
	t       *testing.T
	ctx     context.Context
	seed    uint64
	rand    *rand.Rand // of the faults
	began   time.Time
	quietly bool          // says nothing of what it sees
	raced   bool          // the program was built with the race detector
	pause   time.Duration // of a robot between two talks
	speech  []int16
	small   string // a small file system of its own; "" where there is none

	appliance *soakAppliance
	broker    *os.Process // of mosquitto
	brokerAt  string
	engines   *appliancetest.Peers
	timers    chan string // what the tools of timers have answered
	robots    []*soakRobot
	owner     *soakOwner
	foreign   *soakStrangers
	checks    chan string // when the owner has to look for what it wrote
	stalls    stalls
	burst     atomic.Bool  // the owner writes without a pause
	written   atomic.Int64 // writes that were acknowledged

	mu       sync.Mutex
	figures  figures
	troubles []*trouble
	slow     []soakSocket
	failures []string
}

// TestSoak runs the whole appliance for a while, with a fault every few seconds.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("SOAK"))
	if os.Getenv("SOAK") == "" {
		t.Skip("it takes minutes, and the program built: make soak runs it")
	}
	if err != nil || length < 10*time.Second {
		t.Fatalf("SOAK=%q: a duration of at least 10s, such as 30s, 3m or 8h", os.Getenv("SOAK"))
	}
	// Who interrupts it has everything ended that it began, and unmounted.
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

func programPath() string {
	if path := os.Getenv("PERCH_PROGRAM"); path != "" {
		return path
	}
	return "../../../bin/perch"
}

// smallFiles mounts a file system that can be filled, which takes the rights of
// an administrator.
func smallFiles(t *testing.T) (string, error) {
	dir := t.TempDir()
	if err := syscall.Mount("perch-soak", dir, "tmpfs", 0, fmt.Sprintf("size=%d", soakDisk)); err != nil {
		return "", fmt.Errorf("a small file system cannot be mounted: %w", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir, nil
}

// run is a third in which power cuts come, too; then a quiet point; two thirds
// of one life; a quiet point again, at which all has to be as it was; and a last
// power cut, after which all that was acknowledged has to be there.
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
	least := min(soakRecover, length/6) // of looks, however quiet it is
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

// over reports whether it cannot go on.
func (s *soak) over() bool {
	if s.ctx.Err() != nil {
		s.fail("interrupted")
	}
	return s.ctx.Err() != nil || !s.appliance.running()
}

// phase runs everything for a while.
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
	over()         // which is sooner, where the appliance has ended
	talking.Wait() // talks that have begun are finished
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

// report tells every minute how the appliance does.
func (s *soak) report(ctx context.Context) {
	for wait(ctx, time.Minute); ctx.Err() == nil; wait(ctx, time.Minute) {
		if m, err := s.appliance.measure(ctx); err == nil {
			s.say("%d robots connected, %d goroutines, %d descriptors, %.1f MB, of these %.1f MB Go's heap, %s of the processor; the soak itself used %s",
				m.robots, m.goroutines, m.fds, mb(m.anonymous), mb(m.heap), m.cpu.Round(time.Second),
				processorTime("/proc/self/stat").Round(time.Second))
		}
	}
}

// quiet waits until nothing goes on, and measures. Without a base it returns what
// there is most of the time; with one, the least there is, and it is not over
// before that is no more than the base, or it took too long: what looks after the
// appliance by itself, a connection to an engine say, comes and goes.
func (s *soak) quiet(least time.Duration, base measure) (m measure, ok bool) {
	s.mu.Lock()
	for _, c := range s.slow {
		c.drop()
	}
	s.slow = nil
	s.mu.Unlock()
	began := time.Now()
	for _, r := range s.robots {
		r.wire.release(began.Add(-soakLetGo)) // the others the appliance must have given up by itself
	}
	var goroutines, fds, anonymous, heap []int
	for settled := false; !settled && time.Since(began) < soakSettleWithin; {
		s.engines.CloseConnections() // or the idle connections to them would be counted
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
		// Each look makes garbage, and so has the collector run.
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

// compare holds the end against the base.
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
	if s.raced { // whose detector keeps a shadow of every address that was ever in use
		before, after = base.heap, end.heap
	}
	growth := float64(after) / float64(before)
	if length >= soakGrowthFrom && growth > soakGrowth {
		s.fail("memory has grown by %.0f %%, from %.1f to %.1f MB", (growth-1)*100, mb(before), mb(after))
	}
}

// lastCheck takes the power away once more and looks for all that was
// acknowledged.
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
	case <-s.checks: // it is looked for now
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

// close ends all that is left.
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
