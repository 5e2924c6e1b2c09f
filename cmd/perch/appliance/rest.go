package appliance

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

	"perch/event"
)

// Much of the program is needed to start it, and for turns, and not by an appliance
// that waits for robots. While nothing happens, its code and constants are taken out
// of its memory. The kernel still has them: a page that is needed comes back within
// microseconds, and a robot that checks in, or connects by MQTT, brings all of them
// back, so that its hello does not wait for them.

const (
	restAfterStart = time.Second
	restAfter      = 30 * time.Second // without an event
)

// populateRead is MADV_POPULATE_READ, of Linux 5.14. An older one refuses it, and then
// pages come back one by one.
const populateRead = 22

// rest gives memory back whenever nothing has happened for a while: a second after the
// start, then once more for what the start had still to do, and after each disturbance.
func (a *Appliance) rest(ctx context.Context) {
	events, within := a.Bus.Read(), restAfterStart
	given := false // pages may be missing
	for {
		next, stop := ctx, func() {}
		if within > 0 { // else there is nothing to wake up for
			next, stop = context.WithTimeout(ctx, within)
		}
		e, err := events.Next(next)
		stop()
		switch {
		case ctx.Err() != nil || errors.Is(err, event.ErrClosed):
			return
		case err != nil && within == restAfterStart:
			within = restAfter
		case err != nil:
			within = 0
		default:
			within = restAfter
		}
		switch {
		case err != nil:
			giveBack(a.Log)
			given = true
		case given && arrives(e.Event):
			advise(populateRead, a.Log)
			given = false
		}
	}
}

// arrives reports whether a robot is about to talk.
func arrives(e event.Event) bool {
	switch e.(type) {
	case event.RobotSeen, event.RobotConnected:
		return true
	}
	return false
}

// giveBack gives the kernel what is not needed now.
func giveBack(log *slog.Logger) {
	debug.FreeOSMemory()
	advise(syscall.MADV_DONTNEED, log)
}

// advise tells the kernel what it is to do with the program's code and constants.
func advise(how uintptr, log *slog.Logger) {
	program, err := os.Executable()
	maps, failed := os.ReadFile("/proc/self/smaps")
	if err = errors.Join(err, failed); err != nil {
		log.Debug("the program's memory is left as it is", "err", err)
		return
	}
	for _, p := range constant(maps, program) {
		if _, _, refused := syscall.Syscall(syscall.SYS_MADVISE, p.from, p.to-p.from, how); refused != 0 {
			log.Debug("the program's memory is left as it is", "err", refused)
		}
	}
}

// pages are a part of the memory, by addresses.
type pages struct{ from, to uintptr }

// constant are the pages that are as the program's file has them, in the form of
// /proc/PID/smaps. A part of which a page was ever written, as the loader does, is none
// of them: that page would be lost.
func constant(smaps []byte, program string) (all []pages) {
	var p pages
	for line := range strings.Lines(string(smaps)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 3 && words[0] == "Anonymous:" && words[1] == "0" && p.to > 0:
			all = append(all, p)
		case len(words) > 4 && strings.Contains(words[0], "-"): // the first line of a part
			p = pages{}
			if strings.HasSuffix(line, " "+program+"\n") && words[1][:2] == "r-" && words[1][3] == 'p' {
				_, _ = fmt.Sscanf(words[0], "%x-%x", &p.from, &p.to) // where it is none, there are no pages
			}
		}
	}
	return all
}
