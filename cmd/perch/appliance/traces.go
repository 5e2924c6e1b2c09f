package appliance

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"perch/store"
	"perch/store/archive"
)

// openDatabase opens the database, and salvages a damaged one. An empty one is
// made where there are no traces of another, or on the owner's demand.
func openDatabase(data string, begin bool, log *slog.Logger) (*store.DB, error) {
	o := StoreOptions(log)
	left := Traces(data)
	o.Salvage, o.Expect = true, len(left) > 0 && !begin
	db, err := store.Open(archive.DatabasePath(data), o)
	return db, WhyMissing(data, left, err)
}

// WhyMissing adds to the error of a database that is missing why it should be
// there.
func WhyMissing(data string, left []string, err error) error {
	if !errors.Is(err, store.ErrMissing) {
		return err
	}
	return fmt.Errorf("%s has %s, but %w", data, strings.Join(left, ", "), err)
}

// Traces are what shows that an appliance has been here: its secrets and the
// files of its firmware. A first start makes the database before all of them.
func Traces(data string) (left []string) {
	for _, name := range []string{"token-key", "admin-token", MQTTPasswordFile} {
		if _, err := os.Lstat(filepath.Join(data, name)); err == nil {
			left = append(left, name)
		}
	}
	if files := archive.FirmwareFiles(data); files > 0 {
		left = append(left, fmt.Sprintf("%d files of firmware", files))
	}
	return left
}
