package store

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"go.etcd.io/bbolt"
)

// A Migration changes stored records from one form to the next. A file's schema version is the number of migrations
// applied to it; only a backup goes back. A new file gets all of them as well, on empty tables.
type Migration struct {
	Name  string          // what it does, for messages
	Apply func(*Tx) error // an error or a panic leaves the file as it was before all migrations
}

// Tx is a transaction of a [Migration]. Its buckets are the tables, with records of JSON.
type Tx = bbolt.Tx

// schemaTable has the version; no other table may have this name.
const schemaTable = "schema"

// prepare checks that the file is ours, intact and not newer, and applies missing migrations in one transaction. It
// reports whether there were any.
func prepare(bolt *bbolt.DB, file *os.File, o Options) (migrated bool, err error) {
	path := file.Name()
	version, known, err := inspect(bolt, file)
	switch {
	case err != nil:
		return false, damaged(path, err)
	case version > len(o.Migrations):
		return false, newer(path, version, len(o.Migrations))
	case known && version == len(o.Migrations):
		return false, nil
	}
	err = guarded(func() error {
		return bolt.Update(func(tx *bbolt.Tx) error { return migrate(tx, version, o.Migrations) })
	})
	switch {
	case errors.Is(err, errPanic):
		return false, damaged(path, err)
	case errors.As(err, new(syscall.Errno)):
		return false, unusable(path, err)
	case err != nil:
		return false, fmt.Errorf("migrate %s, which is left as it was: %w", path, err)
	}
	if known {
		o.Log.Info("database migrated", "path", path, "from", version, "to", len(o.Migrations))
	}
	return true, nil
}

func inspect(bolt *bbolt.DB, file *os.File) (version int, known bool, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, false, err
	}
	err = guarded(func() error {
		return bolt.View(func(tx *bbolt.Tx) error {
			if missing := tx.Size() - info.Size(); missing > 0 {
				return fmt.Errorf("cut short: %d bytes are missing", missing)
			}
			version, known, err = schemaVersion(tx)
			return err
		})
	})
	return version, known, err
}

// schemaVersion returns the file's version; known is false for an empty bolt file.
func schemaVersion(tx *bbolt.Tx) (version int, known bool, err error) {
	b := tx.Bucket([]byte(schemaTable))
	if b == nil {
		if name, _ := tx.Cursor().First(); name != nil {
			return 0, false, errors.New("made by another program")
		}
		return 0, false, nil
	}
	version, err = strconv.Atoi(string(b.Get([]byte("version"))))
	if err != nil || version < 0 {
		return 0, false, errors.New("no schema version")
	}
	return version, true, nil
}

func migrate(tx *bbolt.Tx, from int, all []Migration) error {
	for i, m := range all[from:] {
		if err := m.run(tx); err != nil {
			return fmt.Errorf("migration %d (%s): %w", from+i+1, m.Name, err)
		}
	}
	b, err := tx.CreateBucketIfNotExists([]byte(schemaTable))
	if err != nil {
		return err
	}
	return b.Put([]byte("version"), strconv.AppendInt(nil, int64(len(all)), 10))
}

// run turns a panic of a migration into an error, so that it does not count as a damaged file.
func (m Migration) run(tx *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return m.Apply(tx)
}
