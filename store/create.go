package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// temporary is the suffix of a file being created.
const temporary = ".new"

// locate makes the directory of path and follows a link at path, so that the file is later replaced and not the link.
func locate(path string) (string, error) {
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
		// A dangling link is a disk that is not mounted, not a first start.
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return "", fail(ErrUnusable, err, fmt.Errorf("%s is a link to a place that is not there (%w); "+
				"mount the disk it points to, or remove the link", path, reason(err)))
		}
		return locate(target)
	case !info.Mode().IsRegular():
		return "", fail(ErrUnusable, nil, fmt.Errorf("%s is not a file; move it away or choose another data directory", path))
	}
	return path, nil
}

// initialise creates the file at path unless a file with data may be there. The new file is built and synced under a
// temporary name and then renamed, so that a power cut leaves it complete or absent.
func initialise(path string, o Options) error {
	if present(path) && !Exists(path+temporary) {
		return nil
	}
	// No other process may create the same file, or remove ours as a leftover.
	dir, err := openLocked(filepath.Dir(path), os.O_RDONLY, o.Timeout)
	if err != nil {
		return err
	}
	defer dir.Close()
	// Under the lock a temporary file belongs to no running process; it was left by a power cut.
	if err := os.RemoveAll(path + temporary); err != nil {
		return unusable(path+temporary, err)
	}
	if present(path) {
		return nil
	}
	if o.Expect && !Exists(path) {
		return Missing(path)
	}
	return create(path, dir, o)
}

// present reports whether path is too large to be a file whose first initialisation did not finish. Larger files are
// never replaced; smaller ones only after create has checked their content.
func present(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 4*pageSize
}

func create(path string, dir *os.File, o Options) error {
	fresh := path + temporary
	defer os.Remove(fresh)
	f, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return unusable(filepath.Dir(path), err)
	}
	_ = f.Close()
	bolt, file, err := openBolt(fresh, o.Timeout)
	if err != nil {
		return err
	}
	defer bolt.Close()
	if !neverUsed(path, fresh) {
		return nil // examine will report what is wrong with it
	}
	if o.Expect {
		return Missing(path)
	}
	if _, err := prepare(bolt, file, o); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return unusable(fresh, err)
	}
	if err := os.Rename(fresh, path); err != nil {
		return unusable(path, err)
	}
	return syncDirectories(dir)
}

// neverUsed reports whether path never held data: it is missing, or every byte that reached the disk matches the empty
// database in pristine. The pages of a database in use differ from that in their first 80 bytes.
func neverUsed(path, pristine string) bool {
	got, err := os.ReadFile(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	want, err := os.ReadFile(pristine)
	if err != nil || len(got) > len(want) {
		return false
	}
	for sector := range slices.Chunk(got, 512) { // a disk writes these whole or not at all
		if !bytes.Equal(sector, want[:len(sector)]) && !bytes.Equal(sector, make([]byte, len(sector))) {
			return false
		}
		want = want[len(sector):]
	}
	return true
}

// syncDirectories syncs the new name, and its directory's, which may be new as well.
func syncDirectories(dir *os.File) error {
	if err := SyncDirectory(dir.Name()); err != nil {
		return unusable(dir.Name(), err)
	}
	_ = SyncDirectory(filepath.Dir(dir.Name())) // may belong to someone else; then it is older
	return nil
}
