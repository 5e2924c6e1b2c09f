package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Held is a database file that no process has open or can open, so that it can be replaced.
type Held struct{ directory, file *os.File }

// Hold waits until no process has the database at path open, for timeout at most, and keeps all others from opening it, or
// making it where there is none, until [Held.Release]. The directory must be there. Errors are as of [Open].
func Hold(path string, timeout time.Duration) (*Held, error) {
	directory, err := openLocked(filepath.Dir(path), os.O_RDONLY, timeout)
	if err != nil {
		return nil, err
	}
	file, err := openLocked(path, os.O_RDWR, timeout)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = directory.Close()
		return nil, err
	}
	return &Held{directory, file}, nil
}

// Release lets others have it.
func (h *Held) Release() {
	_ = h.file.Close() // which gives the lock up; there may be no file
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

// flock locks a file or directory that path names. The error is locked's where
// another process kept it locked for the whole of timeout.
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
