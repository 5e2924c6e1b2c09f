// Package machine watches what the appliance stands on: a disk that may be full, a database
// that may be damaged, and a clock that may be wrong, for a Raspberry Pi has no battery for it.
package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"perch/gateway/owner/admin"
	"perch/health"
	"perch/store"
)

// minFree is the room that a database and its backups should have, in bytes.
const minFree = 100 << 20

// CheckRoom returns an error where too little of the disk of a directory is free.
func CheckRoom(free int64, dir string) error {
	if free >= minFree {
		return nil
	}
	return fmt.Errorf(
		"%d MB are free for %s, and %d are needed; make room: remove firmware images that are not needed any more, or files of other programs",
		free>>20, dir, minFree>>20)
}

// Conditions returns those of the database, of the disk that it is on, and of the clock.
func Conditions(db *store.DB, data string, built time.Time) []health.Part {
	return []health.Part{databaseCondition(db, data), diskCondition(data, db.Err()), clockCondition(time.Now(), built)}
}

// databaseCondition returns the condition of the database. If it cannot be read nothing works; salvaged
// damage is shown until the damaged file is removed. It is public, so it contains neither keys of records
// nor paths.
func databaseCondition(db *store.DB, data string) health.Part {
	readable, refused := db.Readable(), db.Refused()
	fault := readable
	if readable == nil { // else that is the cause of it
		fault = db.Err()
	}
	var notes []string
	for _, err := range []error{fault, refused} {
		if err != nil {
			notes = append(notes, err.Error())
		}
	}
	salvaged := db.Salvaged()
	if salvaged != nil {
		notes = append(notes, salvaged.Brief())
	}
	working := readable == nil && refused == nil && salvaged == nil
	part := health.Part{Name: "store", OK: working, Vital: working || readable != nil}
	return part.Saying(strings.ReplaceAll(strings.Join(notes, "; "), filepath.Clean(data)+string(filepath.Separator), ""))
}

// diskCondition says whether there is room, and the error of the last write.
func diskCondition(data string, written error) health.Part {
	free, err := store.FreeSpace(data)
	if err == nil {
		err = CheckRoom(free, data)
	}
	if err == nil && written != nil {
		err = fmt.Errorf("nothing can be kept: %w", written)
	}
	return health.Of("disk", err, fmt.Sprintf("%d MB free", free>>20))
}

// Counters returns what the database counts.
func Counters(db *store.DB) []admin.Counter {
	return []admin.Counter{{Name: "perch_store_commits_total", Help: "Writes of the database that reached the disk.", Count: db.Commits}}
}

// Gauges returns the sizes of the database and of the room that is left, which are read on
// request.
func Gauges(db *store.DB, data string) []admin.Gauge {
	return []admin.Gauge{
		{Name: "perch_store_bytes", Help: "Size of the database's file.", Read: func() float64 {
			info, err := os.Stat(db.Path())
			if err != nil {
				return 0
			}
			return float64(info.Size())
		}},
		{Name: "perch_store_failing", Help: "1 while the last write of the database has failed, or it cannot be read.",
			Read: func() float64 { return admin.Truth(db.Err() != nil || db.Readable() != nil) }},
		{Name: "perch_disk_free_bytes", Help: "Room that is left where the data is.", Read: func() float64 {
			free, err := store.FreeSpace(data)
			if err != nil {
				return 0
			}
			return float64(free)
		}},
	}
}

// BuiltAt returns when this program was built: the linker's text, or else when its source was
// committed. A correct clock cannot show an earlier time.
func BuiltAt(text string) time.Time {
	if text == "" {
		if info, ok := debug.ReadBuildInfo(); ok { // takes some milliseconds
			for _, s := range info.Settings {
				if s.Key == "vcs.time" {
					text = s.Value
				}
			}
		}
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at
	}
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // it is not older
}

// Earliest returns the earliest time that a correct clock can show: the program may have been
// built in another time zone, and clocks are a little slow.
func Earliest(built time.Time) time.Time { return built.Add(-24 * time.Hour) }

// CheckClock returns an error where the clock is wrong: the clock of a Pi stops without
// power, and starts at some time of the past until a time server sets it.
func CheckClock(now, built time.Time) error {
	if !now.Before(Earliest(built)) {
		return nil
	}
	return fmt.Errorf("it says %s, and this program was built on %s: it has not been set since the machine was switched on. "+
		"Connect the machine to a network with a time server (timedatectl says whether it has found one), or set it by hand",
		now.Format(time.DateTime), built.Format(time.DateOnly))
}

func clockCondition(now, built time.Time) health.Part {
	return health.Of("clock", CheckClock(now, built), now.Format("2006-01-02 15:04 MST"))
}
