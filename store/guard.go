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

// view reads. What was acknowledged must be there: where the newest meta record is lost, bolt goes back to the one before,
// and with it to what the file held then.
func (db *DB) view(fn func(*bbolt.Tx) error) error {
	if err := db.probe(); err != nil {
		return db.found(err)
	}
	least := db.latest.Load()
	err := guarded(func() error {
		return db.bolt.View(func(tx *bbolt.Tx) error {
			if uint64(tx.ID()) < least {
				return errPast
			}
			return fn(tx)
		})
	})
	return db.found(useError(db.path, err))
}

var errPast = fmt.Errorf("%w: its latest state is lost", errPanic)

// damaged is the damage that was found.
func (db *DB) damaged() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.damage
}

// found takes note of damage, and logs the first.
func (db *DB) found(err error) error {
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
		db.log.Error("the database is damaged, and nothing more is written into it; a restart keeps all that can be read of it", "path", db.path,
			"err", err)
	}
	return err
}

// update commits fn. It runs with db.writing held.
func (db *DB) update(fn func(*bbolt.Tx) error) error {
	if err := db.damaged(); err != nil {
		return err
	}
	if err := db.probe(); err != nil {
		return db.found(err)
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
	db.panicked = db.panicked || errors.Is(err, errPanic) // bolt may still hold its write lock: another try would wait for ever
	return db.found(writeError(db.path, err))
}

// release closes bolt. After a panic bolt may hold a transaction open, and its Close would wait for that; then only the
// file is let go, so that it can be opened again. Closing it is not enough: the memory map keeps its lock.
func release(bolt *bbolt.DB, file *os.File, panicked bool) error {
	if !panicked {
		return bolt.Close()
	}
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}
