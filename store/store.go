// Package store keeps what Perch must still know after a power cut: one bolt file of typed tables.
//
// A [Table] maps string keys, in byte order, to values kept as JSON. There are two ways to write. Put and Delete are
// durable when they return. PutSoon and DeleteSoon return at once, are seen by every read at once, and reach the disk
// together: at the latest [Options.FlushAfter] after the first of them, or with the next Put, whichever comes sooner.
// An SD card pays 5 to 50 ms and some of its life for each commit, so a value that is already stored as it is costs
// none, and an unused DB commits nothing.
//
// All methods of DB and Table may be called from any goroutine. No lock and no transaction is held while a caller's code
// runs, so a loop over a table may write to that table. A power cut or a kill loses at most what PutSoon had waiting.
//
// A commit that fails loses nothing either while the process lives: what waits stays waiting and is tried again, and
// [DB.Err] says why.
//
// Open reads the whole file, and makes a new one of what can be read of a damaged one ([Options.Salvage]). A page that is
// found damaged later, or a card that no longer answers, is an error that wraps [ErrDamaged]: the bolt library panics
// there, and a robot that forgets is better than one that is dead. From then on all writes are refused with it: no
// code acts on records that could not be read, and nothing is acknowledged that cannot be found again.
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

// Options of [Open]. The zero value is fine.
type Options struct {
	Migrations []Migration   // all there ever were, oldest first; only ever append
	Timeout    time.Duration // how long to wait for another process to let go of the file; 0: 3 s
	FlushAfter time.Duration // how long PutSoon may keep a value waiting; 0: 5 s
	Log        *slog.Logger  // nil: silent

	// Expect says that there is a database with something in it: Open then returns ErrMissing and makes none.
	Expect bool

	// Salvage has Open make a new file of all that can be read of a damaged one, which stays beside it under another name;
	// else it returns ErrDamaged. See [DB.Salvaged].
	Salvage bool

	// CompactFrom is how many bytes of the file have to be free for Open to rewrite it, where that is more than half of
	// the file as well; 0: 16 MiB, negative: never.
	CompactFrom int64

	reached func(step string) // of the rewriting, for tests; nil: nothing
}

// DB is an open database file. It belongs to this process alone until [DB.Close].
type DB struct {
	path       string
	flushAfter time.Duration
	log        *slog.Logger

	bolt     *bbolt.DB
	file     *os.File // bolt's own handle
	commits  atomic.Uint64
	latest   atomic.Uint64   // the number of the transaction that was acknowledged last
	salvaged *salvage.Report // nil, unless the file was damaged when it was opened

	writing  sync.Mutex // held for the whole of a commit; taken before mu
	panicked bool       // under writing: bolt did, and may hold its locks

	mu     sync.Mutex // never held while the disk works
	closed bool
	damage error // met while reading or writing, after which nothing more is written
	backlog
	flusher
}

// backlog are the changes that are not yet in the file, under DB.mu.
type backlog struct {
	pending    map[row]*change
	size       int   // bytes in pending
	lost       int   // values PutSoon had no room for since the last good commit
	err        error // what the last commit failed with
	complained map[row]bool
	refused    map[row]error
}

// flusher is the goroutine that writes the backlog, and its end.
type flusher struct {
	wake    chan struct{} // something waits that the flusher does not know of
	stop    chan struct{}
	running sync.WaitGroup
	close   func() error // once
}

// Open opens the database file at path, and makes it and its directory where they are missing. Errors wrap [ErrLocked],
// [ErrNewer], [ErrDamaged] or [ErrUnusable] and read as a sentence with cause and cure; the file is then as it was.
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
		backlog: backlog{pending: map[row]*change{}, complained: map[row]bool{}, refused: map[row]error{}},
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

// Path is the path given to [Open].
func (db *DB) Path() string { return db.path }

// Commits counts the write transactions that reached the disk since [Open], its migrations (one transaction) included.
func (db *DB) Commits() uint64 { return db.commits.Load() }

// Err is what the last commit failed with, nil once a later one succeeded: a full disk, say. What is stored can still be
// read meanwhile; see [DB.Readable].
func (db *DB) Err() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.err
}

// Readable is nil while stored values can be read, as far as is known: once a page was found damaged it is not any more,
// and nothing is written until the file is opened anew. It touches memory only.
func (db *DB) Readable() error {
	if err := db.damaged(); err != nil {
		return err
	}
	return db.view(func(tx *bbolt.Tx) error {
		_, _, err := schemaVersion(tx)
		return err
	})
}

// Flush commits what PutSoon and DeleteSoon have waiting; nothing waiting, no commit.
func (db *DB) Flush() error { return db.commit() }

// Close commits what waits, stops the flusher and gives the file up. Later calls return what the first one did.
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
