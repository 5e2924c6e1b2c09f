package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/bbolt"
)

// temporary is the suffix of a database file that is being created.
const temporary = ".new"

// resolve creates the directory of path and returns the path of the file after following links: the file may be replaced
// later, and that must not replace a link. The file need not exist.
func resolve(path string) (string, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", unusable(dir, err)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, nil
	case err != nil:
		return "", unusable(path, err)
	case info.Mode()&fs.ModeSymlink != 0:
		// A dangling link means that a disk is not mounted, not that this is the first start.
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", newFailure(ErrUnusable, err, fmt.Errorf("%s is a link to a place that does not exist (%w); "+
				"mount the disk that it points to, or remove the link", path, reason(err)))
		}
		return resolve(target)
	case !info.Mode().IsRegular():
		return "", newFailure(ErrUnusable, nil, fmt.Errorf("%s is not a file; move it away or choose another data directory", path))
	}
	return path, nil
}

// initialise creates an empty database at path, unless the file at path may hold data. The new file is built and synced
// under a temporary name and then renamed: after a power failure it is complete or missing. If o.Expect is set, initialise
// returns the error of Missing instead of creating the database. It also removes a leftover of an earlier attempt.
func initialise(path string, o Options) error {
	if mayHoldData(path) && !Exists(path+temporary) {
		return nil
	}
	// The lock keeps other processes from creating the same file, or from removing the temporary file as a leftover.
	dir, err := openLocked(filepath.Dir(path), os.O_RDONLY, o.Timeout)
	if err != nil {
		return err
	}
	defer dir.Close()
	// While the lock is held, no other process uses a temporary file, so an existing one is a leftover of a power failure.
	if err := os.RemoveAll(path + temporary); err != nil {
		return unusable(path+temporary, err)
	}
	if mayHoldData(path) {
		return nil
	}
	if o.Expect && !Exists(path) {
		return Missing(path)
	}
	return create(path, dir, o)
}

// mayHoldData reports whether the file at path is too large to be an empty database. Such a file is never replaced; a
// smaller file is replaced only after create has checked its content.
func mayHoldData(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 4*pageSize
}

// create creates an empty database at path, or returns the error of Missing if o.Expect is set. If the file at path ever
// held data, create does nothing and returns nil.
func create(path string, dir *os.File, o Options) error {
	fresh := path + temporary
	defer os.Remove(fresh)
	to, err := buildFile(fresh, o, func(*bbolt.DB) error { return nil })
	if err != nil {
		return err
	}
	defer to.bolt.Close()
	if !neverUsed(path, fresh) {
		return nil // examine checks the file later
	}
	if o.Expect {
		return Missing(path)
	}
	if _, err := prepare(to.bolt, to.file, o); err != nil {
		return err
	}
	if err := os.Rename(fresh, path); err != nil {
		return unusable(path, err)
	}
	return syncDirectories(dir)
}

// neverUsed reports whether the file at path never held data: the file is missing, or each of its sectors consists of zeros
// or equals the same sector of the file pristine, an empty database. A database in use differs from pristine in the first
// 80 bytes of a page: the page header (16 bytes) and the meta record (64 bytes).
func neverUsed(path, pristine string) bool {
	got, err := os.ReadFile(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	want, err := os.ReadFile(pristine)
	if err != nil || len(got) > len(want) {
		return false
	}
	for sector := range slices.Chunk(got, 512) { // a disk writes each sector completely or not at all
		if !bytes.Equal(sector, want[:len(sector)]) && !bytes.Equal(sector, make([]byte, len(sector))) {
			return false
		}
		want = want[len(sector):]
	}
	return true
}

// syncDirectories syncs a directory with a new name in it, and the parent directory, since the directory may be new, too.
func syncDirectories(dir *os.File) error {
	if err := SyncDirectory(dir.Name()); err != nil {
		return unusable(dir.Name(), err)
	}
	_ = SyncDirectory(filepath.Dir(dir.Name())) // fails if the parent belongs to another user, but then dir is not new
	return nil
}
