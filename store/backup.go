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

// Backup writes a consistent copy of the file to w while the database is in use. If possible, it first commits the changes
// that PutSoon and DeleteSoon have queued. w should be a file and not a slow connection: the database cannot grow during
// the copy.
func (db *DB) Backup(w io.Writer) error {
	_ = db.Flush() // a full disk does not prevent a backup; Err reports it
	if err := db.view(copyTo(w)); err != nil {
		return fmt.Errorf("back up %s: %w", db.path, err)
	}
	return nil
}

// BackupFile is like [DB.Backup] for a file that no process has open. It waits up to timeout for the lock. It applies no
// migration and does not change the file. An error wraps [ErrLocked], [ErrUnusable] or [ErrDamaged], or is the error of a
// failed copy.
func BackupFile(path string, timeout time.Duration, w io.Writer) error {
	bolt, file, err := openWith(path, timeout, true, os.OpenFile)
	if err != nil {
		return err
	}
	defer func() { _ = release(bolt, file, errors.Is(err, errPanic)) }()
	if _, _, err = inspect(bolt, file); err != nil {
		return damaged(path, err)
	}
	if err = guardedView(bolt, copyTo(w)); err != nil {
		return fmt.Errorf("back up %s: %w", path, useError(path, err))
	}
	return nil
}

// copyTo returns a function that writes the whole file to w. The function returns w's own error, because bolt sometimes
// returns only the text of that error.
func copyTo(w io.Writer) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		to := &errorWriter{Writer: w}
		_, err := tx.WriteTo(to)
		return cmp.Or(to.err, err)
	}
}

// errorWriter stores the last error of its Writer.
type errorWriter struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (w *errorWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}
