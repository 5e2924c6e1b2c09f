package voice

import (
	"cmp"
	"time"
)

// A robot's decode queue holds 20 or 40 packets of 60 ms and silently drops the
// newest beyond that, so the lead stays well below it. The robot plays on its own
// clock, so the lead must cover the network's delays.
const (
	firstLead = 300 * time.Millisecond // sound sent to the robot ahead of time
	grownLead = 600 * time.Millisecond // after the robot ran dry, or nearly did
	minQueue  = 20                     // packets that every firmware can hold
)

// Pacer computes when each packet of a stream is to be sent, on an absolute clock: an
// error in one packet's time does not affect the next. It has no timer and reads no
// clock. The zero value has sent nothing, to a robot of unknown firmware.
type Pacer struct {
	// Queue is how many packets the robot holds; 0 is the minimum of all firmwares. Half
	// of it is used, since delayed packets arrive all at once.
	Queue int

	began    time.Time // the first packet
	until    time.Time // when all sound sent will have been played
	lead     time.Duration
	underrun int
}

// NextSend returns the earliest time to send the next packet, the zero time for the first.
func (p *Pacer) NextSend() time.Time {
	if p.until.IsZero() {
		return time.Time{}
	}
	most := time.Duration(max(0, cmp.Or(p.Queue, minQueue)/2-1)) * FrameDuration // leaves room for the packet that is due
	return p.until.Add(-min(p.lead, most))
}

// Sent records that a packet was sent at now. If the robot had run dry, its clock
// restarts and the lead grows. The lead also grows if less than a packet was left,
// except while the robot played its first packet.
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

// Played returns when the last packet sent will have been played, the zero time if none
// was sent.
func (p *Pacer) Played() time.Time { return p.until }

// Lead returns how much sound the robot still has to play at now.
func (p *Pacer) Lead(now time.Time) time.Duration {
	return max(0, p.until.Sub(now))
}

// Underruns returns how often the robot ran dry before the stream's end.
func (p *Pacer) Underruns() int { return p.underrun }
