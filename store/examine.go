package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"

	"perch/store/salvage"
)

const (
	damagedMark  = ".damaged-" // followed by the time, in the name of a damaged file
	mostDamaged  = 10          // files; a card that damages more is to be replaced, and must not fill the disk
	salvagedNote = "salvaged"  // stored with the version
)

// examine reads the whole file before bolt does, which trusts every number in it. It salvages a damaged file if o asks
// for that, and otherwise returns an error.
func examine(path string, o Options) (*salvage.Report, error) {
	file, size, err := lockFile(path, o.Timeout)
	if err != nil {
		return nil, err
	}
	defer file.Close() // which also unlocks it
	metas, err := salvage.Check(file, size, sound)
	switch {
	case err == nil && metas == 2:
		return nil, nil
	case err == nil:
		// As after a power cut on a bad card during the last change. The next change mends it.
		s := &salvage.Report{At: time.Now(), Cause: "one of its two first pages is not whole", Lost: []string{"perhaps the last change"}}
		o.Log.Error("the database was damaged; its last change may be lost", "path", path, "err", s.Cause)
		return s, nil
	case !o.Salvage:
		return nil, damaged(path, err)
	}
	return rescue(path, file, size, err, o)
}

// lockFile opens a file and takes bolt's lock. If the file was replaced while waiting, it opens the new one.
func lockFile(path string, timeout time.Duration) (*os.File, int64, error) {
	for {
		file, err := openLocked(path, os.O_RDWR, timeout)
		if err != nil {
			return nil, 0, err
		}
		named, err := os.Stat(path)
		opened, err2 := file.Stat()
		if err == nil && err2 == nil && os.SameFile(named, opened) {
			return file, opened.Size(), nil
		}
		_ = file.Close()
		if err := errors.Join(err, err2); err != nil {
			return nil, 0, unusable(path, err)
		}
	}
}

// rescue makes a new file of the readable part of a damaged one, which is kept under another name. The power may fail at
// any moment: the old file keeps its name until the new one is complete.
func rescue(path string, file *os.File, size int64, cause error, o Options) (*salvage.Report, error) {
	dir := filepath.Dir(path)
	directory, err := openLocked(dir, os.O_RDONLY, o.Timeout) // against a process that removes the new file as a leftover
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	if aside, _ := filepath.Glob(path + damagedMark + "*"); len(aside) >= mostDamaged {
		return nil,
			fail(ErrDamaged, cause, fmt.Errorf("%s is damaged (%w), and so were %d before it, which are kept beside it; replace the card or disk, and restore a backup with perch restore", path, cause, len(aside)))
	}
	s := &salvage.Report{At: time.Now().Truncate(time.Second), Cause: cause.Error(), Kept: unusedName(path, time.Now())}
	fresh := path + temporary
	err = room(dir, size+1<<20)
	var to opened
	if err == nil {
		to, err = produce(fresh, o, func(to *bbolt.DB) error { return refill(s, to, path, file, size, o) })
	}
	if err == nil {
		o.reached("salvaged")
		err = to.bolt.Close()
	}
	if err == nil {
		err = preserve(file, path, s.Kept)
	}
	if err == nil {
		o.reached("kept")
		err = os.Rename(fresh, path)
	}
	if err != nil {
		_ = os.RemoveAll(fresh)
		switch {
		case errors.Is(err, ErrNewer):
			return nil, err
		case errors.Is(err, salvage.ErrNothing):
			return nil, damaged(path, err)
		}
		return nil, fail(ErrDamaged, errors.Join(cause, err), fmt.Errorf("%s is damaged (%w), and what can be read of it was not put into a new file: %w; restore a backup with perch restore, "+
			"or move the file away and start with an empty one by perch serve --new-database", path, cause, reason(err)))
	}
	if err := syncDirectories(directory); err != nil {
		return nil, err
	}
	o.Log.Error("the database was damaged; all that can be read was kept, and the damaged file is beside it", "path", path, "err", cause,
		"count", s.Records, "what", s.Losses(), "file", s.Kept)
	return s, nil
}

// unusedName returns an unused name for a damaged file.
func unusedName(path string, now time.Time) string {
	name := path + damagedMark + now.Format("20060102-150405")
	for n := 2; Exists(name); n++ {
		name = fmt.Sprintf("%s%s%s-%d", path, damagedMark, now.Format("20060102-150405"), n)
	}
	return name
}

// preserve gives the damaged file a second name or, on a file system without links, a copy.
func preserve(file *os.File, path, name string) error {
	if err := os.Link(path, name); err == nil {
		return nil
	}
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(to, file)
	}
	return errors.Join(err, to.Sync(), to.Close())
}

// refill writes the readable part of the damaged file to a new one, with the report.
func refill(s *salvage.Report, to *bbolt.DB, path string, file io.ReaderAt, size int64, o Options) error {
	copied, err := salvage.Copy(to, file, size, sound)
	if err != nil {
		return err
	}
	for table, n := range copied.Records {
		if table != schemaTable {
			s.Records += n
		}
	}
	s.Lost, s.Tables = copied.Lost, copied.Tables
	return to.Update(func(tx *bbolt.Tx) error {
		version, known, err := schemaVersion(tx)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", salvage.ErrNothing, err)
		case !known:
			return fmt.Errorf("%w: it is empty", salvage.ErrNothing)
		case version > len(o.Migrations):
			return newer(path, version, len(o.Migrations))
		}
		note := *s
		note.Kept = filepath.Base(s.Kept)
		text, err := json.Marshal(note)
		if err != nil {
			return err
		}
		return tx.Bucket([]byte(schemaTable)).Put([]byte(salvagedNote), text)
	})
}

// opening returns the number of the last transaction of a file, and the report of an earlier salvage while its damaged
// file exists.
func opening(bolt *bbolt.DB, path string) (tx uint64, s *salvage.Report, err error) {
	var text []byte
	err = guarded(func() error {
		return bolt.View(func(t *bbolt.Tx) error {
			tx = uint64(t.ID())
			if b := t.Bucket([]byte(schemaTable)); b != nil {
				text = bytes.Clone(b.Get([]byte(salvagedNote)))
			}
			return nil
		})
	})
	var note salvage.Report
	if err != nil || text == nil || json.Unmarshal(text, &note) != nil {
		return tx, nil, err
	}
	note.Kept = filepath.Join(filepath.Dir(path), filepath.Base(cmp.Or(note.Kept, ".")))
	if info, err := os.Lstat(note.Kept); err != nil || !info.Mode().IsRegular() {
		return tx, nil, nil
	}
	return tx, &note, nil
}

// Salvaged reports damage found when the file was opened, at this start or at an earlier one whose damaged file still
// exists; otherwise it is nil.
func (db *DB) Salvaged() *salvage.Report { return db.salvaged }
