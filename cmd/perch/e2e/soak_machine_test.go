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

// stalls are the periods in which the machine did not run the soak in time, or other programs kept the machine busy. In
// these periods, robots read and the appliance sends later than they should.
type stalls struct {
	mu   sync.Mutex
	seen []stall
}

type stall struct {
	at     time.Time
	lasts  time.Duration
	others bool // other programs kept the machine busy; otherwise a sentinel woke up late
}

// watch is a sentinel: it sleeps for 10 ms again and again on its own thread, and records when it wakes up more than
// soakStall late.
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

// within returns the longest delay of a sentinel between from and to, and for how long other programs kept the machine
// busy. It considers only stalls that began at most a minute before from.
func (s *stalls) within(from, to time.Time) (longest, others time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range slices.Backward(s.seen) { // backward, because most calls are about the last stalls
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

// excuse reports whether the machine may have caused a pause between from and to: a sentinel was late by soakStandstill,
// or other programs kept the machine busy for a third of the period.
func (s *stalls) excuse(from, to time.Time) bool {
	longest, others := s.within(from, to)
	return longest >= soakStandstill || others >= to.Sub(from)/3
}

// late returns how often a sentinel was late, and the longest delay.
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

// busy returns for how long other programs kept the machine busy.
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

// watchOthers records every period of 500 ms in which programs other than the soak and the appliance use more than
// soakOthers of the machine's processors.
func (s *stalls) watchOthers(ctx context.Context, appliance *soakAppliance) {
	const every = 500 * time.Millisecond
	var busy, ours time.Duration
	for at := time.Now(); ctx.Err() == nil; at = time.Now() {
		wait(ctx, every)
		nowBusy, nowOurs := machineTime(), processorTimes("/proc/self/stat")+processorTimes(
			fmt.Sprintf("/proc/%d/stat", appliance.process().cmd.Process.Pid))
		// nowOurs may be smaller than ours: after a power cut, the new process has used less than the old one.
		if others := nowBusy - busy - max(nowOurs-ours, 0); busy > 0 && float64(others) > soakOthers*float64(time.Since(at))*float64(
			runtime.NumCPU()) {
			s.mu.Lock()
			s.seen = append(s.seen, stall{at: at, lasts: time.Since(at), others: true})
			s.mu.Unlock()
		}
		busy, ours = nowBusy, nowOurs
	}
}

// machineTime returns the busy time of all processors together, including steal, or 0 if /proc/stat cannot be read.
func machineTime() (busy time.Duration) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, f := range strings.Fields(line) {
		if i == 0 || i == 4 || i == 5 || i > 8 { // the name, idle, iowait and the two guest fields
			continue
		}
		ticks, _ := strconv.Atoi(f)
		busy += time.Duration(ticks) * 10 * time.Millisecond
	}
	return busy
}
