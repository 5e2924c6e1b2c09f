// Package datadir manages the data directory of an appliance: its database, secrets, identity and
// backups.
package datadir

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"perch/cmd/perch/authority"
	"perch/ota"
	"perch/store"
	"perch/store/archive"
)

// Names of files in the data directory.
const (
	AdminTokenFile   = "admin-token"
	MQTTPasswordFile = "mqtt-password" // generated password of the embedded broker, used if none is configured

	tokenKeyFile = "token-key"
	diaryKeyFile = "diary-key"
	// sessionsFile holds the secret that signs the page's sessions. Backups leave it out, because
	// a restore must not bring ended sessions back.
	sessionsFile = "page-sessions"
)

// Secrets returns the names of all files that hold a secret.
func Secrets() []string {
	return append(authority.Files(), AdminTokenFile, MQTTPasswordFile, tokenKeyFile, diaryKeyFile, sessionsFile)
}

// Gestures returns the folder of the owner's gestures.
func Gestures(data string) string { return filepath.Join(data, "gestures") }

// Words returns the folder of the owner's lists of words for moods.
func Words(data string) string { return filepath.Join(data, "words") }

// Sounds returns the folder of the owner's sounds.
func Sounds(data string) string { return filepath.Join(data, "sounds") }

// Migrations returns all changes of the database's schema, oldest first; the list is still empty. Migrations
// are only ever appended. A new one needs a fixture of its result: see TestEverySchemaIsRead.
func Migrations() []store.Migration { return nil }

// StoreOptions returns the options with which every command opens the database.
func StoreOptions(log *slog.Logger) store.Options {
	return store.Options{Migrations: Migrations(), Log: log}
}

// Firmware describes the folder of firmware files, for backups.
func Firmware() archive.Folder {
	return archive.Folder{Name: "firmware", Below: []string{ota.AssetsFolder}, Allowed: ota.AllowedFile, Table: "firmware", FileOf: ota.ImageFile}
}

// Archive describes a data directory for backups and restores. version is the version of this
// program.
func Archive(data, version string, log *slog.Logger) archive.Directory {
	return archive.Directory{Path: data, Perch: version, Migrations: Migrations(), Folder: Firmware(), Outdated: []string{sessionsFile}, Log: log}
}

// Prepare creates the directory if it is missing, and finishes a staged restore.
func Prepare(d archive.Directory) error {
	if err := os.MkdirAll(d.Path, 0o750); err != nil {
		return fmt.Errorf("create the data directory: %w; choose another one with --data", err)
	}
	return d.FinishRestore()
}

// OpenDatabase opens the database, and creates it if it does not exist. Of a damaged database it keeps
// the records that can be read. If the database is missing although the directory has traces of an
// earlier one, the error wraps store.ErrMissing, unless create is true.
func OpenDatabase(data string, create bool, log *slog.Logger) (*store.DB, error) {
	o := StoreOptions(log)
	traces := Traces(data)
	o.Salvage, o.Expect = true, len(traces) > 0 && !create
	db, err := store.Open(archive.DatabasePath(data), o)
	return db, ExplainMissing(data, traces, err)
}

// ExplainMissing adds traces, a result of Traces, to an error that wraps store.ErrMissing. It
// returns other errors unchanged.
func ExplainMissing(data string, traces []string, err error) error {
	if !errors.Is(err, store.ErrMissing) {
		return err
	}
	return fmt.Errorf("%s has %s, but %w", data, strings.Join(traces, ", "), err)
}

// Traces describes the files that an earlier run left in the directory: the names of three files of secrets,
// and the number of firmware files. The first start creates the database before these files, so if they exist
// without a database, the database was lost.
func Traces(data string) (traces []string) {
	for _, name := range []string{tokenKeyFile, AdminTokenFile, MQTTPasswordFile} {
		if _, err := os.Lstat(filepath.Join(data, name)); err == nil {
			traces = append(traces, name)
		}
	}
	if files := (archive.Directory{Path: data, Folder: Firmware()}).FolderFiles(); files > 0 {
		traces = append(traces, fmt.Sprintf("%d files of firmware", files))
	}
	return traces
}
