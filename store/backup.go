package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// Backup writes a consistent copy of the file to w while the database is in use. What PutSoon has waiting is committed
// first if the disk lets it. Let w be a file and not a client: as long as it is written to, the database cannot grow.
func (db *DB) Backup(w io.Writer) error {
	_ = db.Flush() // even with a full disk a backup is made; Err reports the disk
	if err := db.view(copyTo(w)); err != nil {
		return fmt.Errorf("back up %s: %w", db.path, err)
	}
	return nil
}

// BackupFile does as [DB.Backup] for a file that no process has open, and leaves it as it is: no migration is applied.
// Errors are as of [Open].
func BackupFile(path string, timeout time.Duration, w io.Writer) error {
	bolt, file, err := openWith(path, timeout, true, os.OpenFile)
	if err != nil {
		return err
	}
	defer func() { _ = release(bolt, file, errors.Is(err, errPanic)) }()
	if _, _, err = inspect(bolt, file); err != nil {
		return damaged(path, err)
	}
	if err = guarded(func() error { return bolt.View(copyTo(w)) }); err != nil {
		return fmt.Errorf("back up %s: %w", path, useError(path, err))
	}
	return nil
}

// copyTo writes a copy. Bolt makes texts of some of w's errors; what callers get is the error itself.
func copyTo(w io.Writer) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		to := &destination{Writer: w}
		_, err := tx.WriteTo(to)
		return cmp.Or(to.err, err)
	}
}

// destination remembers why it could not be written to.
type destination struct {
	io.Writer
	err error
}

func (d *destination) Write(p []byte) (int, error) {
	n, err := d.Writer.Write(p)
	if err != nil {
		d.err = err
	}
	return n, err
}
