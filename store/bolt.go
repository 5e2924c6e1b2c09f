package store

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"perch/store/salvage"
)

// pageSize is the page size of the file in bytes. It is not the machine's page size, because a backup must be usable on
// every machine: the kernel of a Pi 5 has pages of 16 KiB, the kernel of a Pi 4 pages of 4 KiB.
const pageSize = salvage.PageSize

// openBolt opens an existing file and locks it. If the file is replaced while openBolt waits for the lock, openBolt opens
// the new file, because data written to the old file would be lost.
func openBolt(path string, timeout time.Duration) (*bbolt.DB, *os.File, error) {
	for {
		bolt, file, err := openWith(path, timeout, false, func(name string, flag int, mode os.FileMode) (*os.File, error) {
			// Only buildFile creates files: a file that bolt creates may be incomplete after a power failure.
			return os.OpenFile(name, flag&^os.O_CREATE, mode)
		})
		if err != nil {
			return nil, nil, err
		}
		byPath, err := os.Stat(path)
		byFile, err2 := file.Stat()
		if err == nil && err2 == nil && os.SameFile(byPath, byFile) {
			return bolt, file, nil
		}
		if err := errors.Join(err, err2, bolt.Close()); err != nil {
			return nil, nil, unusable(path, err)
		}
	}
}

// openWith opens the file that the function open returns as a bolt file. It relies on some of bolt's defaults. Every commit
// writes the list of free pages, because commits are rare, and because without a stored list bolt reads the whole file when
// it opens the file. The initial size of the memory map is not set, because a larger map enlarges the file. Statistics are
// on, because compact needs the number of free pages. The list of free pages in memory is a map, because an array is slow
// for a fragmented file.
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

// makePrivate removes the permissions of other users, which a file that was copied into place may have. It logs a failure.
func makePrivate(file *os.File, log *slog.Logger) {
	info, err := file.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = file.Chmod(0o600)
	}
	if err != nil {
		log.Warn("the database could not be made private; other users may be able to read it", "path", file.Name(), "err", err)
	}
}
