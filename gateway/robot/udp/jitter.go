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

// Jitter puts the packets of a robot back into their order. A packet that has
// others behind it is waited for; one that is not overtaken costs no delay. The
// zero value waits for the first packet.
type Jitter struct {
	next uint32 // number of the packet that is due; 0 before the first
	held [jitterDepth]held
}

type held struct {
	sequence uint32 // 0: nothing is held
	at       time.Time
	audio    xiaozhi.Audio
	opus     []byte // memory of its own, kept for the next packet
}

// Put takes a packet that has arrived. It copies the sound. A packet that is
// late is dropped.
func (j *Jitter) Put(p xiaozhi.Datagram, now time.Time) {
	if j.next == 0 {
		j.next = p.Sequence
	}
	if p.Sequence < j.next {
		return
	}
	free := -1
	for i := range j.held {
		switch h := &j.held[i]; h.sequence {
		case p.Sequence:
			return
		case 0:
			free = i
		}
	}
	if free < 0 { // as many are held as fit: a burst, of which Take was not asked between
		return
	}
	h := &j.held[free]
	h.opus = append(h.opus[:0], p.Opus...)
	h.sequence, h.at, h.audio = p.Sequence, now, xiaozhi.Audio{Timestamp: p.Timestamp, Opus: h.opus}
}

// Take returns the packet that is due. Lost is true where it is not waited for
// any more; its sound is to be concealed. Ok is false where there is nothing
// to take. The sound is valid until the next call of Put.
func (j *Jitter) Take(now time.Time) (audio xiaozhi.Audio, lost, ok bool) {
	count, lowest := 0, uint32(0)
	for i := range j.held {
		h := &j.held[i]
		if h.sequence == 0 {
			continue
		}
		if h.sequence == j.next {
			h.sequence = 0
			j.next++
			return h.audio, false, true
		}
		if count++; lowest == 0 || h.sequence < lowest {
			lowest = h.sequence
		}
	}
	if count == 0 || count < jitterDepth && now.Before(j.Due()) {
		return xiaozhi.Audio{}, false, false
	}
	if lowest-j.next > jitterDepth { // the network was away: nothing conceals that
		j.next = lowest
		return j.Take(now)
	}
	j.next++
	return xiaozhi.Audio{}, true, true
}

// Due is when the packet that is due is given up: it was overtaken when the first
// of those behind it arrived. It is the zero time where none is waited for.
func (j *Jitter) Due() (due time.Time) {
	for i := range j.held {
		if h := &j.held[i]; h.sequence != 0 && (due.IsZero() || h.at.Add(jitterWait).Before(due)) {
			due = h.at.Add(jitterWait)
		}
	}
	return due
}
