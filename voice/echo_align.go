package voice

import "slices"

// aligner finds which part of the robot's speech is heard in a frame of the microphone. A position is
// a count of samples since the start: one count for the microphone's sound, another for the
// sound that was sent, which the loudspeaker plays.
//
// The stamp of a frame (see Echo) gives a base, the difference of the two counts, to within a few
// packets. The rest is the lag: the number of samples that the echo is later than the base says.
// The lag differs from one speech to the next, since a robot may begin to play at any time
// between two frames of its microphone. The correlation of the two sounds gives the lag
// exactly, to one sample; without this precision, the canceller would have to learn the room
// for each speech. The correlation at all lags also shows the room's response (roomResponse),
// which makes later searches for the lag more reliable.
//
// A stamp is irregular if it is missing, or gives another base than the stamp before.
type aligner struct {
	stampedBase
	correlatedLag
	oddFrame bool // changes with each frame
	finder   lagFinder
	room     roomResponse                          // once known, it stays known for later speech
	searched [MicFrame + lagRange*decimation]int16 // the sent sound that a frame is compared with
}

// stampedBase is the alignment by stamps.
type stampedBase struct {
	baseKnown    bool
	base         int64               // position in the sent sound minus position in the microphone's
	recent       [recentStamps]int64 // ring of the bases that the latest stamps gave
	stamps       int                 // number of stamps since playing began
	missing      int                 // frames since the latest stamp
	lastBase     int64               // base that the latest stamp gave
	irregularity float32             // fraction of recent frames with an irregular stamp, 0 to 1
}

// correlatedLag is the alignment by correlation.
type correlatedLag struct {
	lagKnown bool
	doubt    bool  // lag may be wrong
	agreed   int   // number of checks in agreement since lag was put in doubt, or replaced by another
	lag      int64 // delay of the echo relative to base, in samples; may be negative
	newLag   int64 // lag that the latest clear check found
}

// Constants of the alignment by stamps and by correlation. A frame is correlated when searchLag
// adds it to the finder.
const (
	recentStamps     = 9                // number of stamps in the median
	minStamps        = 5                // number of stamps needed for a median
	maxStampOffset   = 3 * MicFrame / 2 // samples; if the median of the bases that stamps give is farther than this from base, base is moved to it
	maxIrregularity  = 0.3              // fraction of irregular stamps above which a single one no longer puts the lag in doubt
	maxMissingStamps = 4                // number of frames without a stamp after which the aligner assumes that nothing is playing

	minSearchFrames    = 8  // frames that must be correlated before a lag is accepted
	enoughSearchFrames = 16 // correlated frames after which an unclear peak is accepted too, if the room's response is known
	minPeakRatio       = 7  // height of a clear peak, as a multiple of the root mean square
	lagCheckFrames     = 8  // correlated frames between two checks of the lag
	doubtCheckFrames   = 4  // the same if the lag is doubtful, or stamps are often irregular
	minLagChange       = 3  // samples; lags that differ less are the same
	minResponseFrames  = 24 // frames that must be correlated before the room's response is stored
)

// addStamp records the base that the stamp of a frame gives.
func (a *aligner) addStamp(base int64) {
	a.missing = 0
	a.recent[a.stamps%recentStamps] = base
	a.stamps++
	if !a.baseKnown {
		a.setBase(base)
	}
	a.trackRegularity(base == a.lastBase)
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
	if a.baseKnown {
		a.trackRegularity(false)
	}
	if a.missing++; a.missing >= maxMissingStamps {
		a.reset()
	}
}

// trackRegularity records whether a frame's stamp is regular. If most stamps of a robot are
// regular, a single irregular one means that the robot had nothing left to play or that a frame
// was lost: the lag may have changed.
func (a *aligner) trackRegularity(regular bool) {
	irregularity := float32(1)
	if regular {
		irregularity = 0
	}
	a.irregularity += (irregularity - a.irregularity) / 16 // a moving average over about 16 frames, one second
	if !regular && !a.isIrregular() {
		a.doubtLag()
	}
}

// doubtLag restarts the search for the lag. If the room's response is known, the lag is only in
// doubt, and checks may confirm it; otherwise it is forgotten.
func (a *aligner) doubtLag() {
	a.finder.reset()
	a.lagKnown = a.lagKnown && a.room.known
	a.doubt, a.agreed = a.lagKnown, 0
}

// setBase sets the base and forgets the lag.
func (a *aligner) setBase(base int64) {
	a.baseKnown, a.base, a.lastBase, a.lagKnown, a.doubt = true, base, base, false, false
	a.finder.reset()
}

// moveBase adds off to the base, which moves the range of lags that are searched. It also adds off
// to the lag, so that base - lag, which says where the echo is heard, does not change. If the lag
// would leave the range, moveBase forgets the lag.
func (a *aligner) moveBase(off int64) {
	lag := a.lag + off
	if !a.lagKnown || lag <= -lagEarly*decimation || lag >= lagLate*decimation {
		a.setBase(a.base + off)
		return
	}
	a.base, a.lag, a.newLag = a.base+off, lag, lag
	a.finder.shift(int(off) / decimation)
}

// reset records that nothing is playing.
func (a *aligner) reset() {
	a.baseKnown, a.lagKnown, a.doubt, a.stamps = false, false, false, 0
	a.finder.reset()
}

// searchLag searches for the lag in a frame that begins at this position of the microphone's sound.
func (a *aligner) searchLag(mic *[MicFrame]int16, at int64, ref *reference) {
	if !a.baseKnown {
		return
	}
	f := &a.finder
	if a.oddFrame = !a.oddFrame; a.oddFrame && a.isLagSure() && !a.isIrregular() && f.frames > minResponseFrames {
		return // every second frame is enough for checks
	}
	ref.copySound(at+a.base-lagLate*decimation, a.searched[:])
	f.add(mic, &a.searched)
	every := lagCheckFrames
	if a.doubt || a.isIrregular() {
		every = doubtCheckFrames
	}
	switch {
	case !a.lagKnown && f.frames >= minSearchFrames:
		lag, ratio := f.bestLag(&a.room)
		if ratio > minPeakRatio || a.room.known && f.frames >= enoughSearchFrames {
			a.lagKnown, a.lag, a.newLag = true, lag, lag
		}
	case a.lagKnown && f.frames == minResponseFrames && !a.room.known:
		f.storeResponse(&a.room, a.lag)
	case a.lagKnown && f.frames >= minSearchFrames && f.frames%every == 0 && a.room.known:
		a.checkLag()
	}
}

// checkLag compares the lag with the lag that the correlation shows. It accepts another lag if
// two clear checks in a row find it. One clear check is enough if the lag is in doubt, or if the
// finder has exactly enoughSearchFrames frames. If a check confirms the lag, and the finder has at
// least minResponseFrames frames, checkLag refreshes the stored response.
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

// isIrregular reports whether the stamps are irregular too often for a single irregular one to
// show a change of the lag.
func (a *aligner) isIrregular() bool { return a.irregularity > maxIrregularity }

// isLagSure reports whether the lag is known and not in doubt.
func (a *aligner) isLagSure() bool { return a.lagKnown && !a.doubt }

// isLagChange reports whether two lags differ by at least minLagChange.
func isLagChange(a, b int64) bool { return a-b >= minLagChange || b-a >= minLagChange }

// heardPosition returns the position in the sent sound that is heard at a position in the
// microphone's sound. The lag must be known.
func (a *aligner) heardPosition(at int64) int64 { return at + a.base - a.lag }
