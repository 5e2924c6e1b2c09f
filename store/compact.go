package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// compact rewrites a file that is mostly free space, because bolt never shrinks a file. It returns the new file, opened, or
// the old file if rewriting fails or would free too little (see Options.CompactFrom). It returns an error, and closes both
// files, only if the new file has replaced the old one but the rename could not be synced: then a power failure could
// restore the old file.
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

// extent returns the number of bytes up to the last page that was ever written, and how many of these bytes are in use. The
// file may be longer, but bytes after this page take no space on the disk.
func extent(bolt *bbolt.DB) (size, used int64, err error) {
	stats := bolt.Stats()
	err = guardedView(bolt, func(tx *bbolt.Tx) error {
		size = tx.Size()
		return nil
	})
	return size, size - int64(stats.FreePageN+stats.PendingPageN)*pageSize, err
}

// openFile is an open database file.
type openFile struct {
	bolt *bbolt.DB
	file *os.File
}

// rewrite copies the records to a new file and renames that file to path. used is the number of bytes in use in the old
// file. renamed reports whether the rename succeeded; err may be set even then, if the rename could not be synced.
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
// content. The file is synced once, at the end, and returned open. After an error the file is closed, but not removed.
func buildFile(fresh string, o Options, fill func(to *bbolt.DB) error) (to openFile, err error) {
	if err := os.RemoveAll(fresh); err != nil {
		return to, err
	}
	f, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return to, unusable(filepath.Dir(fresh), err)
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
		if err = to.file.Sync(); err != nil {
			err = unusable(fresh, err)
		}
	}
	if err != nil {
		_ = release(to.bolt, to.file, errors.Is(err, errPanic))
	}
	return to, err
}

// sameRecords returns an error unless a file and its copy hold the same records.
func sameRecords(original, duplicate *bbolt.DB) error {
	want, err := digest(original)
	if err != nil {
		return err
	}
	got, err := digest(duplicate)
	if err == nil && got != want {
		err = errors.New("the copy differs")
	}
	return err
}

// digest returns a hash of all records.
func digest(db *bbolt.DB) (sum [sha256.Size]byte, err error) {
	hash := sha256.New()
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			fmt.Fprintf(hash, "table %q\n", name)
			return b.ForEach(func(k, v []byte) error {
				fmt.Fprintf(hash, "%q %d\n%s\n", k, len(v), v)
				return nil
			})
		})
	})
	hash.Sum(sum[:0])
	return sum, err
}
