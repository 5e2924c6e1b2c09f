package voice

import "slices"

// How stamps and correlation give an alignment.
const (
	stampsKept   = 9
	stampsNeeded = 5
	stampsOff    = 3 * MicFrame / 2 // a median of the stamps this far away is another position
	stampsUnrest = 0.3              // out of order more often than this, single stamps mean nothing
	stampsLost   = 4                // frames without a stamp: nothing is playing

	lockFirst  = 8  // frames of correlation before the lag is believed
	lockSure   = 16 // from here on it is believed in any case, if another lag was before
	lockClear  = 7  // how far a peak must stand out
	lockAgain  = 8  // frames between two checks of the lag
	lockMoved  = 3  // samples: less is the same lag
	lockSoon   = 4  // the same while in doubt
	answerSeen = 24 // frames until the room's response is worth storing
)

// aligner finds the loudspeaker's sound in a frame of the microphone's. Stamps give it to
// within a few packets; a robot begins to play between two frames of its microphone, so
// the remainder differs between answers. The correlation finds it to the sample, which
// lets the canceller keep what it has learned. Positions count samples, the
// microphone's separately.
type aligner struct {
	stampedBase
	lock
	halfway bool
	finder  lagFinder
	room    answerOf
	wide    [MicFrame + lagRange*thin]int16
}

// stampedBase is the alignment that the stamps give.
type stampedBase struct {
	known  bool  // the base is known
	base   int64 // the loudspeaker's position at the microphone's zero
	recent [stampsKept]int64
	stamps int
	absent int     // frames since the last stamp
	last   int64   // stamp's base
	unrest float32 // how often the stamps are out of order, 0 to 1
}

// lock is the alignment that the correlation gives.
type lock struct {
	locked bool
	doubt  bool  // the lag may be wrong
	agreed int   // checks that confirmed it since
	lag    int64 // of the echo behind the base
	moved  int64 // where it may have moved to
}

// stamp records where the stamp of a frame puts the microphone's zero.
func (a *aligner) stamp(base int64) {
	a.absent = 0
	a.recent[a.stamps%stampsKept] = base
	a.stamps++
	if !a.known {
		a.setBase(base)
	}
	a.regular(base == a.last)
	a.last = base
	sorted := a.recent
	kept := sorted[:min(a.stamps, stampsKept)]
	slices.Sort(kept)
	if off := kept[len(kept)/2] - a.base; a.stamps >= stampsNeeded && (off > stampsOff || off < -stampsOff) {
		a.jump(off)
	}
}

// missing records a frame without a known stamp.
func (a *aligner) missing() {
	if a.known {
		a.regular(false)
	}
	if a.absent++; a.absent >= stampsLost {
		a.stop()
	}
}

// regular records whether a frame's stamp follows the last one. If a robot's stamps are
// mostly in order, one out of order means that the robot ran dry or a frame was lost,
// and that the sound has moved.
func (a *aligner) regular(yes bool) {
	unrest := float32(1)
	if yes {
		unrest = 0
	}
	a.unrest += (unrest - a.unrest) / 16
	if !yes && !a.unruly() {
		a.suspect()
	}
}

// suspect restarts the search for the lag.
func (a *aligner) suspect() {
	a.finder.reset()
	a.locked = a.locked && a.room.known
	a.doubt, a.agreed = a.locked, 0
}

func (a *aligner) setBase(base int64) {
	a.known, a.base, a.last, a.locked, a.doubt = true, base, base, false, false
	a.finder.reset()
}

// jump moves the base and with it the range of the search, but not what is taken as
// heard: the correlation decides that.
func (a *aligner) jump(off int64) {
	lag := a.lag + off
	if !a.locked || lag <= -lagEarly*thin || lag >= lagLate*thin {
		a.setBase(a.base + off)
		return
	}
	a.base, a.lag, a.moved = a.base+off, lag, lag
	a.finder.shift(int(off) / thin)
}

// stop records that nothing is playing.
func (a *aligner) stop() {
	a.known, a.locked, a.doubt, a.stamps = false, false, false, 0
	a.finder.reset()
}

// frame searches for the lag of a frame that begins at a position.
func (a *aligner) frame(mic *[MicFrame]int16, at int64, ref *reference) {
	if !a.known {
		return
	}
	f := &a.finder
	if a.halfway = !a.halfway; a.halfway && a.sure() && !a.unruly() && f.frames > answerSeen {
		return // a check needs only every second frame
	}
	ref.read(at+a.base-lagLate*thin, a.wide[:])
	f.add(mic, &a.wide)
	every := lockAgain
	if a.doubt || a.unruly() {
		every = lockSoon
	}
	switch {
	case !a.locked && f.frames >= lockFirst:
		lag, clear := f.best(&a.room)
		if clear > lockClear || a.room.known && f.frames >= lockSure {
			a.locked, a.lag, a.moved = true, lag, lag
		}
	case a.locked && f.frames == answerSeen && !a.room.known:
		f.storeResponse(&a.room, a.lag)
	case a.locked && f.frames >= lockFirst && f.frames%every == 0 && a.room.known:
		a.checkLag()
	}
}

// checkLag checks whether the lag still holds. It has moved if it is found elsewhere twice in
// a row, or once while in doubt.
func (a *aligner) checkLag() {
	lag, clear := a.finder.best(&a.room)
	if clear < lockClear {
		return
	}
	switch {
	case !far(lag, a.lag):
		if a.agreed++; a.agreed >= 2 {
			a.doubt = false
		}
		if a.finder.frames >= answerSeen {
			a.finder.storeResponse(&a.room, a.lag)
		}
	case a.doubt, !far(lag, a.moved), a.finder.frames == lockSure:
		a.lag, a.agreed = lag, 1
	}
	a.moved = lag
}

// unruly reports whether the stamps are too much out of order to show a sudden move of
// the sound.
func (a *aligner) unruly() bool { return a.unrest > stampsUnrest }

// sure reports whether the lag is known and not in doubt.
func (a *aligner) sure() bool { return a.locked && !a.doubt }

func far(a, b int64) bool { return a-b >= lockMoved || b-a >= lockMoved }

// position returns the loudspeaker's position that is heard at a position of the
// microphone, once the lag is known.
func (a *aligner) position(at int64) int64 { return at + a.base - a.lag }
