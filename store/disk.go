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
