package main

import (
	"log/slog"

	"perch/store"
	"perch/store/archive"
)

// migrations are all that ever changed the shape of what is kept, the oldest
// first; there are only ever more. Whoever adds one makes a fixture of what it
// leads to: see TestEverySchemaIsRead.
func migrations() []store.Migration { return nil }

// storeOptions are how the database is opened, to be used or to be looked at.
func storeOptions(log *slog.Logger) store.Options {
	return store.Options{Migrations: migrations(), Log: log}
}

// directoryAt is a data directory, to be backed up or restored.
func directoryAt(data, version string, log *slog.Logger) archive.Directory {
	return archive.Directory{Path: data, Perch: version, Migrations: migrations(), Log: log}
}
