package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// FreeSpace is the number of bytes that are free where a directory is, or will be.
func FreeSpace(dir string) (int64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(Nearest(dir), &fs); err != nil {
		return 0, fmt.Errorf("see how much room is left: %w", err)
	}
	return int64(fs.Bavail) * int64(fs.Bsize), nil
}

// Nearest is a directory, or the nearest one above it that exists.
func Nearest(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// Exists reports whether something has this path.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// SyncDirectory makes the names in a directory last.
func SyncDirectory(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) { // this file system has no such thing
		err = nil
	}
	return errors.Join(err, dir.Close())
}

// WriteFile writes a file that only its owner can read, and that is there whole or not at all,
// also after a power cut: it is written under another name, synced and renamed. Written by root,
// it belongs to the owner of its directory. RemoveUnfinished removes what a power cut leaves.
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

// RemoveUnfinished removes what a power cut has left of a file that was being written.
func RemoveUnfinished(path string) error {
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), unfinished(path)))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// unfinished is the pattern of names that a file has until it is whole.
func unfinished(path string) string { return filepath.Base(path) + ".*.tmp" }
