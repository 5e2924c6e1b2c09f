package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// Backup writes a consistent copy of the file to w while the database is in use, and returns the bytes written. What
// PutSoon has waiting is committed first if the disk lets it. Let w be a file and not a client: as long as it is written
// to, the database cannot grow.
func (db *DB) Backup(w io.Writer) (n int64, err error) {
	_ = db.Flush() // even with a full disk a backup is made; Err reports the disk
	err = db.view(func(tx *bbolt.Tx) error {
		n, err = copyTo(w, tx)
		return err
	})
	if err != nil {
		return n, fmt.Errorf("back up %s: %w", db.path, err)
	}
	return n, nil
}

// BackupFile does as [DB.Backup] for a file that no process has open, and leaves it as it is: no migration is applied.
// Errors are as of [Open].
func BackupFile(path string, timeout time.Duration, w io.Writer) (n int64, err error) {
	bolt, file, err := openWith(path, timeout, true, os.OpenFile)
	if err != nil {
		return 0, err
	}
	defer func() { _ = release(bolt, file, errors.Is(err, errPanic)) }()
	if _, _, err = inspect(bolt, file); err != nil {
		return 0, damaged(path, err)
	}
	err = guarded(func() error {
		return bolt.View(func(tx *bbolt.Tx) error {
			n, err = copyTo(w, tx)
			return err
		})
	})
	if err != nil {
		return n, fmt.Errorf("back up %s: %w", path, useError(path, err))
	}
	return n, nil
}

// copyTo writes a copy. Bolt makes texts of some of w's errors; what callers get is the error itself.
func copyTo(w io.Writer, tx *bbolt.Tx) (int64, error) {
	to := &destination{Writer: w}
	n, err := tx.WriteTo(to)
	if to.err != nil {
		err = to.err
	}
	return n, err
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
