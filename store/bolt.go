package store

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// pageSize is fixed, not the machine's: a Pi 5 kernel has pages of 16 KiB, and a backup must move to a Pi 4 and back.
const pageSize = 4096

// openBolt opens an existing file and takes its lock. Every commit is synced (never NoSync). The free list is written
// with each commit although it need not be: without it, opening reads the whole file, and our commits are few. It is
// kept as a map, because the array is slow once a file is fragmented. The memory map starts at 32 KiB and doubles; a
// larger one would make the file larger, too.
func openBolt(path string, timeout time.Duration) (*bbolt.DB, *os.File, error) {
	var file *os.File
	options := &bbolt.Options{
		Timeout:      timeout,
		FreelistType: bbolt.FreelistMapType,
		PageSize:     pageSize,
		NoStatistics: true,
		OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
			// Only initialise makes files: bolt's own way of making one does not survive a power cut.
			file, err = os.OpenFile(name, flag&^os.O_CREATE, mode)
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

// makePrivate takes from others what a copied file may have given them.
func makePrivate(file *os.File, log *slog.Logger) {
	info, err := file.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = file.Chmod(0o600)
	}
	if err != nil {
		log.Warn("database can be read by others", "path", file.Name(), "err", err)
	}
}
