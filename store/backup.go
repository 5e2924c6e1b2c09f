package store

import (
	"fmt"
	"io"
	"os"

	"go.etcd.io/bbolt"
)

// Backup writes a consistent copy of the file to w while the database is in use, and returns the bytes written. What
// PutSoon has waiting is committed first if the disk lets it. The copy goes by way of a nameless temporary file, because w
// may be slow and an open transaction keeps the database from growing.
func (db *DB) Backup(w io.Writer) (n int64, err error) {
	_ = db.Flush() // a full disk is no reason not to save what it holds; Err tells of it
	spool, err := os.CreateTemp("", "perch-backup-")
	if err != nil {
		return 0, fmt.Errorf("back up %s: %w", db.path, err)
	}
	defer spool.Close()
	if err := os.Remove(spool.Name()); err != nil {
		return 0, fmt.Errorf("back up %s: %w", db.path, err)
	}
	err = db.view(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(spool)
		return err
	})
	if err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err == nil {
		n, err = io.Copy(w, spool)
	}
	if err != nil {
		return n, fmt.Errorf("back up %s: %w", db.path, err)
	}
	return n, nil
}
