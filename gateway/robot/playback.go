package robot

import (
	"context"
	"slices"
	"sync"
	"time"

	"perch/agent"
	"perch/voice"
)

// playback is the speech of one turn on its way from the turn, which makes
// it, to the writer, which plays it. Cancelling it leaves late packets with
// nowhere to go: that is all there is to barge-in.
type playback struct {
	mu        sync.Mutex
	queue     []item
	packets   int // in queue
	cancelled bool
	hurried   bool               // to the pause: somebody answers already
	restarts  bool               // the robot is to be made to speak once more
	begun     bool               // the robot was made to speak and not yet stopped
	sentence  sentenceProgress   // the one being played
	later     []sentenceProgress // those after it, in the queue
	space     chan struct{}      // made by a turn that waits until the queue is shorter
	news      chan struct{}      // poked when the queue was empty
	report    playbackProgress
	reported  chan<- struct{} // the loop's
}

// spoken is how far a sentence has come, in packets.
type sentenceProgress struct {
	made, sent int
	whole      bool      // none will be made any more
	until      time.Time // when those sent will have been played
}

// playedPart is the part of a sentence that has been played. While it has not
// begun, the sentence before was played but for a moment.
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

// item is one step of a playback. Exactly one field is set, and a packet's levels.
type item struct {
	face     *agent.Emotion
	sentence *string
	packet   []byte
	levels   voice.Levels
	gesture  *string        // to be published when it is reached
	pause    *time.Duration // stop speaking, for a question that waits so long
	end      bool
}

// progress is what the writer has done since the loop last looked. It merges:
// the loop may look late, but misses nothing.
type playbackProgress struct {
	started bool     // tts start has left
	began   bool     // the first packet has left
	spoken  []string // sentences whose first packet has left
	gesture string   // the latest that was reached
	paused  bool     // stopped for a question, all played, and not gone on since
	stopped bool     // stopped for a question
	askFor  time.Duration
	drained bool // all played, to the end
	first   time.Time
}

// mostPackets is how far the turn may synthesize ahead: 12 s of sound.
const mostPackets = 200

func newPlayback(reported chan<- struct{}) *playback {
	return &playback{news: make(chan struct{}, 1), reported: reported}
}

// room waits while the queue is full, and returns how many packets are in it and when the
// robot has played all of them. It returns context.Canceled once the playback was cancelled.
func (p *playback) room(ctx context.Context) (ahead int, dry time.Time, err error) {
	for {
		p.mu.Lock()
		switch {
		case p.cancelled:
			p.mu.Unlock()
			return 0, time.Time{}, context.Canceled
		case p.packets < mostPackets:
			ahead, dry = p.packets, p.sentence.until
			p.mu.Unlock()
			if now := time.Now(); dry.Before(now) {
				dry = now
			}
			return ahead, dry.Add(time.Duration(ahead) * voice.FrameDuration), nil
		}
		p.space = make(chan struct{})
		space := p.space
		p.mu.Unlock()
		select {
		case <-space:
		case <-ctx.Done():
			return 0, time.Time{}, ctx.Err()
		}
	}
}

// add queues an item, a packet once there is room. It returns context.Canceled once the
// playback was cancelled.
func (p *playback) add(ctx context.Context, it item) error {
	if it.packet != nil {
		if _, _, err := p.room(ctx); err != nil { // only one turn fills it
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancelled {
		return context.Canceled
	}
	p.queue = append(p.queue, it)
	p.count(it)
	poke(p.news)
	return nil
}

// count keeps account of an item that was queued.
func (p *playback) count(it item) {
	last := &p.sentence
	if n := len(p.later); n > 0 {
		last = &p.later[n-1]
	}
	switch {
	case it.packet != nil:
		p.packets++
		last.made++
	case it.sentence != nil:
		last.whole = true
		p.later = append(p.later, sentenceProgress{})
	case it.face == nil && it.gesture == nil:
		last.whole = true
	}
}

// poke wakes the goroutine that waits on a channel of one slot, now or next time.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take removes the first item; the writer does, when its time has come. All
// that was sent will have been played at until.
func (p *playback) take(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return // cancelled meanwhile
	}
	switch first := p.queue[0]; {
	case first.pause != nil:
		p.hurried = false
	case first.packet != nil:
		p.packets--
		p.sentence.sent++
		p.sentence.until = until
	case first.sentence != nil && len(p.later) > 0:
		p.sentence, p.later = p.later[0], p.later[1:]
	}
	p.queue[0] = item{}
	p.queue = p.queue[1:]
	if p.space != nil && p.packets < mostPackets/2 {
		close(p.space)
		p.space = nil
	}
}

// peek is the first item, and whether it is not to wait for its time.
func (p *playback) peek() (it item, atOnce, there bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return item{}, false, false
	}
	return p.queue[0], p.hurried, true
}

// speak notes that tts start is about to leave. If it is false, it must not.
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

// hurry drops what is queued before the next pause, and has that come at once.
func (p *playback) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := slices.IndexFunc(p.queue, func(it item) bool { return it.pause != nil })
	if pause < 0 {
		return
	}
	for _, it := range p.queue[:pause] {
		if it.packet != nil {
			p.packets--
		}
	}
	p.queue, p.hurried = p.queue[pause:], true
	poke(p.news)
}

// startAgain has the writer make the robot speak once more, if it does yet.
func (p *playback) restartSpeech() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarts = true
	poke(p.news)
}

// restart reports, once, whether the robot is to be made to speak again.
func (p *playback) restart() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := p.restarts && p.begun
	p.restarts = false
	return again
}

// leftover is what a cancelled playback leaves behind.
type leftover struct {
	speaking   bool             // the robot was made to speak and not stopped
	report     playbackProgress // that the loop has not looked at
	playedPart float64          // the part of the last sentence begun that was played
}

// cancel drops what is queued.
func (p *playback) cancel(now time.Time) leftover {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancelled, p.queue, p.packets = true, nil, 0
	if p.space != nil {
		close(p.space)
		p.space = nil
	}
	left := leftover{speaking: p.begun, report: p.report, playedPart: p.sentence.playedPart(now)}
	p.report = playbackProgress{}
	return left
}

// note merges what the writer has done into the report and wakes the loop.
func (p *playback) note(done func(*playbackProgress)) {
	p.mu.Lock()
	done(&p.report)
	p.mu.Unlock()
	poke(p.reported)
}

// progress takes the report.
func (p *playback) takeProgress() playbackProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	report := p.report
	p.report = playbackProgress{}
	return report
}
