// Package store keeps what Perch must still know after a power cut in one bolt file of typed tables.
//
// A [Table] maps string keys, in byte order, to values stored as JSON. There are two ways to write. Put and Delete are
// durable when they return. PutSoon and DeleteSoon return at once, are visible to every read at once, and reach the disk
// together: at the latest [Options.FlushAfter] after the first of them, or with the next Put, whichever comes sooner.
// Each commit costs an SD card 5 to 50 ms and some of its life, so a value that is already stored costs none, and an
// unused DB commits nothing.
//
// All methods of DB and Table are safe for concurrent use. No lock or transaction is held while a caller's code runs, so
// a loop over a table may write to that table. A power cut or a kill loses at most what PutSoon had queued.
//
// A commit that fails loses nothing while the process lives: its values stay queued and are tried again, and [DB.Err]
// returns the cause.
//
// Open reads the whole file, and makes a new one of the readable part of a damaged one ([Options.Salvage]). A page that
// is found damaged later, or a card that no longer answers, gives an error that wraps [ErrDamaged] where the bolt library
// panics. From then on all writes fail with it: no code acts on records that could not be read, and nothing is
// acknowledged that cannot be found again.
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

// Options of [Open]. The zero value is valid.
type Options struct {
	Migrations []Migration   // all there ever were, oldest first; append only
	Timeout    time.Duration // how long to wait for another process's lock; 0: 3 s
	FlushAfter time.Duration // how long PutSoon may queue a value; 0: 5 s
	Log        *slog.Logger  // nil: silent

	// Expect says that a database with content exists: Open then returns ErrMissing instead of creating one.
	Expect bool

	// Salvage makes Open create a new file of all that can be read of a damaged one, which is kept under another name;
	// otherwise Open returns ErrDamaged. See [DB.Salvaged].
	Salvage bool

	// CompactFrom is how many bytes of the file must be free for Open to rewrite it, if that is also more than half of
	// the file; 0: 16 MiB, negative: never.
	CompactFrom int64

	reached func(step string) // called with each step of rewriting, for tests; may be nil
}

// DB is an open database file. No other process can use it until [DB.Close].
type DB struct {
	path       string
	flushAfter time.Duration
	log        *slog.Logger

	bolt     *bbolt.DB
	file     *os.File // bolt's own handle
	commits  atomic.Uint64
	latest   atomic.Uint64   // number of the transaction acknowledged last
	salvaged *salvage.Report // nil unless the file was damaged when it was opened

	writing  sync.Mutex // held for the whole of a commit; locked before mu
	panicked bool       // guarded by writing: bolt panicked, and may hold its locks

	mu     sync.Mutex // never held during disk access
	closed bool
	damage error // found while reading or writing; nothing is written after it
	backlog
	flusher
}

// backlog is the changes not yet in the file, guarded by DB.mu.
type backlog struct {
	pending     map[row]*change
	size        int   // bytes in pending
	lost        int   // values that PutSoon had no room for since the last successful commit
	err         error // of the last commit
	loggedUnfit map[row]bool
	refused     map[row]error
}

// flusher is the goroutine that writes the backlog.
type flusher struct {
	wake    chan struct{} // signals a first waiting value
	stop    chan struct{}
	running sync.WaitGroup
	close   func() error // idempotent
}

// Open opens the database file at path, creating it and its directory if missing. Errors wrap [ErrLocked], [ErrNewer],
// [ErrDamaged] or [ErrUnusable] and read as a sentence with cause and cure; the file is then unchanged.
func Open(path string, o Options) (*DB, error) {
	o = o.withDefaults()
	target, err := locate(path)
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
	latest, note, err := opening(bolt, target)
	if err != nil {
		_ = release(bolt, file, errors.Is(err, errPanic))
		return nil, damaged(path, err)
	}
	if salvaged == nil {
		salvaged = note
	}
	db := &DB{
		path: path, flushAfter: o.FlushAfter, log: o.Log, bolt: bolt, file: file, salvaged: salvaged,
		backlog: backlog{pending: map[row]*change{}, loggedUnfit: map[row]bool{}, refused: map[row]error{}},
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

// Commits returns the number of write transactions that reached the disk since [Open], including the migrations'.
func (db *DB) Commits() uint64 { return db.commits.Load() }

// Err returns the error of the last commit, such as a full disk, or nil once a later one succeeded. Stored values can
// still be read; see [DB.Readable].
func (db *DB) Err() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.err
}

// Readable returns nil while stored values can be read, as far as is known: after a page was found damaged it returns an
// error, and nothing is written until the file is reopened. It does not access the disk.
func (db *DB) Readable() error {
	if err := db.damaged(); err != nil {
		return err
	}
	return db.view(func(tx *bbolt.Tx) error {
		_, _, err := schemaVersion(tx)
		return err
	})
}

// Flush commits what PutSoon and DeleteSoon have queued, if anything.
func (db *DB) Flush() error { return db.commit() }

// Close commits what is queued, stops the flusher and closes the file. Later calls return the result of the first.
func (db *DB) Close() error { return db.close() }

func (db *DB) shut() error {
	db.mu.Lock()
	db.closed = true
	db.mu.Unlock()
	close(db.stop)
	db.running.Wait()
	err := db.commit()
	if err != nil {
		err = fmt.Errorf("%d records that waited are lost: %w", len(db.waiting()), err)
	}
	db.writing.Lock()
	defer db.writing.Unlock()
	if cerr := release(db.bolt, db.file, db.panicked); err == nil {
		err = cerr
	}
	return err
}
