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
	_ = db.Flush() // a full disk is no reason not to save what it holds; Err tells of it
	err = db.view(func(tx *bbolt.Tx) error {
		n, err = tx.WriteTo(w)
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
			n, err = tx.WriteTo(w)
			return err
		})
	})
	if err != nil {
		return n, fmt.Errorf("back up %s: %w", path, useError(path, err))
	}
	return n, nil
}
