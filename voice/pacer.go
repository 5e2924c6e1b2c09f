package voice

import (
	"cmp"
	"time"
)

// What a robot's decode queue asks of whoever sends to it: it holds 20 or 40
// packets of 60 ms and silently drops the newest beyond that, so the lead
// stays well under that; and it plays on a clock of its own, so the lead must
// cover what the network delays.
const (
	firstLead  = 300 * time.Millisecond // sound the robot is given ahead of time
	grownLead  = 600 * time.Millisecond // after the robot once ran, or nearly ran, dry
	leastQueue = 20                     // packets that every firmware holds
)

// Pacer says when the packets of a stream leave, on an absolute clock: an
// error in one packet's time is not carried to the next. It holds no timer
// and reads no clock. The zero value is a pacer with nothing sent, for a robot
// of which nothing is known.
type Pacer struct {
	// Queue is how many packets the robot holds; 0 is as few as any. It is filled
	// by half: what the network holds up comes at once.
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

// Sent says that a packet has left now. A robot that had run dry starts its
// clock anew, and from then on is kept further ahead, as is one that had less
// than a packet left, unless it still played its first.
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

// Lead is how much sound the robot has still to play at now.
func (p *Pacer) Lead(now time.Time) time.Duration {
	return max(0, p.until.Sub(now))
}

// Underruns is how often the robot ran dry before the stream's end.
func (p *Pacer) Underruns() int { return p.underrun }
