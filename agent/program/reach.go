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

// markName is a variable in the environment of a program and, unless they choose
// otherwise, of all it starts. It finds those that have left its process group:
// a process may leave that, its session and its parent, and keeps the
// environment it was started with.
//
// A subreaper would find them by their parents, but the orphans of every other
// child of ours would then be ours to collect as well; a control group would
// find all, but making one takes rights that a service does not have by itself.
// What both leaves its parent and clears its environment stays until the service
// ends, whose control group ends with it.
const markName = "STARTED_BY_PERCH"

// How often what goes on starting others is looked for, and the pause between.
const (
	mostSweeps = 100
	sweepPause = 5 * time.Millisecond
)

// sweep kills all that wear the mark, until there are none.
func sweep(mark string) {
	wears := func(pid int) bool {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+mark+"\x00"))
	}
	for range mostSweeps {
		found := 0
		for _, pid := range processes() {
			if kill(pid, wears) {
				found++
			}
		}
		if found == 0 {
			return
		}
		time.Sleep(sweepPause) // for them to end
	}
}

// descendants are the children of a process and theirs, as they are now.
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

// hold keeps hold of processes, so that their numbers cannot come to mean
// others.
func hold(pids []int) (held []*os.Process) {
	for _, pid := range pids {
		if p, err := os.FindProcess(pid); err == nil {
			held = append(held, p)
		}
	}
	return held
}

// killAll kills and lets go of processes.
func killAll(held []*os.Process) {
	for _, p := range held {
		_ = p.Signal(syscall.SIGKILL)
		_ = p.Release()
	}
}

// kill kills a process that is what is looked for. It is held before it is
// looked at.
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

// processes are the numbers of all that can be seen.
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

// parentOf reads a process's parent. Its name, which may hold anything, is in
// brackets before it.
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
