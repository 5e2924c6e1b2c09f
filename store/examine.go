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
	damagedMark  = ".damaged-" // is between the path and the time in the name of a damaged file
	maxDamaged   = 10          // maximum number of stored damaged files; after that the card must be replaced
	salvagedNote = "salvaged"  // key of the salvage.Report in schemaTable
)

// examine reads the whole file before bolt does, because bolt trusts every number in it. If the file is damaged, examine
// salvages it if o.Salvage is set, and otherwise returns an error. It returns a report if it has salvaged the file, or if
// the last change may be lost, and otherwise nil.
func examine(path string, o Options) (*salvage.Report, error) {
	file, size, err := lockFile(path, o.Timeout)
	if err != nil {
		return nil, err
	}
	defer file.Close() // also unlocks the file
	metas, err := salvage.Check(file, size, isRecord)
	switch {
	case err == nil && metas == 2:
		return nil, nil
	case err == nil:
		// A power failure during the last commit can cause this. The next commit repairs the page.
		s := &salvage.Report{At: time.Now(), Cause: "one of its two first pages is not whole", Lost: []string{"perhaps the last change"}}
		o.Log.Error("the database was damaged; its last change may be lost", "path", path, "err", s.Cause)
		return s, nil
	case !o.Salvage:
		return nil, damaged(path, err)
	}
	return rescue(path, file, size, err, o)
}

// lockFile opens a file, acquires bolt's lock, and returns the file and its size in bytes. If the file is replaced while
// lockFile waits for the lock, lockFile opens the new file.
func lockFile(path string, timeout time.Duration) (*os.File, int64, error) {
	for {
		file, err := openLocked(path, os.O_RDWR, timeout)
		if err != nil {
			return nil, 0, err
		}
		byPath, err := os.Stat(path)
		byFile, err2 := file.Stat()
		if err == nil && err2 == nil && os.SameFile(byPath, byFile) {
			return file, byFile.Size(), nil
		}
		_ = file.Close()
		if err := errors.Join(err, err2); err != nil {
			return nil, 0, unusable(path, err)
		}
	}
}

// rescue writes the readable records of a damaged file to a new file at path, and stores the damaged file under another
// name. Because the power may fail at any moment, the damaged file keeps its name until the new one is complete.
func rescue(path string, file *os.File, size int64, cause error, o Options) (*salvage.Report, error) {
	dir := filepath.Dir(path)
	directory, err := openLocked(dir, os.O_RDONLY, o.Timeout) // keeps other processes from removing the new file as a leftover
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	if earlier, _ := filepath.Glob(path + damagedMark + "*"); len(earlier) >= maxDamaged {
		return nil,
			newFailure(ErrDamaged, cause, fmt.Errorf("%s is damaged (%w), and so were %d before it, which are kept beside it; replace the card or disk, and restore a backup with perch restore", path, cause, len(earlier)))
	}
	s := &salvage.Report{At: time.Now().Truncate(time.Second), Cause: cause.Error(), Kept: unusedName(path, time.Now())}
	fresh := path + temporary
	err = checkSpace(dir, size+1<<20) // 1 MiB is a reserve
	var to openFile
	if err == nil {
		to, err = buildFile(fresh, o, func(to *bbolt.DB) error { return refill(s, to, path, file, size, o) })
	}
	if err == nil {
		o.reached("salvaged")
		err = to.bolt.Close()
	}
	if err == nil {
		err = linkOrCopy(file, path, s.Kept)
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
		return nil, newFailure(ErrDamaged, errors.Join(cause, err), fmt.Errorf("%s is damaged (%w), and its readable records could not be copied to a new file: %w; restore a backup with perch restore, "+
			"or move the file away and start with an empty one by perch serve --new-database", path, cause, reason(err)))
	}
	if err := syncDirectories(directory); err != nil {
		return nil, err
	}
	o.Log.Error("the database was damaged; all readable records were saved, and the damaged file is stored beside it", "path", path, "err", cause,
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

// linkOrCopy gives the damaged file at path a second name. On a file system without links it copies the file.
func linkOrCopy(file *os.File, path, name string) error {
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

// refill copies the readable records of the damaged file to a new file, completes the report s, and stores s in the new
// file.
func refill(s *salvage.Report, to *bbolt.DB, path string, file io.ReaderAt, size int64, o Options) error {
	copied, err := salvage.Copy(to, file, size, isRecord)
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
		version, found, err := schemaVersion(tx)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", salvage.ErrNothing, err)
		case !found:
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

// readState returns the number of the file's last transaction, and the report of an earlier salvage if the damaged file
// that the report names still exists.
func readState(bolt *bbolt.DB, path string) (lastTx uint64, s *salvage.Report, err error) {
	var text []byte
	err = guardedView(bolt, func(tx *bbolt.Tx) error {
		lastTx = uint64(tx.ID())
		if b := tx.Bucket([]byte(schemaTable)); b != nil {
			text = bytes.Clone(b.Get([]byte(salvagedNote)))
		}
		return nil
	})
	var note salvage.Report
	if err != nil || text == nil || json.Unmarshal(text, &note) != nil {
		return lastTx, nil, err
	}
	note.Kept = filepath.Join(filepath.Dir(path), filepath.Base(cmp.Or(note.Kept, ".")))
	if info, err := os.Lstat(note.Kept); err != nil || !info.Mode().IsRegular() {
		return lastTx, nil, nil
	}
	return lastTx, &note, nil
}

// Salvaged returns the report of damage that was found when the file was opened, now or at an earlier start whose damaged
// file still exists. It returns nil if there was no damage.
func (db *DB) Salvaged() *salvage.Report { return db.salvaged }
