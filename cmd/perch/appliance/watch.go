package appliance

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"perch/remote"
	"perch/store"
)

// What the appliance stands on is a disk that may be full and a clock that may
// be wrong: a Raspberry Pi has no battery for its own. Both are looked at now
// and then, and what changes is logged once.

const (
	watchEvery = 5 * time.Second
	// mostJump is how far the wall clock may go ahead of the running one, or
	// fall behind, without having been set.
	mostJump = 2 * time.Second
)

// watch looks at disk and clock until ctx ends.
func (a *Appliance) watch(ctx context.Context) {
	d := diskWatch{data: a.Data, db: a.DB, probe: store.NewTable[string](a.DB, "appliance"), log: a.Log}
	began := time.Now()
	c := clockWatch{wall: began.Round(0)}
	for {
		d.look()
		if by := c.look(time.Now().Round(0), time.Since(began)); by != 0 {
			a.Log.Warn("the clock was set; running timers are not affected", "by", by.Round(time.Second))
			a.Robots.Moved(by)
			a.waiting.Moved(by)
		}
		if remote.Sleep(ctx, watchEvery) != nil {
			return
		}
	}
}

// clockWatch is how the wall clock was set against the one that only runs.
type clockWatch struct {
	wall    time.Time     // at the last look, without a reading of the running clock
	running time.Duration // at the same moment
}

// look returns by how much the wall clock has jumped since the last look, and
// nothing where it has only been kept right.
func (s *clockWatch) look(wall time.Time, running time.Duration) (by time.Duration) {
	by = wall.Sub(s.wall) - (running - s.running)
	s.wall, s.running = wall, running
	if by.Abs() <= mostJump {
		return 0
	}
	return by
}

// diskWatch is the one that the data is on.
type diskWatch struct {
	data      string
	db        *store.DB
	probe     *store.Table[string]
	log       *slog.Logger
	refuses   bool // so it was logged
	fillingUp bool // likewise
}

// look logs when the disk begins to refuse what is written, and when it takes
// it again. Where it refuses, something is tried: nothing else may be written
// for hours, and its owner wants to see that there is room again. That it fills
// up is logged before it comes to this.
func (d *diskWatch) look() {
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
		filling = RoomFault(free, d.data)
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

// The record that is tried is of some pages: a few bytes find room in a file
// that cannot grow any more.
const (
	probeKey   = "tried"
	probeBytes = 16 << 10
)
