package store

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"go.etcd.io/bbolt"
)

// Limits of what may wait in memory for its commit.
const (
	MaxWaiting      = 10_000  // records
	MaxWaitingBytes = 8 << 20 // keys and values
)

// row names one record.
type row struct{ table, key string }

// change is the new value of a record, or nil to delete it. It is immutable, so that a commit can see from the pointer
// whether a record was written again during the commit.
type change struct{ value []byte }

type entry struct {
	row
	*change
}

func (e entry) size() int { return len(e.table) + len(e.key) + len(e.value) }

func (db *DB) writeNow(all ...entry) error {
	db.mu.Lock()
	closed := db.closed
	db.mu.Unlock()
	if closed {
		return closedError(db.path)
	}
	// Only a removal can have an empty key, and there is no such record.
	return db.commit(slices.DeleteFunc(all, func(e entry) bool { return e.key == "" })...)
}

func (db *DB) writeSoon(r row, c *change) {
	e := entry{r, c}
	if r.key == "" || db.queue(e, false) {
		return
	}
	if db.Err() == nil { // after an error the flusher tries again
		_ = db.commit()
	}
	db.queue(e, true)
}

// queue adds e to the backlog and wakes the flusher if it is the first. It reports false if there is no room and last is
// not set; if last is set, e is dropped.
func (db *DB) queue(e entry, last bool) bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		db.log.Error("record not stored", "table", e.table, "key", e.key, "err", ErrClosed)
		return true
	}
	old, waits := db.pending[e.row]
	size := db.size + e.size()
	if waits {
		size -= entry{e.row, old}.size()
	} else if len(db.pending) >= MaxWaiting {
		size = MaxWaitingBytes + 1
	}
	if size > MaxWaitingBytes {
		if last {
			if db.lost++; db.lost == 1 {
				db.log.Error("records dropped: too many wait for a disk that refuses them", "waiting", len(db.pending), "err", db.err)
			}
		}
		return last
	}
	if len(db.pending) == 0 {
		db.wakeFlusher()
	}
	db.pending[e.row], db.size = e.change, size
	return true
}

func (db *DB) wakeFlusher() {
	select {
	case db.wake <- struct{}{}:
	default:
	}
}

// commit writes the backlog, and now after it, in one transaction. After an error the backlog stays.
func (db *DB) commit(now ...entry) error {
	db.writing.Lock()
	defer db.writing.Unlock()
	waiting := db.waiting()
	batch := slices.Concat(waiting, now)
	if len(batch) == 0 {
		return nil
	}
	// Neighbours share pages. Stable, so that the newer of two changes to one record comes last.
	slices.SortStableFunc(batch, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.key, b.key))
	})
	err := db.update(func(tx *bbolt.Tx) error { return apply(tx, batch) })
	db.dropWritten(waiting, err)
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

func (db *DB) waiting() []entry {
	db.mu.Lock()
	defer db.mu.Unlock()
	list := make([]entry, 0, len(db.pending))
	for r, c := range db.pending {
		list = append(list, entry{r, c})
	}
	return list
}

// errUnchanged rolls back a transaction that would change nothing: a commit costs two syncs.
var errUnchanged = errors.New("nothing changed")

func apply(tx *bbolt.Tx, batch []entry) error {
	changed := false
	for _, e := range batch {
		b := tx.Bucket([]byte(e.table))
		if b == nil && e.value == nil {
			continue
		}
		if b == nil {
			var err error
			if b, err = tx.CreateBucket([]byte(e.table)); err != nil {
				return err
			}
		}
		stored := b.Get([]byte(e.key))
		if (stored == nil) == (e.value == nil) && bytes.Equal(stored, e.value) {
			continue
		}
		changed = true
		if err := putEntry(b, e); err != nil {
			return err
		}
	}
	if !changed {
		return errUnchanged
	}
	return nil
}

func putEntry(b *bbolt.Bucket, e entry) error {
	if e.value == nil {
		return b.Delete([]byte(e.key))
	}
	return b.Put([]byte(e.key), e.value)
}

// dropWritten removes what was written from the backlog, unless it was changed during the commit.
func (db *DB) dropWritten(written []entry, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if !errors.Is(err, errUnchanged) { // says nothing about the disk
		db.err = err
		if err != nil {
			return
		}
		db.lost = 0
	}
	for _, e := range written {
		if db.pending[e.row] == e.change {
			delete(db.pending, e.row)
			db.size -= e.size()
		}
	}
	if len(db.pending) > 0 {
		db.wakeFlusher()
	}
}
