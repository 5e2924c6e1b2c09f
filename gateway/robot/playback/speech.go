package playback

import (
	"context"
	"sync"
	"time"

	"perch/agent"
	"perch/voice"
)

// encoder is the one encoder of a session. A cancelled turn may still be inside the synthesizer
// when the next one begins to speak, so it belongs to the latest speech that asked, and the sound
// of the others goes nowhere.
type encoder struct {
	loudness *voice.Loudness // is given the levels of packets
	shared   *Scheduler

	mu     sync.Mutex
	codec  *voice.Encoder
	owner  *queue
	waiter *place
}

// encode queues packets of sound, each as its time comes.
func (e *encoder) encode(ctx context.Context, q *queue, pcm []int16) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.claim(ctx, q); err != nil {
		return err
	}
	for n := e.codec.Missing(); len(pcm) >= n; n = e.codec.Missing() {
		if err := e.packet(ctx, q, pcm[:n]); err != nil {
			return err
		}
		pcm = pcm[n:]
	}
	return e.codec.Encode(pcm, nil) // which is not a whole packet yet
}

// flush queues a packet with the rest of the sound.
func (e *encoder) flush(ctx context.Context, q *queue) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.claim(ctx, q); err != nil || e.codec.Empty() {
		return err
	}
	return e.packet(ctx, q, make([]int16, e.codec.Missing()))
}

// packet queues the packet that pcm completes, once there is room for it and nobody needs one
// sooner. e.mu is held.
func (e *encoder) packet(ctx context.Context, q *queue, pcm []int16) error {
	ahead, dry, err := q.room(ctx)
	if err != nil {
		return err
	}
	if err := e.shared.acquire(ctx, e.waiter, ahead, dry); err != nil {
		return err
	}
	defer e.shared.release()
	return e.codec.Encode(pcm, func(packet []byte) error {
		it := item{packet: append([]byte(nil), packet...)}
		if e.loudness.Watched() {
			it.levels = e.codec.Levels()
		}
		return q.add(ctx, it)
	})
}

// claim gives the encoder to a turn's speech, unless that turn was cancelled, as it is before the
// next begins. e.mu is held.
func (e *encoder) claim(ctx context.Context, q *queue) error {
	if ctx.Err() != nil {
		return context.Canceled
	}
	if e.owner != q {
		e.owner = q
		_ = e.codec.Reset() // if it cannot be reset, its next frame returns the error
	}
	return nil
}

// Speech is what a turn gives a robot to speak, in order. One goroutine calls its methods. They
// return context.Canceled once the speech was cancelled.
type Speech struct {
	queue   *queue
	encoder *encoder
}

// Packet is an Opus packet of 60 ms that was made ahead.
type Packet struct {
	Opus   []byte
	Levels voice.Levels
}

// Face shows an emotion from the next sentence on.
func (s *Speech) Face(ctx context.Context, e agent.Emotion) error {
	return s.queue.add(ctx, item{face: &e})
}

// Sentence shows a sentence; its sound follows. An empty one precedes a sound that is no speech.
func (s *Speech) Sentence(ctx context.Context, text string) error {
	return s.queue.add(ctx, item{sentence: &text})
}

// Gesture makes a gesture when the robot has played what precedes it.
func (s *Speech) Gesture(ctx context.Context, name string) error {
	return s.queue.add(ctx, item{gesture: &name})
}

// Sound adds 24 kHz PCM, and waits while too much is queued. A rest shorter than a packet stays in
// the encoder, so that sentences join without a click.
func (s *Speech) Sound(ctx context.Context, pcm []int16) error {
	return s.encoder.encode(ctx, s.queue, pcm)
}

// Flush adds the rest of the sound.
func (s *Speech) Flush(ctx context.Context) error { return s.encoder.flush(ctx, s.queue) }

// Packets adds sound that was encoded ahead.
func (s *Speech) Packets(ctx context.Context, packets []Packet) error {
	for _, p := range packets {
		if err := s.queue.add(ctx, item{packet: p.Opus, levels: p.Levels}); err != nil {
			return err
		}
	}
	return nil
}

// Pause stops speaking, for a question whose answer may take so long.
func (s *Speech) Pause(ctx context.Context, within time.Duration) error {
	return s.queue.add(ctx, item{pause: &within})
}

// Finish says that nothing follows.
func (s *Speech) Finish(ctx context.Context) error { return s.queue.add(ctx, item{end: true}) }
