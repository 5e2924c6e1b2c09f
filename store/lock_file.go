package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Lock is a locked database file that no other process can open, so that it can be replaced.
type Lock struct{ directory, file *os.File }

// AcquireLock waits up to timeout until no process has the database at path open, and keeps others from opening or creating it
// until [Lock.Release]. The directory must exist. Errors are as of [Open].
func AcquireLock(path string, timeout time.Duration) (*Lock, error) {
	directory, err := openLocked(filepath.Dir(path), os.O_RDONLY, timeout)
	if err != nil {
		return nil, err
	}
	file, err := openLocked(path, os.O_RDWR, timeout)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = directory.Close()
		return nil, err
	}
	return &Lock{directory, file}, nil
}

// Release unlocks the file.
func (h *Lock) Release() {
	_ = h.file.Close() // which also unlocks it; there may be no file
	_ = h.directory.Close()
}

// openLocked opens a file or directory and locks it, as flock does.
func openLocked(path string, flag int, timeout time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, unusable(path, err)
	}
	if err := flock(f, path, timeout); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// flock locks the file or directory at path. It returns the error of locked if another
// process held the lock for the whole of timeout.
func flock(f *os.File, path string, timeout time.Duration) error {
	for end := time.Now().Add(timeout); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case err != syscall.EWOULDBLOCK:
			return unusable(path, err)
		case time.Now().After(end):
			return locked(path, err)
		}
	}
}
