package simrobot

import (
	"math"
	"slices"
	"time"
)

// Stats are a robot's counters, over all channels of its talk.
type Stats struct {
	HelloLatency time.Duration // from the robot's hello to the server's, of the latest channel
	Channels     int           // that the server answered with its hello
	Sent         int           // microphone packets
	Stamped      int           // microphone packets with the timestamp of the packet being played
	Notified     int           // packets of notifications
	Downlink

	// Packets lost by a barge-in, which is no fault; Downlink does not include them.
	CutByBargeIn int // were in the queue when it was emptied
	Late         int // arrived after the robot had stopped speaking

	Stale         int // open channels that were treated as closed after long quiet
	WakeWordsLost int // by faults of the build

	Underruns int // the speaker ran dry in the middle of a speech
	MaxQueue  int // most packets that waited at once, decoded frames not counted

	// Gaps are the times between packets of one speech, without the server's initial
	// burst.
	Gaps  []time.Duration
	Turns []Turn
}

// Downlink counts the packets that a robot received.
type Downlink struct {
	Received int // all of them
	Played   int
	Dropped  int // arrived at a full queue
	Ignored  int // arrived outside the Speaking state
	Cut      int // were in the queue when it was emptied
	Bad      int // were not Opus, or held more sound than announced
}

// Turn is one sentence and its answer.
type Turn struct {
	Text       string        // spoken to the robot
	Transcript string        // the server's; empty if it sent none
	Answer     []string      // sentences shown
	FirstAudio time.Duration // from the end of the person's speech, or of the press in manual mode, to the first packet of the answer
	Length     time.Duration // from that packet until the answer was played
	Packets    int           // of the answer
	Underruns  int
	Dropped    int
	Answered   bool // with sound

	Interrupted bool          // by a tap, a wake word, the button, or the next sentence
	QuietAfter  time.Duration // from the interruption to the server's tts stop; 0 without one
}

// Quantile returns the q-quantile (0 to 1) of d by nearest rank, or 0 for an empty d.
func Quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// arrivals measures the gaps of one speech.
type arrivals struct {
	last  time.Time
	paced bool // the burst is over
}

// gap returns the time since the last packet, and whether it counts.
func (a *arrivals) gap(now time.Time, frame time.Duration) (time.Duration, bool) {
	last := a.last
	a.last = now
	if last.IsZero() {
		return 0, false
	}
	d := now.Sub(last)
	a.paced = a.paced || d >= frame/2
	return d, a.paced
}
