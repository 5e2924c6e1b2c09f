package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Lock keeps all processes from opening a database file while it is replaced.
type Lock struct{ directory, file *os.File }

// AcquireLock waits until no process has the database at path open, and keeps others from opening or creating it until
// [Lock.Release]. It locks the directory, which must exist, and then the file, if the file exists; for each it waits up to
// timeout. An error wraps [ErrLocked] or [ErrUnusable].
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

// Release unlocks the directory and the file.
func (h *Lock) Release() {
	_ = h.file.Close() // also unlocks the file, which may be nil
	_ = h.directory.Close()
}

// openLocked opens a file or directory and locks it with flock. An error wraps ErrLocked or ErrUnusable.
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

// flock locks a file or directory. path names it in errors. If another process holds the lock for
// longer than timeout, the error wraps ErrLocked.
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
