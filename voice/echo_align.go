package voice

import "slices"

// Constants of the alignment by stamps and by correlation; see aligner.
const (
	recentStamps     = 9                // number of stamps in the median
	minStamps        = 5                // number of stamps needed for a median
	maxStampOffset   = 3 * MicFrame / 2 // samples: if the median differs more than this from the base, the base has moved
	maxDisorder      = 0.3              // fraction of stamps out of order above which a single stamp is ignored
	maxMissingStamps = 4                // after this many frames without a stamp, nothing is playing

	minSearchFrames    = 8  // frames that must be correlated before a lag is accepted
	enoughSearchFrames = 16 // frames after which an unclear peak is accepted too, if the room's response is known
	minPeakRatio       = 7  // height of a clear peak, as a multiple of the root mean square
	lagCheckFrames     = 8  // frames between two checks of the lag
	doubtCheckFrames   = 4  // frames between two checks of a doubtful lag
	minLagChange       = 3  // samples; lags that differ less are the same
	minResponseFrames  = 24 // frames that must be correlated before the room's response is stored
)

// aligner finds the position of the loudspeaker's sound that is heard in a frame of the
// microphone. The stamps give it to within a few packets. The remainder, the lag, differs from
// one speech to the next, since a robot may begin to play at any time between two frames of
// its microphone. The correlation gives the lag to the sample; without this precision, the
// canceller would have to learn the room for each speech. The positions of the
// microphone and of the loudspeaker are separate counts of samples.
type aligner struct {
	stampedBase
	lock
	oddFrame bool // changes with each frame
	finder   lagFinder
	room     roomResponse                          // once known, it stays known for later speech
	searched [MicFrame + lagRange*decimation]int16 // the loudspeaker's sound that a frame is compared with
}

// stampedBase is the alignment by stamps.
type stampedBase struct {
	known    bool                // base is valid
	base     int64               // position of the loudspeaker minus position of the microphone
	recent   [recentStamps]int64 // ring of the bases that the latest stamps gave
	stamps   int                 // number of stamps since playing began
	missing  int                 // frames since the latest stamp
	lastBase int64               // base that the latest stamp gave
	disorder float32             // fraction of recent frames with their stamps out of order, 0 to 1
}

// lock is the alignment by correlation.
type lock struct {
	locked bool  // lag is valid
	doubt  bool  // lag may be wrong
	agreed int   // number of checks that confirmed lag since it was set or doubted
	lag    int64 // delay of the echo relative to base, in samples; may be negative
	newLag int64 // lag that the latest clear check found
}

// addStamp records the base that the stamp of a frame gives.
func (a *aligner) addStamp(base int64) {
	a.missing = 0
	a.recent[a.stamps%recentStamps] = base
	a.stamps++
	if !a.known {
		a.setBase(base)
	}
	a.trackOrder(base == a.lastBase)
	a.lastBase = base
	sorted := a.recent
	bases := sorted[:min(a.stamps, recentStamps)]
	slices.Sort(bases)
	if off := bases[len(bases)/2] - a.base; a.stamps >= minStamps && (off > maxStampOffset || off < -maxStampOffset) {
		a.moveBase(off)
	}
}

// addMissingStamp records a frame without a stamp, or with an unknown one.
func (a *aligner) addMissingStamp() {
	if a.known {
		a.trackOrder(false)
	}
	if a.missing++; a.missing >= maxMissingStamps {
		a.reset()
	}
}

// trackOrder records whether a frame's stamp is in order, that is, gives the same base as the
// stamp before. If most stamps of a robot are in order, a single stamp out of order means that
// the robot had nothing left to play or that a frame was lost: the lag may have changed.
func (a *aligner) trackOrder(inOrder bool) {
	disorder := float32(1)
	if inOrder {
		disorder = 0
	}
	a.disorder += (disorder - a.disorder) / 16 // a moving average over about 16 frames, one second
	if !inOrder && !a.isUnruly() {
		a.doubtLag()
	}
}

// doubtLag restarts the search for the lag. If the room's response is known, the lag is only in
// doubt, and checks may confirm it; otherwise it is forgotten.
func (a *aligner) doubtLag() {
	a.finder.reset()
	a.locked = a.locked && a.room.known
	a.doubt, a.agreed = a.locked, 0
}

// setBase sets the base and forgets the lag.
func (a *aligner) setBase(base int64) {
	a.known, a.base, a.lastBase, a.locked, a.doubt = true, base, base, false, false
	a.finder.reset()
}

// moveBase moves the base, and with it the range of lags that are searched. It changes the lag
// by the same distance: the position of the echo stays until the correlation finds another.
func (a *aligner) moveBase(off int64) {
	lag := a.lag + off
	if !a.locked || lag <= -lagEarly*decimation || lag >= lagLate*decimation {
		a.setBase(a.base + off)
		return
	}
	a.base, a.lag, a.newLag = a.base+off, lag, lag
	a.finder.shift(int(off) / decimation)
}

// reset records that nothing is playing.
func (a *aligner) reset() {
	a.known, a.locked, a.doubt, a.stamps = false, false, false, 0
	a.finder.reset()
}

// searchLag searches for the lag in a frame that begins at a position of the microphone.
func (a *aligner) searchLag(mic *[MicFrame]int16, at int64, ref *reference) {
	if !a.known {
		return
	}
	f := &a.finder
	if a.oddFrame = !a.oddFrame; a.oddFrame && a.isLagSure() && !a.isUnruly() && f.frames > minResponseFrames {
		return // every second frame is enough for checks
	}
	ref.copySound(at+a.base-lagLate*decimation, a.searched[:])
	f.add(mic, &a.searched)
	every := lagCheckFrames
	if a.doubt || a.isUnruly() {
		every = doubtCheckFrames
	}
	switch {
	case !a.locked && f.frames >= minSearchFrames:
		lag, ratio := f.bestLag(&a.room)
		if ratio > minPeakRatio || a.room.known && f.frames >= enoughSearchFrames {
			a.locked, a.lag, a.newLag = true, lag, lag
		}
	case a.locked && f.frames == minResponseFrames && !a.room.known:
		f.storeResponse(&a.room, a.lag)
	case a.locked && f.frames >= minSearchFrames && f.frames%every == 0 && a.room.known:
		a.checkLag()
	}
}

// checkLag checks the lag. It accepts another lag that two checks in a row have found, or one
// check if the lag is in doubt or the search has lasted enoughSearchFrames.
func (a *aligner) checkLag() {
	lag, ratio := a.finder.bestLag(&a.room)
	if ratio < minPeakRatio {
		return
	}
	switch {
	case !isLagChange(lag, a.lag):
		if a.agreed++; a.agreed >= 2 {
			a.doubt = false
		}
		if a.finder.frames >= minResponseFrames {
			a.finder.storeResponse(&a.room, a.lag)
		}
	case a.doubt, !isLagChange(lag, a.newLag), a.finder.frames == enoughSearchFrames:
		a.lag, a.agreed = lag, 1
	}
	a.newLag = lag
}

// isUnruly reports whether the stamps are out of order too often to show a sudden change of
// the lag.
func (a *aligner) isUnruly() bool { return a.disorder > maxDisorder }

// isLagSure reports whether the lag is known and not in doubt.
func (a *aligner) isLagSure() bool { return a.locked && !a.doubt }

// isLagChange reports whether two lags differ by at least minLagChange.
func isLagChange(a, b int64) bool { return a-b >= minLagChange || b-a >= minLagChange }

// heardPosition returns the position of the loudspeaker's sound that is heard at a position of
// the microphone. The lag must be known.
func (a *aligner) heardPosition(at int64) int64 { return at + a.base - a.lag }
