package udp

import (
	"time"

	"perch/device/xiaozhi"
)

// Limits of a Jitter. A packet holds 60 ms of sound.
const (
	jitterWait  = 100 * time.Millisecond // for a packet that others have overtaken
	jitterDepth = 4                      // packets that may have overtaken it
)

// Jitter puts the packets of a robot back into their order. It waits for a packet that others have
// overtaken; without such a packet it adds no delay. The zero value waits for the first packet.
type Jitter struct {
	next  uint32 // number of the packet that is due; 0 before the first
	slots [jitterDepth]slot
}

type slot struct {
	sequence uint32 // 0: the slot is empty
	at       time.Time
	audio    xiaozhi.Audio // its memory is used again for the next packet
}

// Add adds a packet that has arrived, and copies its sound. It drops a packet that is late.
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
	if free < 0 { // full: a burst without a call of Next
		return
	}
	s := &j.slots[free]
	s.sequence, s.at, s.audio = p.Sequence, now, xiaozhi.Audio{Timestamp: p.Timestamp, Opus: append(s.audio.Opus[:0], p.Opus...)}
}

// Next removes the packet that is due. Lost is true if it was given up; its sound is to be concealed.
// Ok is false if no packet is due. The sound is valid until the next call of Add.
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
	if lowest-j.next > jitterDepth { // the network was away: nothing conceals that
		j.next = lowest
		return j.Next(now)
	}
	j.next++
	return xiaozhi.Audio{}, true, true
}

// Deadline returns when the next packet is given up: it was overtaken when the first packet behind it
// arrived. It returns the zero time if no packet is awaited.
func (j *Jitter) Deadline() (due time.Time) {
	for i := range j.slots {
		if s := &j.slots[i]; s.sequence != 0 && (due.IsZero() || s.at.Add(jitterWait).Before(due)) {
			due = s.at.Add(jitterWait)
		}
	}
	return due
}
