package voice

import (
	"cmp"
	"time"
)

// A robot's decode queue holds 20 or 40 packets of 60 ms and silently drops the
// newest beyond that, so the lead stays well below it. The robot plays on its own
// clock, so the lead must cover the network's delays.
const (
	firstLead  = 300 * time.Millisecond // sound the robot is given ahead of time
	grownLead  = 600 * time.Millisecond // after the robot ran dry, or nearly did
	leastQueue = 20                     // packets that every firmware can hold
)

// Pacer says when each packet of a stream leaves, on an absolute clock: an error
// in one packet's time is not carried to the next. It holds no timer and reads no
// clock. The zero value has sent nothing, to a robot of unknown firmware.
type Pacer struct {
	// Queue is how many packets the robot holds; 0 is the fewest of all firmwares.
	// It is filled by half: delayed packets arrive all at once.
	Queue int

	began    time.Time // the first packet
	until    time.Time // when all that was sent will have been played
	lead     time.Duration
	underrun int
}

// Due is the earliest time the next packet may leave. It is the zero time
// for the first.
func (p *Pacer) Due() time.Time {
	if p.until.IsZero() {
		return time.Time{}
	}
	most := time.Duration(max(0, cmp.Or(p.Queue, leastQueue)/2-1)) * FrameDuration // and the packet that is due
	return p.until.Add(-min(p.lead, most))
}

// Sent records that a packet has left now. If the robot had run dry, its clock
// starts again and the lead grows. The lead also grows if less than a packet was
// left, except while the robot played its first packet.
func (p *Pacer) Sent(now time.Time) {
	switch {
	case p.until.IsZero():
		p.lead = firstLead
		p.began, p.until = now, now
	case p.until.Before(now):
		p.lead = grownLead
		p.underrun++
		p.until = now
	case p.until.Sub(now) < FrameDuration && now.Sub(p.began) >= FrameDuration:
		p.lead = grownLead
	}
	p.until = p.until.Add(FrameDuration)
}

// Played is when the last packet sent will have been played, and the zero
// time when none was sent.
func (p *Pacer) Played() time.Time { return p.until }

// Lead is how much sound the robot still has to play at now.
func (p *Pacer) Lead(now time.Time) time.Duration {
	return max(0, p.until.Sub(now))
}

// Underruns is how often the robot ran dry before the stream's end.
func (p *Pacer) Underruns() int { return p.underrun }
