// Package idlememory reduces the memory of an idle program. It returns free heap memory to the
// kernel, and unmaps the pages of the program's code and constants. These pages stay in the kernel's
// page cache, and the kernel maps each page again within microseconds when the program uses the page. The
// appliance calls Run, which also maps all pages again at an urgent event. The broker process, a child of
// the appliance, calls AfterStart.
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

// Delays without an event before memory is released.
const (
	afterStart = time.Second      // after the start
	afterWork  = 30 * time.Second // after the last event
)

// populateRead is MADV_POPULATE_READ of Linux 5.14. An older kernel returns an error; then each page is
// mapped when the program uses the page.
const populateRead = 22

// Run releases memory after one second without an event, and again after another 30 s without an event,
// because a start may take longer than a second. After an event, Run releases memory once no event has come
// for 30 s. next waits for an event and reports whether the event is urgent; an urgent event makes Run map all
// released pages again. Run returns when ctx ends, or when next returns an error other than
// context.DeadlineExceeded.
func Run(ctx context.Context, next func(context.Context) (urgent bool, err error), log *slog.Logger) {
	delay := afterStart
	released := false // whether pages were released since all pages were last mapped
	for {
		wait, stop := ctx, func() {}
		if delay > 0 { // at 0 there is nothing more to release
			wait, stop = context.WithTimeout(ctx, delay)
		}
		urgent, err := next(wait)
		stop()
		switch {
		case ctx.Err() != nil || err != nil && !errors.Is(err, context.DeadlineExceeded):
			return
		case err != nil:
			release(log)
			released = true
			if delay == afterStart {
				delay = afterWork
			} else {
				delay = 0
			}
			continue
		}
		delay = afterWork
		if released && urgent {
			advise(populateRead, log)
			released = false
		}
	}
}

// AfterStart releases memory one second after the start and once more 30 s later. It is for a child
// process that is idle once its parent has started. stop cancels both releases.
func AfterStart(log *slog.Logger) (stop func()) {
	first := time.AfterFunc(afterStart, func() { release(log) })
	second := time.AfterFunc(afterStart+afterWork, func() { release(log) })
	return func() { first.Stop(); second.Stop() }
}

// release returns free heap memory to the kernel, and unmaps the program's code and constants.
func release(log *slog.Logger) {
	debug.FreeOSMemory()
	advise(syscall.MADV_DONTNEED, log)
}

// advise calls madvise(2) for the program's code and constants.
func advise(advice uintptr, log *slog.Logger) {
	program, err := os.Executable()
	smaps, smapsErr := os.ReadFile("/proc/self/smaps")
	if err = errors.Join(err, smapsErr); err != nil {
		log.Debug("madvise failed", "advice", advice, "err", err)
		return
	}
	for _, p := range unwritten(smaps, program) {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, p.from, p.to-p.from, advice); errno != 0 {
			log.Debug("madvise failed", "advice", advice, "err", errno)
		}
	}
}

// pages is a mapping of memory: the addresses from (inclusive) and to (exclusive).
type pages struct{ from, to uintptr }

// unwritten returns the private read-only mappings of the program's file that have no written page
// (Anonymous: 0 kB). Unmapping a written page, for example a page written by the loader, would lose its
// content. smaps has the format of /proc/PID/smaps.
func unwritten(smaps []byte, program string) (mappings []pages) {
	var p pages
	for line := range strings.Lines(string(smaps)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 3 && words[0] == "Anonymous:" && words[1] == "0" && p.to > 0:
			mappings = append(mappings, p)
		case len(words) > 4 && strings.Contains(words[0], "-"): // the first line of a mapping
			p = pages{}
			if strings.HasSuffix(line, " "+program+"\n") && words[1][:2] == "r-" && words[1][3] == 'p' {
				_, _ = fmt.Sscanf(words[0], "%x-%x", &p.from, &p.to) // p.to stays 0 after an error
			}
		}
	}
	return mappings
}
