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

// Backup writes a consistent copy of the file to w while the database is in use. Values waiting from PutSoon are
// committed first if possible. w should be a file, not a client: the database cannot grow while it is written to.
func (db *DB) Backup(w io.Writer) error {
	_ = db.Flush() // even with a full disk a backup is made; Err reports the disk
	if err := db.view(copyTo(w)); err != nil {
		return fmt.Errorf("back up %s: %w", db.path, err)
	}
	return nil
}

// BackupFile is like [DB.Backup] for a file that no process has open. It applies no migration and leaves the file
// unchanged. Errors are as of [Open].
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

// copyTo writes a copy. Bolt wraps some of w's errors as text; callers get the error itself.
func copyTo(w io.Writer) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		to := &destination{Writer: w}
		_, err := tx.WriteTo(to)
		return cmp.Or(to.err, err)
	}
}

// destination stores the error of its writer.
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
