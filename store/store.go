// Package store is Perch's database: one bolt file of typed tables, made to survive power failures and failing SD cards.
//
// A [Table] maps string keys, in byte order, to values stored as JSON. There are two ways to write. Put and Delete are
// durable when they return. PutSoon and DeleteSoon queue the change and return at once; every later read sees the change.
// All queued changes reach the disk together: [Options.FlushAfter] after the first of them, or with the next durable write,
// whichever comes sooner. Each commit takes 5 to 50 ms on an SD card and wears the card, so writing a value that is already
// stored commits nothing.
//
// All methods of DB and Table are safe for concurrent use. No lock or transaction is held while a caller's code runs, so
// a loop over a table may write to that table. A power failure or a kill loses at most the changes that were queued.
//
// If a commit fails, its changes stay queued and are tried again. [DB.Err] returns the cause.
//
// Open reads the whole file. If it is damaged, Open can copy the readable records to a new file ([Options.Salvage]).
// Damage that is found later, for example because a disk fails, is returned as an error that wraps [ErrDamaged]; panics of
// the bolt library are converted to this error. From then on all writes fail with it, so that nothing is stored on the
// basis of incomplete records, and no write succeeds that could not be read again.
package store

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"perch/store/salvage"
)

// Options are the options of [Open]. The zero value is valid.
type Options struct {
	Migrations []Migration   // all migrations, oldest first; a new version of Perch may only append migrations
	Timeout    time.Duration // how long to wait for another process's lock; 0 means 3 s
	FlushAfter time.Duration // how long PutSoon may queue a value; 0 means 5 s
	Log        *slog.Logger  // nil discards the log

	// Expect makes Open return ErrMissing instead of creating a database.
	Expect bool

	// Salvage makes Open copy the readable records of a damaged file to a new one, and store the damaged file under
	// another name. Otherwise Open returns ErrDamaged. See [DB.Salvaged].
	Salvage bool

	// CompactFrom is the minimum number of free bytes in the file that makes Open rewrite it, if at least half of the file is
	// free. 0 means 16 MiB; a negative value turns rewriting off.
	CompactFrom int64

	reached func(step string) // called in tests after each step of writing a new file; may be nil
}

// DB is an open database file. No other process can use it until [DB.Close].
type DB struct {
	path       string
	flushAfter time.Duration
	log        *slog.Logger

	bolt     *bbolt.DB
	file     *os.File // the file that bolt has opened
	commits  atomic.Uint64
	latest   atomic.Uint64   // number of the last successful transaction
	salvaged *salvage.Report // returned by Salvaged

	writing  sync.Mutex // held during a whole commit; locked before mu
	panicked bool       // whether bolt panicked while writing, and may still hold its locks; guarded by writing

	mu     sync.Mutex // never held during disk access
	closed bool
	damage error // first damage found while reading or writing; if set, all writes fail
	backlog
	flusher
}

// backlog holds the changes that are not in the file yet, and failures. It is guarded by DB.mu.
type backlog struct {
	pending     map[row]*change
	size        int           // bytes in pending
	lost        int           // number of changes that were dropped since the last successful commit
	err         error         // error of the last commit
	undecodable map[row]bool  // records that were logged because they cannot be decoded
	refused     map[row]error // why the latest value of a record cannot be stored
}

// flusher controls the goroutine that commits the backlog.
type flusher struct {
	wake    chan struct{} // receives a value when the backlog gets its first change, and if a commit leaves changes in it
	stop    chan struct{} // closed by Close
	running sync.WaitGroup
	close   func() error // calls shut once
}

// Open opens the database file at path. It creates the file and its directory if they are missing. Except for the error of
// a failed migration, errors wrap [ErrLocked], [ErrNewer], [ErrDamaged], [ErrUnusable] or [ErrMissing], and their text
// tells the cause and the remedy. After an error the records are unchanged, unless a damaged file was salvaged or the
// migrations were applied before.
func Open(path string, o Options) (*DB, error) {
	o = o.withDefaults()
	target, err := resolve(path)
	if err != nil {
		return nil, err
	}
	if err := initialise(target, o); err != nil {
		return nil, err
	}
	salvaged, err := examine(target, o)
	if err != nil {
		return nil, err
	}
	bolt, file, err := openBolt(target, o.Timeout)
	if err != nil {
		return nil, err
	}
	migrated, err := prepare(bolt, file, o)
	if err != nil {
		_ = release(bolt, file, errors.Is(err, errPanic))
		return nil, err
	}
	if bolt, file, err = compact(target, bolt, file, o); err != nil {
		return nil, err
	}
	makePrivate(file, o.Log)
	latest, earlier, err := readState(bolt, target)
	if err != nil {
		_ = release(bolt, file, errors.Is(err, errPanic))
		return nil, damaged(path, err)
	}
	if salvaged == nil {
		salvaged = earlier
	}
	db := &DB{
		path: path, flushAfter: o.FlushAfter, log: o.Log, bolt: bolt, file: file, salvaged: salvaged,
		backlog: backlog{pending: map[row]*change{}, undecodable: map[row]bool{}, refused: map[row]error{}},
		flusher: flusher{wake: make(chan struct{}, 1), stop: make(chan struct{})},
	}
	db.close = sync.OnceValue(db.shut)
	db.latest.Store(latest)
	if migrated {
		db.commits.Add(1)
	}
	db.running.Go(db.flushLoop)
	return db, nil
}

// withDefaults returns the options with default values for the fields that are zero.
func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = 3 * time.Second
	}
	if o.FlushAfter <= 0 {
		o.FlushAfter = 5 * time.Second
	}
	o.CompactFrom = cmp.Or(o.CompactFrom, 16<<20)
	if o.reached == nil {
		o.reached = func(string) {}
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

// Path returns the path given to [Open].
func (db *DB) Path() string { return db.path }

// Commits returns the number of write transactions since [Open] that reached the disk. The migrations of Open count as one
// transaction.
func (db *DB) Commits() uint64 { return db.commits.Load() }

// Err returns the error of the last commit, such as a full disk, or nil if it succeeded. Stored values may still be
// readable; see [DB.Readable].
func (db *DB) Err() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.err
}

// Readable returns an error if damage was found, or if the file's first pages cannot be read now. After damage nothing is
// written until the file is opened again.
func (db *DB) Readable() error {
	if err := db.damaged(); err != nil {
		return err
	}
	return db.view(func(tx *bbolt.Tx) error {
		_, _, err := schemaVersion(tx)
		return err
	})
}

// Flush commits the changes that PutSoon and DeleteSoon have queued.
func (db *DB) Flush() error { return db.commit() }

// Close commits queued changes and closes the file. If the commit fails, the changes are lost and Close returns the error.
// Later calls return the result of the first.
func (db *DB) Close() error { return db.close() }

// shut implements Close.
func (db *DB) shut() error {
	db.mu.Lock()
	db.closed = true
	db.mu.Unlock()
	close(db.stop)
	db.running.Wait()
	err := db.commit()
	if err != nil {
		err = fmt.Errorf("%d queued records are lost: %w", len(db.queued()), err)
	}
	db.writing.Lock()
	defer db.writing.Unlock()
	if cerr := release(db.bolt, db.file, db.panicked); err == nil {
		err = cerr
	}
	return err
}
