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

// queue is the speech of one turn on its way from the turn, which makes it, to the player, which
// sends it. Once it is cancelled, late packets have nowhere to go: that is all there is to barge-in.
type queue struct {
	mu        sync.Mutex
	items     []item
	packets   int // in items
	cancelled bool
	hurried   bool               // to the pause: somebody answers already
	begun     bool               // the robot was made to speak and not yet stopped
	sentence  sentenceProgress   // the one being played
	later     []sentenceProgress // those after it, in items
	space     chan struct{}      // made by a turn that waits until the queue is shorter
	added     chan struct{}      // has one slot, filled by an addition
	report    Progress           // since the last
	reported  chan<- struct{}    // has one slot, filled by a report
}

// item is one step of a turn's speech. One field is set, and a packet's levels.
type item struct {
	face     *agent.Emotion
	sentence *string
	packet   []byte
	levels   voice.Levels
	gesture  *string        // to be published when it is reached
	pause    *time.Duration // stop speaking, for a question that waits so long
	end      bool
}

// Progress is what the player has done since it was last asked. It merges, so that nothing is missed.
type Progress struct {
	dialogue.Progress
	First time.Time // when the first packet left
}

// sentenceProgress is how far a sentence has come, in packets.
type sentenceProgress struct {
	made, sent int
	whole      bool      // none will be made any more
	until      time.Time // when those sent will have been played
}

// playedPart returns the part of a sentence that has been played. While it has not begun, the
// sentence before was played but for a moment.
func (s sentenceProgress) playedPart(now time.Time) float64 {
	if s.sent == 0 {
		return 1
	}
	waiting := int((s.until.Sub(now) + voice.FrameDuration - 1) / voice.FrameDuration)
	played := s.sent - max(0, waiting)
	switch {
	case played <= 0:
		return 0
	case s.whole && played >= s.made:
		return 1
	}
	return float64(played) / float64(s.made+1)
}

// mostPackets is how far a turn may synthesize ahead: 12 s of sound.
const mostPackets = 200

// poke fills a channel of one slot.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// room waits while the queue is full, and returns how many packets are in it and when the robot
// has played all of them. It returns context.Canceled once the queue was cancelled.
func (q *queue) room(ctx context.Context) (ahead int, dry time.Time, err error) {
	for {
		q.mu.Lock()
		switch {
		case q.cancelled:
			q.mu.Unlock()
			return 0, time.Time{}, context.Canceled
		case q.packets < mostPackets:
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

// add appends an item, a packet once there is room. It returns context.Canceled once the queue
// was cancelled.
func (q *queue) add(ctx context.Context, it item) error {
	if it.packet != nil {
		if _, _, err := q.room(ctx); err != nil { // only one turn fills it
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
	poke(q.added)
	return nil
}

// count counts an item that was added. q.mu is held.
func (q *queue) count(it item) {
	last := &q.sentence
	if n := len(q.later); n > 0 {
		last = &q.later[n-1]
	}
	switch {
	case it.packet != nil:
		q.packets++
		last.made++
	case it.sentence != nil:
		last.whole = true
		q.later = append(q.later, sentenceProgress{})
	case it.face == nil && it.gesture == nil:
		last.whole = true
	}
}

// first returns the first item, and whether it does not wait for its time.
func (q *queue) first() (it item, atOnce, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item{}, false, false
	}
	return q.items[0], q.hurried, true
}

// removeFirst removes the first item after it was sent. All that was sent will have been played
// at until.
func (q *queue) removeFirst(until time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return // cancelled while it was sent
	}
	switch first := q.items[0]; {
	case first.pause != nil:
		q.hurried = false
	case first.packet != nil:
		q.packets--
		q.sentence.sent++
		q.sentence.until = until
	case first.sentence != nil && len(q.later) > 0:
		q.sentence, q.later = q.later[0], q.later[1:]
	}
	q.items[0] = item{}
	q.items = q.items[1:]
	if q.space != nil && q.packets < mostPackets/2 {
		close(q.space)
		q.space = nil
	}
}

// start records that tts start is about to leave. If it returns false, it must not.
func (q *queue) start() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.cancelled {
		q.begun = true
	}
	return !q.cancelled
}

// stop records that tts stop has left.
func (q *queue) stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.begun = false
}

// hurry drops what precedes the next pause, which then comes at once.
func (q *queue) hurry() {
	q.mu.Lock()
	defer q.mu.Unlock()
	pause := slices.IndexFunc(q.items, func(it item) bool { return it.pause != nil })
	if pause < 0 {
		return
	}
	for _, it := range q.items[:pause] {
		if it.packet != nil {
			q.packets--
		}
	}
	q.items, q.hurried = q.items[pause:], true
	poke(q.added)
}

// Leftover is what cancelled speech leaves behind.
type Leftover struct {
	Speaking   bool     // the robot was made to speak and not stopped
	Spoken     []string // sentences that Progress has not reported
	PlayedPart float64  // of the last sentence begun
}

// cancel drops the items. Nothing is added or sent any more.
func (q *queue) cancel(now time.Time) Leftover {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cancelled, q.items, q.packets = true, nil, 0
	if q.space != nil {
		close(q.space)
		q.space = nil
	}
	left := Leftover{Speaking: q.begun, Spoken: q.report.Spoken, PlayedPart: q.sentence.playedPart(now)}
	q.report = Progress{}
	return left
}

// record merges what the player has done into the report.
func (q *queue) record(change func(*Progress)) {
	q.mu.Lock()
	change(&q.report)
	q.mu.Unlock()
	poke(q.reported)
}

// progress returns the report, and begins another.
func (q *queue) progress() Progress {
	q.mu.Lock()
	defer q.mu.Unlock()
	report := q.report
	q.report = Progress{}
	return report
}
