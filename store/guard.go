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

// guarded runs fn, which reads the memory map. Bolt panics on an invalid page, and the kernel raises a fault for a page
// that is missing or unreadable; both are returned as errPanic.
func guarded(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	return fn()
}

// probe reads from both meta pages, which bolt reads while it holds a lock that a fault would leave locked for ever. If
// the card does not answer it returns an error; otherwise bolt will find the pages in memory.
func (db *DB) probe() error {
	if _, err := db.file.ReadAt(make([]byte, 2), pageSize-1); err != nil && !errors.Is(err, os.ErrClosed) {
		return damaged(db.path, reason(err))
	}
	return nil
}

// view runs a read transaction. It fails if an acknowledged commit is missing: if the newest meta record is lost, bolt
// uses the previous one, with the content of that time.
func (db *DB) view(fn func(*bbolt.Tx) error) error {
	if err := db.probe(); err != nil {
		return db.recordDamage(err)
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
	return db.recordDamage(useError(db.path, err))
}

var errPast = fmt.Errorf("%w: its latest state is lost", errPanic)

// damaged returns the damage found so far.
func (db *DB) damaged() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.damage
}

// recordDamage records damage, and logs the first.
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
		db.log.Error("the database is damaged, and nothing more is written into it; a restart keeps all that can be read of it", "path", db.path,
			"err", err)
	}
	return err
}

// update commits fn. db.writing is held.
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
	db.panicked = db.panicked || errors.Is(err, errPanic) // bolt may still hold its write lock: another attempt would wait for ever
	return db.recordDamage(writeError(db.path, err))
}

// release closes bolt. After a panic bolt may have a transaction open, and its Close would wait for it; then the file is
// only unlocked, so that it can be opened again. Closing it is not enough: the memory map keeps the lock.
func release(bolt *bbolt.DB, file *os.File, panicked bool) error {
	if !panicked {
		return bolt.Close()
	}
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}
