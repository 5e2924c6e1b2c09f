package simrobot

import (
	"math"
	"slices"
	"time"
)

// Stats are a robot's counters, added up over all channels.
type Stats struct {
	HelloLatency time.Duration // from the robot's hello to the server's hello, for the latest channel
	Channels     int           // channels that the server accepted with its hello
	Sent         int           // packets of the microphone sent to the server, including those before a wake word
	Stamped      int           // sent packets with the timestamp of a played packet
	Notified     int           // packets received in notifications
	Downlink

	// Packets that were not played because the person interrupted the robot (a barge-in).
	// Downlink.Cut and Downlink.Ignored do not include them.
	CutByBargeIn int // packets that were queued when the queue was emptied
	Late         int // packets that arrived after the robot had stopped speaking

	Stale         int // open channels that the robot treated as closed because they were quiet
	WakeWordsLost int // wake words missed because of faults in the firmware

	Underruns int // times the speaker ran out of sound during a speech
	MaxQueue  int // maximum number of queued packets, without decoded frames

	// Gaps are the times between packets of the same speech, except for the burst of packets that
	// the server sends at the beginning.
	Gaps  []time.Duration
	Turns []Turn
}

// Downlink counts the packets that a robot received.
type Downlink struct {
	Received int // all packets except those of notifications
	Played   int // packets that were played, including those of notifications
	Dropped  int // packets that arrived while the queue was full
	Ignored  int // packets that arrived outside the Speaking state
	Cut      int // packets that were queued when the queue was emptied
	Bad      int // packets that were not Opus, or longer than announced
}

// Turn is one sentence and its answer.
type Turn struct {
	Text       string        // the sentence
	Transcript string        // the server's transcript; empty if the server sent none
	Answer     []string      // sentences that the robot showed
	FirstAudio time.Duration // from the end of the sentence (manual mode: from the release of the button) to the answer's first packet
	Length     time.Duration // from the first packet to the end of the answer
	Packets    int           // packets of the answer
	Underruns  int           // times the speaker ran out of sound during the turn
	Dropped    int           // packets that arrived during the turn while the queue was full
	Answered   bool          // the answer had sound

	Interrupted bool          // a tap, a wake word, the button or the next sentence interrupted the answer
	QuietAfter  time.Duration // from the interruption to the server's tts stop; 0 without an interruption or a tts stop
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

// gapMeter measures the times between the packets of one speech.
type gapMeter struct {
	last  time.Time // arrival of the latest packet
	paced bool      // the initial burst is over
}

// gap returns the time since the previous packet. ok is false for the first packet and during
// the server's initial burst, which ends with the first gap of at least half a frame. frame is the
// duration of a packet.
func (m *gapMeter) gap(now time.Time, frame time.Duration) (gap time.Duration, ok bool) {
	last := m.last
	m.last = now
	if last.IsZero() {
		return 0, false
	}
	gap = now.Sub(last)
	m.paced = m.paced || gap >= frame/2
	return gap, m.paced
}
