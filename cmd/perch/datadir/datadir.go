// Package datadir is the data directory of an appliance: its database, its secrets, what tells
// it from others, and its backups.
package datadir

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"perch/ota"
	"perch/store"
	"perch/store/archive"
)

// Names of files in the data directory.
const (
	AdminTokenFile   = "admin-token"
	MQTTPasswordFile = "mqtt-password" // of the embedded broker, where its owner has chosen none

	tokenKeyFile = "token-key"
	diaryKeyFile = "diary-key"
	// sessionsFile holds the secret of the page's sessions. It is no part of a backup, so that
	// no restore brings ended sessions back.
	sessionsFile = "page-sessions"
)

// Gestures returns the folder of the owner's gestures.
func Gestures(data string) string { return filepath.Join(data, "gestures") }

// Words returns the folder of the owner's lists of words for moods.
func Words(data string) string { return filepath.Join(data, "words") }

// Sounds returns the folder of the owner's sounds.
func Sounds(data string) string { return filepath.Join(data, "sounds") }

// Migrations are all changes of the shape of what is stored, the oldest first; there are only
// ever more. A new one needs a fixture of its result: see TestEverySchemaIsRead.
func Migrations() []store.Migration { return nil }

// StoreOptions are how the database is opened, to be used or to be looked at.
func StoreOptions(log *slog.Logger) store.Options {
	return store.Options{Migrations: Migrations(), Log: log}
}

// Firmware is the folder with the files of firmware, as backups hold it.
func Firmware() archive.Folder {
	return archive.Folder{Name: "firmware", Below: []string{ota.AssetsFolder}, Allowed: ota.AllowedFile, Table: "firmware", FileOf: ota.ImageFile}
}

// Archive returns a data directory as it is backed up and restored by this program of a version.
func Archive(data, version string, log *slog.Logger) archive.Directory {
	return archive.Directory{Path: data, Perch: version, Migrations: Migrations(), Folder: Firmware(), Outdated: []string{sessionsFile}, Log: log}
}

// Prepare makes the directory if it is missing, and finishes a restore that is staged there.
func Prepare(d archive.Directory) error {
	if err := os.MkdirAll(d.Path, 0o750); err != nil {
		return fmt.Errorf("the data directory cannot be made: %w; name another with --data", err)
	}
	return d.Finish()
}

// OpenDatabase opens the database, and salvages a damaged one. It makes an empty one where there
// are no traces of another, or begin is set.
func OpenDatabase(data string, begin bool, log *slog.Logger) (*store.DB, error) {
	o := StoreOptions(log)
	left := Traces(data)
	o.Salvage, o.Expect = true, len(left) > 0 && !begin
	db, err := store.Open(archive.DatabasePath(data), o)
	return db, ExplainMissing(data, left, err)
}

// ExplainMissing adds to the error of a missing database why it should be there.
func ExplainMissing(data string, left []string, err error) error {
	if !errors.Is(err, store.ErrMissing) {
		return err
	}
	return fmt.Errorf("%s has %s, but %w", data, strings.Join(left, ", "), err)
}

// Traces returns what shows that an appliance has used the directory: its secrets and the files
// of its firmware. A first start makes the database before all of them.
func Traces(data string) (left []string) {
	for _, name := range []string{tokenKeyFile, AdminTokenFile, MQTTPasswordFile} {
		if _, err := os.Lstat(filepath.Join(data, name)); err == nil {
			left = append(left, name)
		}
	}
	if files := (archive.Directory{Path: data, Folder: Firmware()}).FolderFiles(); files > 0 {
		left = append(left, fmt.Sprintf("%d files of firmware", files))
	}
	return left
}
