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

// compact rewrites a mostly free file to a new one, and returns the new one, open; bolt never shrinks a file. If that
// fails, the old file is unharmed and is returned. It returns only errors after which it is unknown which of the two
// files a power cut would leave.
func compact(path string, bolt *bbolt.DB, file *os.File, o Options) (*bbolt.DB, *os.File, error) {
	size, used, err := extent(bolt)
	if err != nil || o.CompactFrom < 0 || size-used < o.CompactFrom || used > size/2 {
		return bolt, file, nil
	}
	rewritten, renamed, err := rewrite(path, used, bolt, o)
	switch {
	case renamed:
		_ = release(bolt, file, false) // its name is gone
		if err != nil {
			_ = rewritten.bolt.Close()
			return nil, nil, err
		}
	case err != nil:
		o.Log.Warn("most of the database file is free space, but it was not rewritten", "path", path, "bytes", size, "used", used, "err", err)
		return bolt, file, nil
	}
	now, _, _ := extent(rewritten.bolt) // for the log
	o.Log.Info("the database file was mostly free space and was rewritten", "path", path, "from", size, "to", now)
	return rewritten.bolt, rewritten.file, nil
}

// extent returns how far an open file was ever written, in bytes, and how much of that is in use. Space that
// bolt reserved beyond it takes no room on the disk.
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

// opened is an open database file.
type opened struct {
	bolt *bbolt.DB
	file *os.File
}

// rewrite copies the records to a new file and renames that to path. It reports whether it did, error or not.
func rewrite(path string, used int64, from *bbolt.DB, o Options) (to opened, renamed bool, err error) {
	if err := room(filepath.Dir(path), used+used/8+1<<20); err != nil {
		return to, false, err
	}
	// Unless the directory is locked, another process would remove the temporary file as a leftover.
	directory, err := openLocked(filepath.Dir(path), os.O_RDONLY, o.Timeout)
	if err != nil {
		return to, false, err
	}
	defer directory.Close()
	fresh := path + temporary
	to, err = produce(fresh, o, func(to *bbolt.DB) error {
		if err := bbolt.Compact(to, from, 1<<20); err != nil {
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

// room returns an error if the file system of a directory has less space left.
func room(directory string, need int64) error {
	free, err := FreeSpace(directory)
	if err == nil && free < need {
		err = fmt.Errorf("the disk has %d bytes left, and %d are needed", free, need)
	}
	return err
}

// produce creates and fills a file, replacing what an earlier attempt left. It is synced only at its end, since it is
// not used before.
func produce(fresh string, o Options, fill func(to *bbolt.DB) error) (to opened, err error) {
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

// sameRecords compares two files record by record, before the old one is removed.
func sameRecords(a, b *bbolt.DB) error {
	return a.View(func(one *bbolt.Tx) error {
		return b.View(func(other *bbolt.Tx) error {
			tables := other.Cursor()
			next, _ := tables.First()
			for name, _ := range pairs(one.Cursor()) {
				if !bytes.Equal(next, name) || !sameTable(one.Bucket(name), other.Bucket(name)) {
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

// pairs yields the keys and values, or the tables, of a cursor.
func pairs(c *bbolt.Cursor) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if !yield(k, v) {
				return
			}
		}
	}
}

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
