package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// FreeSpace returns the number of free bytes, without those reserved for root, on the disk of a directory. The directory
// need not exist yet.
func FreeSpace(dir string) (int64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(Nearest(dir), &fs); err != nil {
		return 0, fmt.Errorf("read the free space: %w", err)
	}
	return int64(fs.Bavail) * int64(fs.Bsize), nil
}

// Nearest returns dir if it exists, and otherwise its nearest ancestor that exists.
func Nearest(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// Exists reports whether path exists. A symbolic link exists even if its target does not.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// SyncDirectory syncs a directory, which makes created, renamed and removed names in it durable.
func SyncDirectory(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) { // not supported by this file system
		err = nil
	}
	return errors.Join(err, dir.Close())
}

// WriteFile writes a file that only its owner can read. After a power failure the file is complete or
// unchanged, because it is written under another name, synced and renamed. If the process runs as
// root, the file is given to the owner of its directory. RemoveUnfinished removes leftovers.
func WriteFile(path string, text []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, unfinished(path)) // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if info, statErr := os.Stat(dir); statErr == nil && os.Getuid() == 0 && err == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok {
			err = f.Chown(int(owner.Uid), int(owner.Gid))
		}
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDirectory(dir)
}

// RemoveUnfinished removes the temporary files that WriteFile has left for path when a power failure interrupted it.
func RemoveUnfinished(path string) error {
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), unfinished(path)))
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// unfinished returns the pattern of WriteFile's temporary names for a file.
func unfinished(path string) string { return filepath.Base(path) + ".*.tmp" }
