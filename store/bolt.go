package store

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"perch/store/salvage"
)

// pageSize is fixed, not the machine's: a Pi 5 kernel has pages of 16 KiB, and a backup must move to a Pi 4 and back.
const pageSize = salvage.PageSize

// openBolt opens an existing file and locks it. If the file was replaced while waiting for the lock, the new one is
// opened: a file without a name could not be found again.
func openBolt(path string, timeout time.Duration) (*bbolt.DB, *os.File, error) {
	for {
		bolt, file, err := openWith(path, timeout, false, func(name string, flag int, mode os.FileMode) (*os.File, error) {
			// Only initialise creates files: bolt's way of creating one does not survive a power cut.
			return os.OpenFile(name, flag&^os.O_CREATE, mode)
		})
		if err != nil {
			return nil, nil, err
		}
		named, err := os.Stat(path)
		opened, err2 := file.Stat()
		if err == nil && err2 == nil && os.SameFile(named, opened) {
			return bolt, file, nil
		}
		if err := errors.Join(err, err2, bolt.Close()); err != nil {
			return nil, nil, unusable(path, err)
		}
	}
}

// openWith opens a bolt file with open. Every commit is synced. The free list is written with each commit: without it,
// opening reads the whole file, and commits are few. It is a map, because the array is slow for a fragmented file. The
// memory map starts at 32 KiB and doubles; a larger one would enlarge the file. Statistics are on for the number of
// free pages.
func openWith(path string, timeout time.Duration, readOnly bool, open func(string, int, os.FileMode) (*os.File, error)) (*bbolt.DB, *os.File, error) {
	var file *os.File
	options := &bbolt.Options{
		Timeout:      timeout,
		FreelistType: bbolt.FreelistMapType,
		PageSize:     pageSize,
		ReadOnly:     readOnly,
		OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
			file, err = open(name, flag, mode)
			return file, err
		},
	}
	var bolt *bbolt.DB
	err := guarded(func() (err error) {
		bolt, err = bbolt.Open(path, 0o600, options)
		return err
	})
	if err != nil {
		if errors.Is(err, errPanic) {
			_ = release(nil, file, true)
		}
		return nil, nil, openError(path, err)
	}
	return bolt, file, nil
}

// makePrivate removes other users' access, which a copied file may have.
func makePrivate(file *os.File, log *slog.Logger) {
	info, err := file.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = file.Chmod(0o600)
	}
	if err != nil {
		log.Warn("database can be read by others", "path", file.Name(), "err", err)
	}
}
