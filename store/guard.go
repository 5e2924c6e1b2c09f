package store

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"

	"go.etcd.io/bbolt"
)

var errPanic = errors.New("unexpected content")

// guarded runs fn, which reads the memory map. Bolt panics on a page that is not what it should be, and the kernel
// raises a fault for one that is not there or that the card cannot read; either comes back as errPanic.
func guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return fn()
}

// probe reads from both meta pages, which bolt looks at while it holds a lock that a fault would leave locked for ever. A
// card that does not answer is an error here, and once they were read bolt finds them in memory.
func (db *DB) probe() error {
	if _, err := db.file.ReadAt(make([]byte, 2), pageSize-1); err != nil && !errors.Is(err, os.ErrClosed) {
		return damaged(db.path, reason(err))
	}
	return nil
}

func (db *DB) view(fn func(*bbolt.Tx) error) error {
	if err := db.probe(); err != nil {
		return err
	}
	return useError(db.path, guarded(func() error { return db.bolt.View(fn) }))
}

// update commits fn. It runs with db.writing held.
func (db *DB) update(fn func(*bbolt.Tx) error) error {
	if db.broken != nil {
		return db.broken
	}
	if err := db.probe(); err != nil {
		return err
	}
	err := guarded(func() error { return db.bolt.Update(fn) })
	switch {
	case err == nil:
		db.commits.Add(1)
		return nil
	case errors.Is(err, errUnchanged):
		return err
	}
	err = writeError(db.path, err)
	if errors.Is(err, ErrDamaged) {
		db.broken = err // bolt may still hold its write lock: another try would wait for ever
	}
	return err
}

// release closes bolt. After a panic bolt may hold a transaction open, and its Close would wait for that; then only the
// file is let go, so that it can be opened again. Closing it is not enough: the memory map keeps its lock.
func release(bolt *bbolt.DB, file *os.File, panicked bool) error {
	if !panicked {
		return bolt.Close()
	}
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}
