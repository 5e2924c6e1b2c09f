package store

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// compact rewrites a file that is mostly free space, because bolt never shrinks a file. It returns the new file, opened, or
// the old file if rewriting fails or would free too little. It returns an error only if either of the two files could be at
// path after a power failure.
func compact(path string, bolt *bbolt.DB, file *os.File, o Options) (*bbolt.DB, *os.File, error) {
	size, used, err := extent(bolt)
	if err != nil || o.CompactFrom < 0 || size-used < o.CompactFrom || used > size/2 {
		return bolt, file, nil
	}
	rewritten, renamed, err := rewrite(path, used, bolt, o)
	switch {
	case renamed:
		_ = release(bolt, file, false) // the rename has replaced this file
		if err != nil {
			_ = rewritten.bolt.Close()
			return nil, nil, err
		}
	case err != nil:
		o.Log.Warn("most of the database file is free space, but it was not rewritten", "path", path, "bytes", size, "used", used, "err", err)
		return bolt, file, nil
	}
	newSize, _, _ := extent(rewritten.bolt) // for the log
	o.Log.Info("the database file was mostly free space and was rewritten", "path", path, "from", size, "to", newSize)
	return rewritten.bolt, rewritten.file, nil
}

// extent returns the number of bytes up to the last page that was ever written, and how many of them are in use. The file
// may be longer, but the rest takes no space on the disk.
func extent(bolt *bbolt.DB) (size, used int64, err error) {
	stats := bolt.Stats()
	err = guarded(func() error {
		return bolt.View(func(tx *bbolt.Tx) error {
			size = tx.Size()
			return nil
		})
	})
	return size, size - int64(stats.FreePageN+stats.PendingPageN)*pageSize, err
}

// openFile is an open database file.
type openFile struct {
	bolt *bbolt.DB
	file *os.File
}

// rewrite copies the records to a new file and renames that file to path. renamed reports whether the rename succeeded;
// an error may follow it.
func rewrite(path string, used int64, from *bbolt.DB, o Options) (to openFile, renamed bool, err error) {
	// An eighth and 1 MiB more, in case the new file needs more pages.
	if err := checkSpace(filepath.Dir(path), used+used/8+1<<20); err != nil {
		return to, false, err
	}
	// The lock keeps other processes from removing the temporary file as a leftover.
	directory, err := openLocked(filepath.Dir(path), os.O_RDONLY, o.Timeout)
	if err != nil {
		return to, false, err
	}
	defer directory.Close()
	fresh := path + temporary
	to, err = buildFile(fresh, o, func(to *bbolt.DB) error {
		if err := bbolt.Compact(to, from, 1<<20); err != nil { // in transactions of 1 MiB
			return err
		}
		return sameRecords(from, to)
	})
	if err != nil {
		return to, false, errors.Join(err, os.RemoveAll(fresh))
	}
	o.reached("copied")
	if err := os.Rename(fresh, path); err != nil {
		return to, false, errors.Join(err, to.bolt.Close(), os.RemoveAll(fresh))
	}
	o.reached("renamed")
	return to, true, syncDirectories(directory)
}

// checkSpace returns an error if fewer than need bytes are free on the disk of a directory.
func checkSpace(directory string, need int64) error {
	free, err := FreeSpace(directory)
	if err == nil && free < need {
		err = fmt.Errorf("the disk has %d bytes left, and %d are needed", free, need)
	}
	return err
}

// buildFile creates the database file fresh, replacing a leftover of an earlier attempt, and calls fill to write its
// content. The file is synced once, at the end.
func buildFile(fresh string, o Options, fill func(to *bbolt.DB) error) (to openFile, err error) {
	if err := os.RemoveAll(fresh); err != nil {
		return to, err
	}
	f, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return to, err
	}
	_ = f.Close()
	o.reached("made")
	if to.bolt, to.file, err = openBolt(fresh, o.Timeout); err != nil {
		return to, err
	}
	to.bolt.NoSync, to.bolt.NoGrowSync = true, true
	err = guarded(func() error { return fill(to.bolt) })
	to.bolt.NoSync, to.bolt.NoGrowSync = false, false
	if err == nil {
		err = to.file.Sync()
	}
	if err != nil {
		_ = release(to.bolt, to.file, errors.Is(err, errPanic))
	}
	return to, err
}

// sameRecords returns an error unless a file and its copy hold the same records.
func sameRecords(original, duplicate *bbolt.DB) error {
	return original.View(func(from *bbolt.Tx) error {
		return duplicate.View(func(to *bbolt.Tx) error {
			tables := to.Cursor()
			next, _ := tables.First()
			for name, _ := range pairs(from.Cursor()) {
				if !bytes.Equal(next, name) || !sameTable(from.Bucket(name), to.Bucket(name)) {
					return fmt.Errorf("the copy of table %q differs", name)
				}
				next, _ = tables.Next()
			}
			if next != nil {
				return fmt.Errorf("the copy has a table %q", next)
			}
			return nil
		})
	})
}

// pairs yields the keys and values of a cursor. The key of a bucket is its name.
func pairs(c *bbolt.Cursor) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if !yield(k, v) {
				return
			}
		}
	}
}

// sameTable reports whether two tables hold the same records.
func sameTable(a, b *bbolt.Bucket) bool {
	c := b.Cursor()
	k, v := c.First()
	for key, value := range pairs(a.Cursor()) {
		if k == nil || !bytes.Equal(k, key) || !bytes.Equal(v, value) {
			return false
		}
		k, v = c.Next()
	}
	return k == nil
}
