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

// locked returns the error for a file that another process has locked.
func locked(path string, cause error) error {
	process := errors.New("another process")
	switch pid := holder(path); pid {
	case 0:
	case os.Getpid():
		process = errors.New("this very process, which opened it before")
	default:
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		process = fmt.Errorf("process %d (%s)", pid, plain.Text(strings.TrimSpace(string(comm))))
	}
	return newFailure(ErrLocked, cause, fmt.Errorf("%s is in use by %w; stop it, or talk to it with the perch commands", path, process))
}

// holder returns the ID of the process that has locked the file at path, or 0 if it cannot be found.
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

// findHolder searches locks, the content of /proc/locks (see proc_locks(5)), for the process that has locked the file with
// a device number and an inode. It returns the ID of the process, or 0. A line is
// "1: FLOCK ADVISORY WRITE 1234 fd:00:2001 0 EOF", with the process ID, the device in hexadecimal and the inode in
// decimal. A process that waits for a lock has "->" before FLOCK and is skipped. The ID of a process outside this container
// is shown as 0 or less.
func findHolder(locks io.Reader, dev, inode uint64) int {
	// This is how the kernel encodes a device number in st_dev.
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
