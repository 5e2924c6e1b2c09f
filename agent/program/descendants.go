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

// markName is a variable in the environment of a program and, unless they change it, of
// all processes it starts. It identifies processes that have left its process group: a
// process can leave its group, session and parent, but keeps its initial environment.
//
// A subreaper would find them by their parents, but would also have to collect the
// orphans of every other child; a control group would find all, but needs permissions
// that a service does not have by default. A process that leaves its parent and clears
// its environment survives until the service ends, with its control group.
const markName = "STARTED_BY_PERCH"

// How often to look for processes that start others, and the pause between.
const (
	mostSweeps = 100
	sweepPause = 5 * time.Millisecond
)

// sweep kills all processes with the mark, until none is left.
func sweep(mark string) {
	marked := func(pid int) bool {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+mark+"\x00"))
	}
	for range mostSweeps {
		found := 0
		for _, pid := range processes() {
			if kill(pid, marked) {
				found++
			}
		}
		if found == 0 {
			return
		}
		time.Sleep(sweepPause) // until they have ended
	}
}

// descendants returns the present descendants of a process.
func descendants(pid int) []int {
	children := map[int][]int{}
	for _, p := range processes() {
		if parent, known := parentOf(p); known {
			children[parent] = append(children[parent], p)
		}
	}
	all := append([]int(nil), children[pid]...)
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// kill kills a process if is reports true, which is called after opening a handle.
func kill(pid int, is func(int) bool) bool {
	if pid == os.Getpid() || !is(pid) {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	return is(pid) && p.Signal(syscall.SIGKILL) == nil
}

// processes returns the ids of all visible processes.
func processes() (all []int) {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(filepath.Base(entry)); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// parentOf reads a process's parent. The process name before it is in brackets and may
// contain anything.
func parentOf(pid int) (parent int, known bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, err == nil
}
