package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// FreeSpace returns the free bytes on the disk of a directory that exists or will exist.
func FreeSpace(dir string) (int64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(Nearest(dir), &fs); err != nil {
		return 0, fmt.Errorf("see how much room is left: %w", err)
	}
	return int64(fs.Bavail) * int64(fs.Bsize), nil
}

// Nearest returns a directory, or its nearest ancestor that exists.
func Nearest(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// Exists reports whether path exists.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// SyncDirectory syncs the names in a directory.
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

// WriteFile writes a file that only its owner can read. The file is complete or unchanged,
// even after a power cut: it is written under another name, synced and renamed. If written
// by root, it belongs to the owner of its directory. RemoveUnfinished removes leftovers.
func WriteFile(path string, text []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, unfinished(path)) // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if info, failed := os.Stat(dir); failed == nil && os.Getuid() == 0 && err == nil {
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

// RemoveUnfinished removes what a power cut left of WriteFile.
func RemoveUnfinished(path string) error {
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), unfinished(path)))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// unfinished returns the pattern of temporary names of a file.
func unfinished(path string) string { return filepath.Base(path) + ".*.tmp" }
