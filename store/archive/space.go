package archive

import (
	"errors"
	"fmt"
	"net/http"
	"syscall"

	"perch/store"
)

// diskFault converts the error of a full disk or an exhausted quota to one for clients of the API. It
// returns other errors unchanged.
func diskFault(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return store.NewShown("disk_full", http.StatusInsufficientStorage, "the disk of the appliance, or its quota, is full; free some space")
	}
	return err
}

// spareSpace is the number of bytes that must stay free after a restore.
const spareSpace = 16 << 20

// checkSpace returns an error unless need+spareSpace bytes are free on the disk of the directory dir.
func checkSpace(dir string, need int64) error {
	free, err := store.FreeSpace(dir)
	if err != nil {
		return err
	}
	if free < need+spareSpace {
		return store.NewShown("disk_full", http.StatusInsufficientStorage,
			fmt.Sprintf("the disk of the appliance has %d MB left, and %d are needed; free some space", free>>20, (need+spareSpace)>>20))
	}
	return nil
}
