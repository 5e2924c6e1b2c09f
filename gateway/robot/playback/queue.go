package playback

import (
	"context"
	"slices"
	"sync"
	"time"

	"perch/agent"
	"perch/gateway/robot/dialogue"
	"perch/voice"
)

// queue holds the speech of one turn between the turn, which adds items, and the player, which sends them.
// Cancelling a queue drops its items and rejects later ones.
type queue struct {
	mu        sync.Mutex
	items     []item
	packets   int // number of packets in items
	cancelled bool
	skipped   bool               // everything before the next pause was dropped; see skipToPause
	shut      bool               // mouths stay shut, because the sound is music; set before the first packet
	begun     bool               // tts start was sent, and tts stop was not
	sentence  sentenceProgress   // sentence being played
	later     []sentenceProgress // progress of the sentences in items, in order
	space     chan struct{}      // closed when the queue is less than half full or is cancelled; nil unless a turn waits for that
	added     chan struct{}      // has one slot, filled when an item is added, and by skipToPause
	report    Progress           // progress since the last call of progress
	reported  chan<- struct{}    // has one slot, filled when report changes
}

// item is one step of a turn's speech. Exactly one field is set, except that a packet has levels too.
type item struct {
	face     *agent.Emotion
	sentence *string
	packet   []byte
	levels   voice.Levels   // loudness of the packet's sound
	gesture  *string        // name of a gesture, reported when the items before it were sent
	pause    *time.Duration // a pause after a question; the value is how long the question waits for an answer
	end      bool           // end of the speech
}

// Progress is the player's progress with a speech since the previous call of Player.Progress.
type Progress struct {
	dialogue.Progress
	First time.Time // when the first packet of the speech, or the first after a pause, was sent; zero if not since that call
}

// sentenceProgress is the progress of a sentence, in packets.
type sentenceProgress struct {
	encoded, sent int       // numbers of packets
	complete      bool      // all packets are encoded
	until         time.Time // when the robot will have played the packets sent so far; zero if none was sent
}

// playedPart returns how much of the sentence the robot has played, from 0 to 1. If no packet of the
// sentence was sent yet, the result is 1 and concerns the previous sentence, because the robot has played
// almost all of the previous sentence.
func (s sentenceProgress) playedPart(now time.Time) float64 {
	if s.sent == 0 {
		return 1
	}
	waiting := int((s.until.Sub(now) + voice.FrameDuration - 1) / voice.FrameDuration)
	played := s.sent - max(0, waiting)
	switch {
	case played <= 0:
		return 0
	case s.complete && played >= s.encoded:
		return 1
	}
	return float64(played) / float64(s.encoded+1)
}

// maxPackets is how many packets a turn may synthesize ahead: 12 s of sound.
const maxPackets = 200

// notify sends to a channel with one slot, unless the slot is filled.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// awaitRoom waits while the queue is full. It returns how many packets are queued, and when the robot will
// have played all of them. It returns context.Canceled if the queue was cancelled, and the error of ctx if ctx has ended.
func (q *queue) awaitRoom(ctx context.Context) (ahead int, dry time.Time, err error) {
	for {
		q.mu.Lock()
		switch {
		case q.cancelled:
			q.mu.Unlock()
			return 0, time.Time{}, context.Canceled
		case q.packets < maxPackets:
			ahead, dry = q.packets, q.sentence.until
			q.mu.Unlock()
			if now := time.Now(); dry.Before(now) {
				dry = now
			}
			return ahead, dry.Add(time.Duration(ahead) * voice.FrameDuration), nil
		}
		q.space = make(chan struct{})
		space := q.space
		q.mu.Unlock()
		select {
		case <-space:
		case <-ctx.Done():
			return 0, time.Time{}, ctx.Err()
		}
	}
}

// add appends an item. For a packet it first waits for room, as awaitRoom does. It returns context.Canceled if
// the queue was cancelled, or the error of awaitRoom.
func (q *queue) add(ctx context.Context, it item) error {
	if it.packet != nil {
		if _, _, err := q.awaitRoom(ctx); err != nil { // no other goroutine adds items and takes the room
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cancelled {
		return context.Canceled
	}
	q.items = append(q.items, it)
	q.count(it)
	notify(q.added)
	return nil
}

// count updates the counts of packets and sentences for an added item. q.mu must be held.
func (q *queue) count(it item) {
	last := &q.sentence
	if n := len(q.later); n > 0 {
		last = &q.later[n-1]
	}
	switch {
	case it.packet != nil:
		q.packets++
		last.encoded++
	case it.sentence != nil:
		last.complete = true
		q.later = append(q.later, sentenceProgress{})
	case it.face == nil && it.gesture == nil:
		last.complete = true
	}
}

// peek returns the first item, and whether it must be performed at once instead of at its time. If ok is
// false, the queue is empty.
func (q *queue) peek() (it item, atOnce, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item{}, false, false
	}
	return q.items[0], q.skipped, true
}

// removeFirst removes the first item after it was performed. until is when the robot will have played all
// packets sent so far.
func (q *queue) removeFirst(until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return // the queue was cancelled in the meantime
	}
	switch first := q.items[0]; {
	case first.pause != nil:
		q.skipped = false
	case first.packet != nil:
		q.packets--
		q.sentence.sent++
		q.sentence.until = until
	case first.sentence != nil && len(q.later) > 0:
		q.sentence, q.later = q.later[0], q.later[1:]
	}
	q.items[0] = item{}
	q.items = q.items[1:]
	q.offerRoom()
}

// offerRoom wakes awaitRoom if the queue is less than half full. q.mu must be held.
func (q *queue) offerRoom() {
	if q.space != nil && q.packets < maxPackets/2 {
		close(q.space)
		q.space = nil
	}
}

// start records that tts start is about to be sent. It returns false if the queue was cancelled; then
// tts start must not be sent.
func (q *queue) start() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.cancelled {
		q.begun = true
	}
	return !q.cancelled
}

// stop records that tts stop is about to be sent.
func (q *queue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.begun = false
}

// skipToPause drops the items before the next pause, and makes the pause begin at once. Without a pause it does
// nothing.
func (q *queue) skipToPause() {
	q.mu.Lock()
	defer q.mu.Unlock()
	pause := slices.IndexFunc(q.items, func(it item) bool { return it.pause != nil })
	if pause < 0 {
		return
	}
	for _, it := range q.items[:pause] {
		switch {
		case it.packet != nil:
			q.packets--
		case it.sentence != nil:
			q.later = q.later[1:]
		}
	}
	q.items, q.skipped = q.items[pause:], true
	q.offerRoom()
	notify(q.added)
}

// Leftover is the state of a speech that was cancelled.
type Leftover struct {
	Speaking   bool     // tts start was sent, and tts stop was not
	Spoken     []string // sentences whose first packet was sent, and that Progress has not reported yet
	PlayedPart float64  // played part of the latest sentence begun, from 0 to 1
}

// cancel drops the items, makes add return context.Canceled from now on, and returns the state of the speech.
func (q *queue) cancel(now time.Time) Leftover {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cancelled, q.items, q.packets = true, nil, 0
	q.offerRoom()
	left := Leftover{Speaking: q.begun, Spoken: q.report.Spoken, PlayedPart: q.sentence.playedPart(now)}
	q.report = Progress{}
	return left
}

// record changes the report, and notifies its reader. It calls change with q.mu held.
func (q *queue) record(change func(*Progress)) {
	q.mu.Lock()
	change(&q.report)
	q.mu.Unlock()
	notify(q.reported)
}

// progress returns the report and begins a new one.
func (q *queue) progress() Progress {
	q.mu.Lock()
	defer q.mu.Unlock()
	report := q.report
	q.report = Progress{}
	return report
}
