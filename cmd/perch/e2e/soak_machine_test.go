package e2e

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// stalls are the times in which the machine did not let the soak run, or others
// kept it busy. Robots then read late what was sent in time, and the appliance
// sends late what it has.
type stalls struct {
	mu   sync.Mutex
	seen []stall
}

type stall struct {
	at     time.Time
	lasts  time.Duration
	others bool // kept the machine busy; else the soak was late
}

// watch asks to be woken every few milliseconds and sees when that is late, on a
// thread of its own.
func (s *stalls) watch(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const every = 10 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		wait(ctx, every)
		if late := time.Since(began) - every; late > soakStall {
			s.mu.Lock()
			s.seen = append(s.seen, stall{at: began, lasts: late})
			s.mu.Unlock()
		}
	}
}

// within is by how much the soak was late in that time, at most, and for how long
// the machine was others'.
func (s *stalls) within(from, to time.Time) (longest, others time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range slices.Backward(s.seen) { // the latest are asked for
		if one.at.Before(from.Add(-time.Minute)) {
			break
		}
		switch {
		case !one.at.Before(to) || !one.at.Add(one.lasts).After(from):
		case one.others:
			others += one.lasts
		default:
			longest = max(longest, one.lasts)
		}
	}
	return longest, others
}

// excuse reports whether the machine may be to blame for a pause in that time.
func (s *stalls) excuse(from, to time.Time) bool {
	longest, others := s.within(from, to)
	return longest >= soakStandstill || others >= to.Sub(from)/3
}

// late is how often the soak was, and by how much at most.
func (s *stalls) late() (times int, longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.seen {
		if !one.others {
			times, longest = times+1, max(longest, one.lasts)
		}
	}
	return times, longest
}

// busy is how long others had their share of the machine.
func (s *stalls) busy() (all time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.seen {
		if one.others {
			all += one.lasts
		}
	}
	return all
}

// watchOthers sees when programs that are not the soak's use much of the machine.
func (s *stalls) watchOthers(ctx context.Context, appliance *soakAppliance) {
	const every = 500 * time.Millisecond
	var busy, ours time.Duration
	for at := time.Now(); ctx.Err() == nil; at = time.Now() {
		wait(ctx, every)
		nowBusy, nowOurs := machineTime(), processorTimes("/proc/self/stat")+processorTimes(
			fmt.Sprintf("/proc/%d/stat", appliance.process().cmd.Process.Pid))
		// After a power cut the appliance has used less than before.
		if others := nowBusy - busy - max(nowOurs-ours, 0); busy > 0 && float64(others) > soakOthers*float64(time.Since(at))*float64(
			runtime.NumCPU()) {
			s.mu.Lock()
			s.seen = append(s.seen, stall{at: at, lasts: time.Since(at), others: true})
			s.mu.Unlock()
		}
		busy, ours = nowBusy, nowOurs
	}
}

// machineTime is what all processors together were busy, steal included.
func machineTime() (busy time.Duration) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, f := range strings.Fields(line) {
		if i == 0 || i == 4 || i == 5 || i > 8 { // its name, idle, waiting for the disk, guests
			continue
		}
		ticks, _ := strconv.Atoi(f)
		busy += time.Duration(ticks) * 10 * time.Millisecond
	}
	return busy
}
