package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// quiet is the most that may run beside, in programs that want a processor.
const quiet = 2

// conditions are those of a measurement.
type conditions struct {
	machine, commit string
	at              time.Time
	rounds          int
	load            float64  // before it
	busiest         []string // programs then
	began           time.Time
	busy, ours      time.Duration // of all processors; until after they are of the beginning
	share           float64       // of them that others used meanwhile
}

// before looks what else runs, and refuses to measure beside too much of it.
func (c *conditions) before(ctx context.Context, any bool) (err error) {
	if c.load, c.busiest, err = others(ctx, 5*time.Second); err != nil {
		return err
	}
	if c.load > quiet && !any {
		return fmt.Errorf("%s\nFigures beside that mean little; end it, or ask for them: make bench LOAD=any", c.beside())
	}
	c.began = time.Now()
	c.busy, err = busy()
	own, ownErr := ours()
	c.ours = own
	return errors.Join(err, ownErr)
}

// after looks what else ran meanwhile.
func (c *conditions) after() error {
	all, err := busy()
	own, ownErr := ours()
	took := time.Since(c.began).Seconds() * float64(runtime.NumCPU())
	c.share = max(0, (all-c.busy-(own-c.ours)).Seconds()/took)
	return errors.Join(err, ownErr)
}

// ours is the processor time of this program, and of those that it ran and that have ended.
func ours() (time.Duration, error) {
	var sum time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			return 0, err
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum, nil
}

// beside is what else ran.
func (c *conditions) beside() string {
	s := fmt.Sprintf("Before, %s other programs wanted a processor on average", text(c.load, ""))
	if len(c.busiest) > 0 {
		s += ": " + strings.Join(c.busiest, ", ")
	}
	if c.share > 0 {
		s += fmt.Sprintf(". Meanwhile others used %.0f %% of the processors", 100*c.share)
	}
	return s + "."
}

// String is a paragraph for the page.
func (c *conditions) String() string {
	return fmt.Sprintf("Measured on %s at commit %s, on %s, in %d round(s). %s", c.at.Format("2 January 2006, 15:04 MST"), c.commit, c.machine,
		c.rounds, c.beside())
}
