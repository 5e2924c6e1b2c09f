package store

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"go.etcd.io/bbolt"
)

// A Migration changes stored records to the format of the next schema. The schema version of a file is the number of
// migrations that were applied to it. Migrations cannot be reversed, except by restoring a backup. They are also applied
// to a new file, whose tables are empty.
type Migration struct {
	Name  string          // describes the change, for messages
	Apply func(*Tx) error // if it fails or panics, the transaction of all migrations is rolled back
}

// Tx is the transaction of a [Migration]. Its buckets are the tables, whose values are JSON.
type Tx = bbolt.Tx

// schemaTable is the table with the schema version and the report of a salvage. NewTable does not accept its name.
const schemaTable = "schema"

// prepare checks the file's schema and size, and applies missing migrations in one transaction. In a new file it stores the
// schema version even if there are no migrations. migrated reports whether prepare has written to the file.
func prepare(bolt *bbolt.DB, file *os.File, o Options) (migrated bool, err error) {
	path := file.Name()
	version, found, err := inspect(bolt, file)
	switch {
	case err != nil:
		return false, damaged(path, err)
	case version > len(o.Migrations):
		return false, newer(path, version, len(o.Migrations))
	case found && version == len(o.Migrations):
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
	if found {
		o.Log.Info("database migrated", "path", path, "from", version, "to", len(o.Migrations))
	}
	return true, nil
}

// inspect returns the schema version, like schemaVersion, and an error if the file was truncated.
func inspect(bolt *bbolt.DB, file *os.File) (version int, found bool, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, false, err
	}
	err = guardedView(bolt, func(tx *bbolt.Tx) error {
		if missing := tx.Size() - info.Size(); missing > 0 {
			return fmt.Errorf("cut short: %d bytes are missing", missing)
		}
		version, found, err = schemaVersion(tx)
		return err
	})
	return version, found, err
}

// schemaVersion returns the schema version of the file. found is false if the file has no tables.
func schemaVersion(tx *bbolt.Tx) (version int, found bool, err error) {
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

// migrate applies the migrations after version from, and stores the new version.
func migrate(tx *bbolt.Tx, from int, migrations []Migration) error {
	for i, m := range migrations[from:] {
		if err := m.run(tx); err != nil {
			return fmt.Errorf("migration %d (%s): %w", from+i+1, m.Name, err)
		}
	}
	b, err := tx.CreateBucketIfNotExists([]byte(schemaTable))
	if err != nil {
		return err
	}
	return b.Put([]byte("version"), strconv.AppendInt(nil, int64(len(migrations)), 10))
}

// run calls Apply and converts a panic to an error: otherwise guarded would report the panic as damage to the file.
func (m Migration) run(tx *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return m.Apply(tx)
}
