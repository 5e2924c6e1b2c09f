package archive

import (
	"errors"
	"fmt"
	"net/http"
	"syscall"

	"perch/store"
)

// diskFault converts the error of a full disk, and returns others unchanged.
func diskFault(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return store.NewShown("disk_full", http.StatusInsufficientStorage, "the disk of the appliance has no room for it; free some space")
	}
	return err
}

// spareRoom stays free after a restore, in bytes.
const spareRoom = 16 << 20

// hasRoom returns an error unless the disk of dir has room for need bytes and spareRoom.
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
