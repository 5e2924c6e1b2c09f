package appliance

import (
	"fmt"
	"runtime/debug"
	"time"

	"perch/gateway/admin"
	"perch/store"
)

// leastFree is the room a database and its backups should have.
const leastFree = 100 << 20

// RoomFault is an error where too little of the disk is free.
func RoomFault(free int64, dir string) error {
	if free >= leastFree {
		return nil
	}
	return fmt.Errorf(
		"%d MB are free for %s, and %d are needed; make room: remove firmware images that are not needed any more, or files of other programs",
		free>>20, dir, leastFree>>20)
}

// diskPart is whether there is room, and what the last write failed with.
func diskPart(data string, written error) admin.Part {
	free, err := store.FreeSpace(data)
	if err == nil {
		err = RoomFault(free, data)
	}
	part := admin.Part{Name: "disk", OK: err == nil && written == nil}
	switch {
	case err != nil:
		return part.Saying(err.Error())
	case written != nil:
		return part.Saying(fmt.Sprintf("nothing can be kept: %v", written))
	}
	return part.Saying(fmt.Sprintf("%d MB free", free>>20))
}

// BuiltAt is when this program was built: in the linker's text, else when its source was
// committed. A correct clock cannot show an earlier time.
func BuiltAt(text string) time.Time {
	if text == "" {
		text = committedAt()
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at
	}
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // it is not older
}

// committedAt is when the source was committed; empty where the program does not know. To
// find that out takes some milliseconds.
func committedAt() (at string) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.time" {
				at = s.Value
			}
		}
	}
	return at
}

// earliest is the earliest time that a correct clock can show: the program may
// have been built in another time zone, and clocks are a little slow.
func earliest(built time.Time) time.Time { return built.Add(-24 * time.Hour) }

// ClockFault is an error where the clock is wrong: the clock of a Pi stops without
// power, and starts at some time of the past until a time server sets it.
func ClockFault(now, built time.Time) error {
	if !now.Before(earliest(built)) {
		return nil
	}
	return fmt.Errorf("it says %s, and this program was built on %s: it has not been set since the machine was switched on. "+
		"Connect the machine to a network with a time server (timedatectl says whether it has found one), or set it by hand",
		now.Format(time.DateTime), built.Format(time.DateOnly))
}

func clockPart(now, built time.Time) admin.Part {
	err := ClockFault(now, built)
	part := admin.Part{Name: "clock", OK: err == nil}
	if err != nil {
		return part.Saying(err.Error())
	}
	return part.Saying(now.Format("2006-01-02 15:04 MST"))
}
