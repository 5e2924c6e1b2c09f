package voice

import (
	"cmp"
	"time"
)

// The lead is the duration of the sound that was sent to the robot and not yet played. It must
// cover delays of the network, because the robot plays by its own clock. It must also stay
// well below the robot's decode queue, which holds 20 or 40 packets of 60 ms and silently
// drops packets that arrive while it is full.
const (
	initialLead = 300 * time.Millisecond // maximum lead at first
	grownLead   = 600 * time.Millisecond // maximum lead after the robot ran dry (had nothing left to play), or nearly did
	minQueue    = 20                     // number of packets that the queue of every firmware holds
)

// Pacer computes when to send each packet of a stream. The times follow from the start of
// the stream: a packet that is sent late does not delay the next ones. A Pacer has no timer
// and reads no clock. The zero value is ready for the first packet to a robot of unknown
// firmware.
type Pacer struct {
	// Queue is the number of packets that the robot's queue holds; 0 means the minimum of
	// all firmwares. The lead uses half of the queue, because delayed packets arrive all at
	// once.
	Queue int

	firstSent   time.Time     // when the first packet was sent
	playedUntil time.Time     // when the last packet sent will have been played; zero if none was sent
	lead        time.Duration // maximum lead
	underruns   int           // number of times that the robot ran dry
}

// NextSend returns the earliest time to send the next packet: the zero time for the first one.
func (p *Pacer) NextSend() time.Time {
	if p.playedUntil.IsZero() {
		return time.Time{}
	}
	maxLead := time.Duration(max(0, cmp.Or(p.Queue, minQueue)/2-1)) * FrameDuration // leaves room for the packet that is due
	return p.playedUntil.Add(-min(p.lead, maxLead))
}

// Sent records that a packet was sent at now. If the robot had already played all sound, it
// has run dry: it plays this packet at once, and the maximum lead grows. The maximum lead also
// grows if the robot had less than one packet left, except while it played its first one.
func (p *Pacer) Sent(now time.Time) {
	switch {
	case p.playedUntil.IsZero():
		p.lead = initialLead
		p.firstSent, p.playedUntil = now, now
	case p.playedUntil.Before(now):
		p.lead = grownLead
		p.underruns++
		p.playedUntil = now
	case p.playedUntil.Sub(now) < FrameDuration && now.Sub(p.firstSent) >= FrameDuration:
		p.lead = grownLead
	}
	p.playedUntil = p.playedUntil.Add(FrameDuration)
}

// PlayedUntil returns when the last packet sent will have been played: the zero time if none
// was sent.
func (p *Pacer) PlayedUntil() time.Time { return p.playedUntil }

// Lead returns the duration of the sound that the robot has still to play at now.
func (p *Pacer) Lead(now time.Time) time.Duration {
	return max(0, p.playedUntil.Sub(now))
}

// Underruns returns how many times the robot ran dry before the end of the stream.
func (p *Pacer) Underruns() int { return p.underruns }
