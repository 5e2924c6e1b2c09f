package robot

import (
	"context"
	"sync"
	"time"

	"perch/agent"
)

// playback is the speech of one turn on its way from the turn, which makes
// it, to the writer, which plays it. Cancelling it leaves late packets with
// nowhere to go: that is all there is to barge-in.
type playback struct {
	mu        sync.Mutex
	queue     []item
	packets   int // in queue
	cancelled bool
	begun     bool          // the robot was made to speak and not yet told to stop
	room      chan struct{} // made by a turn that waits for room
	news      chan struct{} // poked when the queue was empty
	report    progress
	reported  chan<- struct{} // the loop's
}

// item is one step of a playback. Exactly one field is set.
type item struct {
	face     *agent.Emotion
	sentence *string
	packet   []byte
	pause    *time.Duration // stop speaking, for a question that waits so long
	end      bool
}

// progress is what the writer has done since the loop last looked. It merges:
// the loop may look late, but misses nothing.
type progress struct {
	started bool     // tts start has left
	began   bool     // the first packet has left
	said    []string // sentences whose first packet has left
	paused  bool     // stopped for a question, all played
	askFor  time.Duration
	drained bool // all played, to the end
	first   time.Time
}

// mostPackets is how far the turn may synthesize ahead: 12 s of sound.
const mostPackets = 200

func newPlayback(reported chan<- struct{}) *playback {
	return &playback{news: make(chan struct{}, 1), reported: reported}
}

// add queues an item. It waits while the queue is full, and returns
// context.Canceled once the playback was cancelled.
func (p *playback) add(ctx context.Context, it item) error {
	for {
		p.mu.Lock()
		switch {
		case p.cancelled:
			p.mu.Unlock()
			return context.Canceled
		case it.packet == nil || p.packets < mostPackets:
			p.queue = append(p.queue, it)
			if it.packet != nil {
				p.packets++
			}
			p.mu.Unlock()
			poke(p.news)
			return nil
		}
		p.room = make(chan struct{})
		room := p.room
		p.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ahead is how many packets wait to be played.
func (p *playback) ahead() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.packets
}

// poke wakes whoever waits on a channel of one slot, now or next time.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take removes the first item; the writer does, when its time has come.
func (p *playback) take() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return // cancelled meanwhile
	}
	if p.queue[0].packet != nil {
		p.packets--
	}
	p.queue[0] = item{}
	p.queue = p.queue[1:]
	if p.room != nil && p.packets < mostPackets/2 {
		close(p.room)
		p.room = nil
	}
}

// peek is the first item.
func (p *playback) peek() (item, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return item{}, false
	}
	return p.queue[0], true
}

// speak notes that tts start is about to leave. It reports false where the
// playback was cancelled: then it must not.
func (p *playback) speak() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cancelled {
		p.begun = true
	}
	return !p.cancelled
}

// silent notes that tts stop has left.
func (p *playback) silent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = false
}

// cancel drops what is queued and reports whether the robot was left speaking.
func (p *playback) cancel() (speaking bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancelled, p.queue, p.packets = true, nil, 0
	if p.room != nil {
		close(p.room)
		p.room = nil
	}
	return p.begun
}

// note merges what the writer has done into the report and wakes the loop.
func (p *playback) note(done func(*progress)) {
	p.mu.Lock()
	done(&p.report)
	p.mu.Unlock()
	poke(p.reported)
}

// progress takes the report.
func (p *playback) progress() progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	report := p.report
	p.report = progress{}
	return report
}
