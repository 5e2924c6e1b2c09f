package program

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// markName is the name of an environment variable that marks a program and the processes
// that the program starts, unless they change their environment. The mark identifies
// processes that have left the program's process group: /proc shows the environment that a
// process was started with.
//
// The alternatives were rejected. A subreaper would find the processes by their parents,
// but would have to wait for the orphans of all other children too. A control group would
// find all of them, but needs permissions that a service does not have by default. With the
// variable, a process that has left the group and has cleared its environment is not found, unless
// the package stops the program while the process is a descendant of it. A process that is not found
// runs until the service is stopped.
const markName = "STARTED_BY_PERCH"

// Limits of killMarked.
const (
	maxSweeps  = 100 // a process may have started another before it was killed
	sweepPause = 5 * time.Millisecond
)

// killMarked kills the processes that have the entry mark in their environment, in passes
// over all processes. It ends when a pass kills none, or after maxSweeps passes.
func killMarked(mark string) {
	isMarked := func(pid int) bool {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+mark+"\x00"))
	}
	for range maxSweeps {
		killed := 0
		for _, pid := range processes() {
			if killIf(pid, isMarked) {
				killed++
			}
		}
		if killed == 0 {
			return
		}
		time.Sleep(sweepPause) // let the killed processes end
	}
}

// descendants returns the IDs of the current descendants of a process.
func descendants(pid int) []int {
	children := map[int][]int{} // key: ID of the parent
	for _, p := range processes() {
		if parent, ok := parentOf(p); ok {
			children[parent] = append(children[parent], p)
		}
	}
	pids := append([]int(nil), children[pid]...)
	for i := 0; i < len(pids); i++ {
		pids = append(pids, children[pids[i]]...)
	}
	return pids
}

// killIf kills a process, other than this one, if cond is true for its ID, and reports whether it
// has killed the process. It calls cond again after opening a handle, because another process may
// have got the ID between the first call and the opening.
func killIf(pid int, cond func(pid int) bool) bool {
	if pid == os.Getpid() || !cond(pid) {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	return cond(pid) && p.Signal(syscall.SIGKILL) == nil
}

// processes returns the IDs of all processes visible in /proc.
func processes() (pids []int) {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(filepath.Base(entry)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf returns the ID of a process's parent.
func parentOf(pid int) (parent int, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The fields follow the process name, which is in parentheses and may contain anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, err == nil
}
