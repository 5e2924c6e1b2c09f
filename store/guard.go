package store

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"

	"go.etcd.io/bbolt"
)

// errPanic is wrapped by the errors that guarded returns for panics.
var errPanic = errors.New("unexpected content")

// guarded runs fn, which reads the memory map, and converts panics to errors that wrap errPanic. Bolt panics for an
// invalid page, and the Go runtime for a page that the kernel cannot read.
func guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return fn()
}

// guardedView runs fn in a read transaction, and converts panics like guarded.
func guardedView(bolt *bbolt.DB, fn func(*bbolt.Tx) error) error {
	return guarded(func() error { return bolt.View(fn) })
}

// probe returns an error if the two meta pages cannot be read from the disk. Otherwise the pages are in memory afterwards,
// so that bolt can read them without a fault. Bolt reads them while it holds a lock, which a fault would leave locked for
// ever. probe reads two bytes: the last one of the first page, and the first one of the second page.
func (db *DB) probe() error {
	if _, err := db.file.ReadAt(make([]byte, 2), pageSize-1); err != nil && !errors.Is(err, os.ErrClosed) {
		return damaged(db.path, reason(err))
	}
	return nil
}

// view runs a read transaction. If the newest meta record is lost, bolt uses the previous one; view then fails, because
// the content is older than the last successful commit.
func (db *DB) view(fn func(*bbolt.Tx) error) error {
	if err := db.probe(); err != nil {
		return db.recordDamage(err)
	}
	minID := db.latest.Load()
	err := guardedView(db.bolt, func(tx *bbolt.Tx) error {
		if uint64(tx.ID()) < minID {
			return errPast
		}
		return fn(tx)
	})
	return db.recordDamage(useError(db.path, err))
}

// errPast is the error of a transaction that would use content older than the last successful commit.
var errPast = fmt.Errorf("%w: its latest state is lost", errPanic)

// damaged returns the first damage that was found, or nil.
func (db *DB) damaged() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.damage
}

// recordDamage stores and logs err if it is the first that wraps ErrDamaged. It returns err.
func (db *DB) recordDamage(err error) error {
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	db.mu.Lock()
	first := db.damage == nil
	if first {
		db.damage = err
	}
	db.mu.Unlock()
	if first {
		db.log.Error("the database is damaged, and nothing more is stored; a restart saves all that can be read", "path", db.path,
			"err", err)
	}
	return err
}

// update runs fn in a write transaction and commits the transaction. If damage was found before, update returns that error
// and does nothing. If fn returns errUnchanged, update returns it and commits nothing. The caller holds db.writing.
func (db *DB) update(fn func(*bbolt.Tx) error) error {
	if err := db.damaged(); err != nil {
		return err
	}
	if err := db.probe(); err != nil {
		return db.recordDamage(err)
	}
	var id uint64
	err := guarded(func() error {
		return db.bolt.Update(func(tx *bbolt.Tx) error {
			if id = uint64(tx.ID()); id <= db.latest.Load() {
				return errPast
			}
			return fn(tx)
		})
	})
	switch {
	case err == nil:
		db.latest.Store(id)
		db.commits.Add(1)
		return nil
	case errors.Is(err, errUnchanged):
		return err
	}
	db.panicked = db.panicked || errors.Is(err, errPanic)
	return db.recordDamage(writeError(db.path, err))
}

// release closes bolt. After a panic bolt's Close could wait for a transaction for ever, so release only unlocks and
// closes the file. Closing is not enough to unlock the file, because the memory map keeps the lock.
func release(bolt *bbolt.DB, file *os.File, panicked bool) error {
	if !panicked {
		return bolt.Close()
	}
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}
