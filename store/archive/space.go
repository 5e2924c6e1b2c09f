package archive

import (
	"errors"
	"fmt"
	"net/http"
	"syscall"

	"perch/store"
)

// diskFault shows a disk that is full, and leaves any other error as it is.
func diskFault(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return store.NewShown("disk_full", http.StatusInsufficientStorage, "the disk of the appliance has no room for it; free some space")
	}
	return err
}

// spareRoom stays free whatever a restore needs, in bytes.
const spareRoom = 16 << 20

// hasRoom reports whether so many bytes fit on the disk of a directory, and
// something besides.
func hasRoom(dir string, need int64) error {
	free, err := store.FreeSpace(dir)
	if err != nil {
		return err
	}
	if free < need+spareRoom {
		return store.NewShown("disk_full", http.StatusInsufficientStorage,
			fmt.Sprintf("the disk of the appliance has %d MB left, and %d are needed; free some space", free>>20, (need+spareRoom)>>20))
	}
	return nil
}
