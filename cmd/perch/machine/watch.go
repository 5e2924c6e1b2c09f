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
	// maxDrift is how far the wall clock may run ahead of the monotonic one, or fall behind,
	// without having been set.
	maxDrift = 2 * time.Second
)

// Watch checks disk and clock until ctx ends, and logs each change once. It calls jumped with
// the size of each jump of the clock.
func Watch(ctx context.Context, db *store.DB, data string, jumped func(by time.Duration), log *slog.Logger) {
	disk := diskWatch{data: data, db: db, probe: store.NewTable[string](db, "appliance"), log: log}
	began := time.Now()
	clock := clockWatch{wall: began.Round(0)}
	for {
		disk.check()
		if by := clock.check(time.Now().Round(0), time.Since(began)); by != 0 {
			log.Warn("the clock was set; running timers are not affected", "by", by.Round(time.Second))
			jumped(by)
		}
		if remote.Sleep(ctx, watchEvery) != nil {
			return
		}
	}
}

// clockWatch compares the wall clock with the monotonic one.
type clockWatch struct {
	wall    time.Time     // at the last check, without a monotonic reading
	running time.Duration // of the monotonic clock, at the same moment
}

// check returns by how much the wall clock has jumped since the last check: 0 where it was
// only corrected a little.
func (s *clockWatch) check(wall time.Time, running time.Duration) (by time.Duration) {
	by = wall.Sub(s.wall) - (running - s.running)
	s.wall, s.running = wall, running
	if by.Abs() <= maxDrift {
		return 0
	}
	return by
}

// diskWatch watches the disk that the data is on.
type diskWatch struct {
	data      string
	db        *store.DB
	probe     *store.Table[string]
	log       *slog.Logger
	refuses   bool // so it was logged
	fillingUp bool // likewise
}

// check logs when the disk begins to refuse writes, when it accepts them again, and before
// that when it fills up. A disk that refuses is probed with a write: nothing else may be
// written for hours, and its owner wants to see that there is room again.
func (d *diskWatch) check() {
	err := d.db.Err()
	if errors.Is(err, store.ErrDamaged) {
		return // the store has logged it, and no room helps
	}
	if err != nil {
		if err = d.probe.Put(probeKey, strings.Repeat("x", probeBytes)); err == nil {
			err = d.probe.Delete(probeKey)
		}
	}
	free, filling := store.FreeSpace(d.data)
	if filling == nil {
		filling = CheckRoom(free, d.data)
	}
	switch {
	case err != nil && !d.refuses:
		d.log.Error("the disk refuses what is written; robots go on, but nothing new is kept", "data", d.data, "err", err)
	case err == nil && d.refuses:
		d.log.Info("the disk takes what is written again", "data", d.data)
	case err == nil && filling != nil && !d.fillingUp:
		d.log.Warn("the disk fills up", "err", filling)
	}
	d.refuses, d.fillingUp = err != nil, filling != nil
}

// The probe is a record of some pages: a few bytes find room in a file that cannot grow any
// more.
const (
	probeKey   = "tried"
	probeBytes = 16 << 10
)

// ReleaseMemory gives idle memory back until ctx ends. All of it is loaded again when a robot is
// about to talk, so that its hello does not wait for it.
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
