package machine

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"perch/event"
	"perch/idlememory"
	"perch/remote"
	"perch/store"
)

const (
	watchEvery = 5 * time.Second
	// maxDrift is how far the wall clock may drift from the monotonic clock between two checks;
	// a larger difference means that the clock was set.
	maxDrift = 2 * time.Second
)

// Watch checks the disk and the clock until ctx ends, and logs each change once. It calls jumped
// with the size of each jump of the clock.
func Watch(ctx context.Context, db *store.DB, data string, jumped func(by time.Duration), log *slog.Logger) {
	disk := diskWatch{data: data, db: db, probe: store.NewTable[string](db, "appliance"), log: log}
	started := time.Now()
	clock := clockWatch{wall: started.Round(0)}
	for {
		disk.check()
		if by := clock.check(time.Now().Round(0), time.Since(started)); by != 0 {
			log.Warn("the clock was set; running timers are not affected", "by", by.Round(time.Second))
			jumped(by)
		}
		if remote.Sleep(ctx, watchEvery) != nil {
			return
		}
	}
}

// clockWatch compares the wall clock with the monotonic clock.
type clockWatch struct {
	wall    time.Time     // wall clock at the last check, without a monotonic reading
	elapsed time.Duration // monotonic time from the start of the watch to the last check
}

// check returns by how much the wall clock has jumped since the last check, or 0 if the difference
// is at most maxDrift.
func (s *clockWatch) check(wall time.Time, elapsed time.Duration) (by time.Duration) {
	by = wall.Sub(s.wall) - (elapsed - s.elapsed)
	s.wall, s.elapsed = wall, elapsed
	if by.Abs() <= maxDrift {
		return 0
	}
	return by
}

// diskWatch watches the disk of the data directory.
type diskWatch struct {
	data      string
	db        *store.DB
	probe     *store.Table[string]
	log       *slog.Logger
	refuses   bool // whether the last check found that writes fail
	fillingUp bool // whether the last check found too little free space
}

// check logs when the disk fills up, when writes begin to fail, and when they succeed again. While
// writes fail, it writes a probe: otherwise nothing might be written for hours, and nobody would
// notice that the disk works again.
func (d *diskWatch) check() {
	err := d.db.Err()
	if errors.Is(err, store.ErrDamaged) {
		return // the store has logged the damage, and free space does not help
	}
	if err != nil {
		if err = d.probe.Put(probeKey, strings.Repeat("x", probeBytes)); err == nil {
			err = d.probe.Delete(probeKey)
		}
	}
	free, spaceErr := store.FreeSpace(d.data)
	if spaceErr == nil {
		spaceErr = CheckRoom(free, d.data)
	}
	switch {
	case err != nil && !d.refuses:
		d.log.Error("writing to the disk fails; robots go on, but nothing new is stored", "data", d.data, "err", err)
	case err == nil && d.refuses:
		d.log.Info("writing to the disk works again", "data", d.data)
	case err == nil && spaceErr != nil && !d.fillingUp:
		d.log.Warn("the disk is almost full", "err", spaceErr)
	}
	d.refuses, d.fillingUp = err != nil, spaceErr != nil
}

// The probe fills several pages of the database: a few bytes could fit into a file that can no
// longer grow.
const (
	probeKey   = "tried"
	probeBytes = 16 << 10
)

// ReleaseMemory gives idle memory back to the kernel until ctx ends. It loads the memory again
// when a robot checks in or connects, before the robot needs it.
func ReleaseMemory(ctx context.Context, events *event.Reader, log *slog.Logger) {
	idlememory.Run(ctx, func(ctx context.Context) (urgent bool, err error) {
		e, err := events.Next(ctx)
		switch e.Event.(type) {
		case event.RobotSeen, event.RobotConnected:
			urgent = true
		}
		return urgent, err
	}, log)
}
