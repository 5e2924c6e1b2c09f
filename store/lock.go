package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"perch/plain"
)

// locked returns the sentence for a file that another process has locked.
func locked(path string, cause error) error {
	who := errors.New("another process")
	switch pid := holder(path); pid {
	case 0:
	case os.Getpid():
		who = errors.New("this very process, which opened it before")
	default:
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		who = fmt.Errorf("process %d (%s)", pid, plain.Text(strings.TrimSpace(string(comm))))
	}
	return fail(ErrLocked, cause, fmt.Errorf("%s is in use by %w; stop it, or talk to it with the perch commands", path, who))
}

// holder returns the id of the process that has the file at path locked, or 0 if unknown.
func holder(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer locks.Close()
	return findHolder(locks, uint64(stat.Dev), stat.Ino)
}

// findHolder parses /proc/locks (proc_locks(5)): "1: FLOCK ADVISORY WRITE 1234 fd:00:2001 0 EOF", device numbers in hex,
// the inode in decimal. A process that waits for the lock has "->" before FLOCK and is skipped. A process outside our
// container is shown as 0 or less.
func findHolder(locks io.Reader, dev, inode uint64) int {
	major, minor := dev>>8&0xfff|dev>>32&^0xfff, dev&0xff|dev>>12&^0xff
	file := fmt.Sprintf("%02x:%02x:%d", major, minor&0xffffffff, inode)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[1] != "FLOCK" || f[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}
