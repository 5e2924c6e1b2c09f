// Package idlememory gives the kernel the memory back that a program needs to start and to
// work, and not to wait. While nothing happens, the pages of the program's code and constants
// are taken out of its memory. The kernel still has them: a page that is needed comes back
// within microseconds, and Run brings all of them back before somebody waits for them.
package idlememory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

const (
	afterStart = time.Second
	afterWork  = 30 * time.Second // without an event
)

// populateRead is MADV_POPULATE_READ, of Linux 5.14. An older kernel refuses it, and then
// pages come back one by one.
const populateRead = 22

// Run releases memory a second after the start, 30 s later, when the rest of the start is
// done, and after each 30 s without an event, until ctx ends. next waits for an event; urgent
// reports that the whole program will be needed. Any error of next but
// its context's deadline ends Run, too.
func Run(ctx context.Context, next func(context.Context) (urgent bool, err error), log *slog.Logger) {
	within := afterStart
	released := false // pages may be missing
	for {
		wait, stop := ctx, func() {}
		if within > 0 { // else there is nothing to wake up for
			wait, stop = context.WithTimeout(ctx, within)
		}
		urgent, err := next(wait)
		stop()
		switch {
		case ctx.Err() != nil || err != nil && !errors.Is(err, context.DeadlineExceeded):
			return
		case err != nil:
			release(log)
			released = true
			if within == afterStart {
				within = afterWork
			} else {
				within = 0
			}
			continue
		}
		within = afterWork
		if released && urgent {
			advise(populateRead, log)
			released = false
		}
	}
}

// AfterStart releases memory a second after the start, and once more when the parent has
// announced all. stop cancels that.
func AfterStart(log *slog.Logger) (stop func()) {
	first := time.AfterFunc(afterStart, func() { release(log) })
	second := time.AfterFunc(afterStart+afterWork, func() { release(log) })
	return func() { first.Stop(); second.Stop() }
}

// release gives the kernel what is not needed now.
func release(log *slog.Logger) {
	debug.FreeOSMemory()
	advise(syscall.MADV_DONTNEED, log)
}

// advise tells the kernel what to do with the program's code and constants.
func advise(how uintptr, log *slog.Logger) {
	program, err := os.Executable()
	maps, failed := os.ReadFile("/proc/self/smaps")
	if err = errors.Join(err, failed); err != nil {
		log.Debug("the program's memory stays as it is", "err", err)
		return
	}
	for _, p := range unwritten(maps, program) {
		if _, _, refused := syscall.Syscall(syscall.SYS_MADVISE, p.from, p.to-p.from, how); refused != 0 {
			log.Debug("the program's memory stays as it is", "err", refused)
		}
	}
}

// pages are a part of the memory, by addresses.
type pages struct{ from, to uintptr }

// unwritten returns the parts of memory that are as the program's file has them. smaps has
// the form of /proc/PID/smaps. A part is left out if one of its pages was ever written, as
// the loader does: that page would be lost.
func unwritten(smaps []byte, program string) (all []pages) {
	var p pages
	for line := range strings.Lines(string(smaps)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 3 && words[0] == "Anonymous:" && words[1] == "0" && p.to > 0:
			all = append(all, p)
		case len(words) > 4 && strings.Contains(words[0], "-"): // the first line of a part
			p = pages{}
			if strings.HasSuffix(line, " "+program+"\n") && words[1][:2] == "r-" && words[1][3] == 'p' {
				_, _ = fmt.Sscanf(words[0], "%x-%x", &p.from, &p.to) // where it fails, there are no pages
			}
		}
	}
	return all
}
