package doctor

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"perch/cmd/perch/datadir"
	"perch/store"
)

// maxCopied is the maximum size of a database that is examined, in bytes. The copy is a temporary file,
// which many machines hold in memory.
const maxCopied = 128 << 20

// databaseCopy is an open copy of the database of an appliance that does not run. The doctor does not
// open the database itself, because opening changes the file, and migrates the database of an older
// version.
type databaseCopy struct {
	*store.DB
	dir string // the temporary folder with the copy
}

// damage returns an error that describes the damage of the database at path. c must be a copy of that database.
func (c *databaseCopy) damage(path string) error {
	s := *c.Salvaged()
	if s.Kept == "" { // one of bolt's two first pages is damaged, which the next commit repairs
		return fmt.Errorf("%s; the next change of a record repairs it", s)
	}
	if aside := filepath.Join(filepath.Dir(path), filepath.Base(s.Kept)); store.Exists(aside) {
		s.Kept = aside
		return errors.New(s.String())
	}
	return fmt.Errorf(
		"%s is damaged (%s); the next start keeps the %d records that can be read, and puts the file aside; %s; or restore a backup with perch restore", path, s.Cause, s.Records, s.Losses())
}

// copyDatabase opens a copy of the database at path. In errors of the store, path replaces the path of the copy. If expectRecords is
// true, a database that was never used is an error.
func copyDatabase(path string, expectRecords bool) (*databaseCopy, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// The lock fails if a running appliance has locked the file. Closing the file releases the lock.
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s is in use, but no appliance has a socket for it; does one still start or end, or does perch backup or perch restore run? (ps -C perch)", path)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	dir, err := os.MkdirTemp("", "perch-doctor-*")
	if err != nil {
		return nil, fmt.Errorf("copy the database to examine it: %w", err)
	}
	c := &databaseCopy{dir: dir}
	target := filepath.Join(dir, filepath.Base(path))
	to, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = io.Copy(to, file)
		err = errors.Join(err, to.Close())
	}
	aside, _ := filepath.Glob(path + ".damaged-*")
	for _, name := range aside { // the store reports an earlier damage only while the file that was put aside is in the folder of the database
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, filepath.Base(name)), nil, 0o600))
	}
	if err == nil {
		o := datadir.StoreOptions(slog.New(slog.DiscardHandler))
		o.Salvage, o.Expect = true, expectRecords
		c.DB, err = store.Open(target, o)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, errors.New(strings.ReplaceAll(err.Error(), target, path))
	}
	return c, nil
}
