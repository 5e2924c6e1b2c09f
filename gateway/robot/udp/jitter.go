package udp

import (
	"time"

	"perch/device/xiaozhi"
)

// Limits of a Jitter. A packet holds 60 ms of sound.
const (
	jitterWait  = 100 * time.Millisecond // how long to wait for a missing packet
	jitterDepth = 4                      // how many later packets may wait for a missing packet
)

// Jitter is a jitter buffer: it puts the packets of a robot back into order. It delays packets only while an
// earlier packet is missing. The zero value is ready for use; the first packet added begins the sequence. A
// Jitter is not safe for concurrent use.
type Jitter struct {
	next  uint32 // sequence number of the next packet to return; 0 before the first
	slots [jitterDepth]slot
}

// slot holds a packet that has arrived.
type slot struct {
	sequence uint32        // 0 if the slot is empty
	at       time.Time     // when the packet arrived
	audio    xiaozhi.Audio // the packet; later packets reuse its memory
}

// Add adds a packet that has arrived at now. It copies the sound. It drops duplicates, packets that Next has
// given up or passed, and packets that do not fit.
func (j *Jitter) Add(p xiaozhi.Datagram, now time.Time) {
	if j.next == 0 {
		j.next = p.Sequence
	}
	if p.Sequence < j.next {
		return
	}
	free := -1
	for i := range j.slots {
		switch s := &j.slots[i]; s.sequence {
		case p.Sequence:
			return
		case 0:
			free = i
		}
	}
	if free < 0 { // the caller has added many packets without calling Next
		return
	}
	s := &j.slots[free]
	s.sequence, s.at, s.audio = p.Sequence, now, xiaozhi.Audio{Timestamp: p.Timestamp, Opus: append(s.audio.Opus[:0], p.Opus...)}
}

// Next returns the next packet of the sequence. If lost is true, the packet is given up, and the caller has to
// conceal the gap in the sound. If ok is false, no packet can be returned yet. The sound is valid until the
// next call of Add.
func (j *Jitter) Next(now time.Time) (audio xiaozhi.Audio, lost, ok bool) {
	count, lowest := 0, uint32(0)
	for i := range j.slots {
		s := &j.slots[i]
		if s.sequence == 0 {
			continue
		}
		if s.sequence == j.next {
			s.sequence = 0
			j.next++
			return s.audio, false, true
		}
		if count++; lowest == 0 || s.sequence < lowest {
			lowest = s.sequence
		}
	}
	if count == 0 || count < jitterDepth && now.Before(j.Deadline()) {
		return xiaozhi.Audio{}, false, false
	}
	if lowest-j.next > jitterDepth { // too many packets are missing to conceal the gap
		j.next = lowest
		return j.Next(now)
	}
	j.next++
	return xiaozhi.Audio{}, true, true
}

// Deadline returns when Next gives up a missing packet while later packets wait: jitterWait after the
// first of these has arrived. It returns the zero time if no packet waits. Deadline must be called after Next
// has returned no packet.
func (j *Jitter) Deadline() (due time.Time) {
	for i := range j.slots {
		if s := &j.slots[i]; s.sequence != 0 && (due.IsZero() || s.at.Add(jitterWait).Before(due)) {
			due = s.at.Add(jitterWait)
		}
	}
	return due
}
