package appliance

import (
	"log/slog"

	"perch/store"
	"perch/store/archive"
)

// Migrations are all that ever changed the shape of what is kept, the oldest
// first; there are only ever more. A new one needs a fixture of its result:
// see TestEverySchemaIsRead.
func Migrations() []store.Migration { return nil }

// StoreOptions are how the database is opened, to be used or to be looked at.
func StoreOptions(log *slog.Logger) store.Options {
	return store.Options{Migrations: Migrations(), Log: log}
}

// Directory is a data directory, to be backed up or restored.
func Directory(data, version string, log *slog.Logger) archive.Directory {
	return archive.Directory{Path: data, Perch: version, Migrations: Migrations(), Outdated: []string{sessionsFile}, Log: log}
}
