// Package machine watches the disk, the database and the clock. The clock of a Raspberry Pi has no
// battery, so it is wrong until a time server sets it.
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

// minFree is how many bytes should be free for the database and its backups.
const minFree = 100 << 20

// CheckRoom returns an error if free, the number of free bytes on the disk of dir, is too small.
func CheckRoom(free int64, dir string) error {
	if free >= minFree {
		return nil
	}
	return fmt.Errorf(
		"%d MB are free for %s, and %d are needed; make room: remove firmware images that are not needed any more, or files of other programs",
		free>>20, dir, minFree>>20)
}

// Conditions returns the conditions of the database, of its disk and of the clock. built is when
// this program was built.
func Conditions(db *store.DB, data string, built time.Time) []health.Part {
	return []health.Part{databaseCondition(db, data), diskCondition(data, db.Err()), clockCondition(time.Now(), built)}
}

// databaseCondition returns the condition of the database. Values that could not be stored, and
// damage that was salvaged, do not make the part vital, because the appliance continues to work.
// Salvaged damage is shown until the damaged file is removed. Everybody may read the condition, so it
// contains no keys of records and no paths of the data directory.
func databaseCondition(db *store.DB, data string) health.Part {
	readable, refused := db.Readable(), db.Refused()
	fault := readable
	if readable == nil { // an unreadable database also fails to write
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

// diskCondition returns the condition of the disk: its free space, or an error if there is too little
// or if writeErr, the error of the database's last write, is not nil.
func diskCondition(data string, writeErr error) health.Part {
	free, err := store.FreeSpace(data)
	if err == nil {
		err = CheckRoom(free, data)
	}
	if err == nil && writeErr != nil {
		err = fmt.Errorf("nothing can be stored: %w", writeErr)
	}
	return health.Of("disk", err, fmt.Sprintf("%d MB free", free>>20))
}

// Counters returns the counters of the database.
func Counters(db *store.DB) []admin.Counter {
	return []admin.Counter{{Name: "perch_store_commits_total", Help: "Writes of the database that reached the disk.", Count: db.Commits}}
}

// Gauges returns the gauges of the database and its disk. Their values are read on request.
func Gauges(db *store.DB, data string) []admin.Gauge {
	return []admin.Gauge{
		{Name: "perch_store_bytes", Help: "Size of the database's file.", Read: func() float64 {
			info, err := os.Stat(db.Path())
			if err != nil {
				return 0
			}
			return float64(info.Size())
		}},
		{Name: "perch_store_failing", Help: "1 if the last write of the database failed or the database cannot be read.",
			Read: func() float64 { return admin.BoolValue(db.Err() != nil || db.Readable() != nil) }},
		{Name: "perch_disk_free_bytes", Help: "Free bytes on the disk of the data directory.", Read: func() float64 {
			free, err := store.FreeSpace(data)
			if err != nil {
				return 0
			}
			return float64(free)
		}},
	}
}

// BuiltAt returns when this program was built: text, which the linker sets (RFC 3339), or the time
// of the source's commit if text is empty. If neither is known, it returns the beginning of 2026.
func BuiltAt(text string) time.Time {
	if text == "" {
		if info, ok := debug.ReadBuildInfo(); ok { // takes milliseconds, so it is called only if text is empty
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
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // no build is older
}

// Earliest returns the earliest time that a correct clock can show. It is a day before the build,
// to allow for time zones and slow clocks.
func Earliest(built time.Time) time.Time { return built.Add(-24 * time.Hour) }

// CheckClock returns an error if now is before Earliest: the clock of a Pi shows a past time until a
// time server sets it.
func CheckClock(now, built time.Time) error {
	if !now.Before(Earliest(built)) {
		return nil
	}
	return fmt.Errorf("the clock shows %s, but this program was built on %s: the clock was not set since the machine was switched on. "+
		"Connect the machine to a network with a time server (timedatectl shows whether it has found one), or set the clock by hand",
		now.Format(time.DateTime), built.Format(time.DateOnly))
}

func clockCondition(now, built time.Time) health.Part {
	return health.Of("clock", CheckClock(now, built), now.Format("2006-01-02 15:04 MST"))
}
