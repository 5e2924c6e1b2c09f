package playback

import (
	"context"
	"sync"
	"time"

	"perch/agent"
	"perch/voice"
)

// encoder is the Opus encoder of a session, which its turns use one after the other. A cancelled turn may
// still be synthesizing when the next turn begins to speak; the sound of the cancelled turn is then
// rejected.
type encoder struct {
	loudness  *voice.Loudness // reports whether anybody needs the levels of packets
	scheduler *Scheduler

	mu     sync.Mutex
	codec  *voice.Encoder
	owner  *queue // speech whose sound is in codec
	waiter *waiter
}

// encode encodes 24 kHz PCM and queues the complete packets. It waits for room in the queue and for the
// scheduler.
func (e *encoder) encode(ctx context.Context, q *queue, pcm []int16) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.claim(ctx, q); err != nil {
		return err
	}
	for n := e.codec.Missing(); len(pcm) >= n; n = e.codec.Missing() {
		if err := e.encodePacket(ctx, q, pcm[:n]); err != nil {
			return err
		}
		pcm = pcm[n:]
	}
	return e.codec.Encode(pcm, nil) // sound that is shorter than a packet stays in the codec
}

// flush queues a packet with the sound that is still in the codec, filled up with silence. It does nothing if
// the codec has no sound of q.
func (e *encoder) flush(ctx context.Context, q *queue) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.claim(ctx, q); err != nil || e.codec.Empty() {
		return err
	}
	return e.encodePacket(ctx, q, make([]int16, e.codec.Missing()))
}

// encodePacket encodes the packet that pcm completes, and queues it. It waits until there is room for the
// packet, and until the scheduler lets it encode. e.mu must be held.
func (e *encoder) encodePacket(ctx context.Context, q *queue, pcm []int16) error {
	ahead, dry, err := q.awaitRoom(ctx)
	if err != nil {
		return err
	}
	if err := e.scheduler.acquire(ctx, e.waiter, ahead, dry); err != nil {
		return err
	}
	defer e.scheduler.release()
	return e.codec.Encode(pcm, func(packet []byte) error {
		it := item{packet: append([]byte(nil), packet...)}
		if e.loudness.Watched() && !q.shut {
			it.levels = e.codec.Levels()
		}
		return q.add(ctx, it)
	})
}

// claim makes a speech the owner of the encoder, and drops another speech's sound from the codec. It returns
// context.Canceled if ctx, the context of the turn, has ended. A turn is always cancelled before the next one
// begins, so the latest turn keeps the encoder. e.mu must be held.
func (e *encoder) claim(ctx context.Context, q *queue) error {
	if ctx.Err() != nil {
		return context.Canceled
	}
	if e.owner != q {
		e.owner = q
		_ = e.codec.Reset() // if this fails, the next call of Encode returns the error
	}
	return nil
}

// Speech is the speech of a turn. Its methods append to the speech, and must be called by one goroutine only.
// They return context.Canceled once the speech was cancelled.
type Speech struct {
	queue   *queue
	encoder *encoder
}

// Packet is an Opus packet with 60 ms of sound, such as a part of a phrase that is encoded only once.
type Packet struct {
	Opus   []byte
	Levels voice.Levels // loudness of the sound
}

// Face sets the robot's face from the next sentence on.
func (s *Speech) Face(ctx context.Context, e agent.Emotion) error {
	return s.queue.add(ctx, item{face: &e})
}

// Sentence shows a sentence, whose sound must follow. An empty sentence precedes a sound that is not speech.
func (s *Speech) Sentence(ctx context.Context, text string) error {
	return s.queue.add(ctx, item{sentence: &text})
}

// KeepMouthShut makes the sound that follows move no mouth, as music does not.
func (s *Speech) KeepMouthShut() { s.queue.shut = true }

// Gesture reports a gesture in the player's progress once everything before the gesture was sent.
func (s *Speech) Gesture(ctx context.Context, name string) error {
	return s.queue.add(ctx, item{gesture: &name})
}

// Sound appends 24 kHz PCM. It waits while too much is queued. Sound that is shorter than a packet stays in
// the encoder, so that the next sentence follows without a click.
func (s *Speech) Sound(ctx context.Context, pcm []int16) error {
	return s.encoder.encode(ctx, s.queue, pcm)
}

// Flush appends the sound that is still in the encoder, filled up with silence to a whole packet.
func (s *Speech) Flush(ctx context.Context) error { return s.encoder.flush(ctx, s.queue) }

// Packets appends packets.
func (s *Speech) Packets(ctx context.Context, packets []Packet) error {
	for _, p := range packets {
		if err := s.queue.add(ctx, item{packet: p.Opus, levels: p.Levels}); err != nil {
			return err
		}
	}
	return nil
}

// Pause ends a question: the robot stops speaking. within is how long the question waits for an answer.
func (s *Speech) Pause(ctx context.Context, within time.Duration) error {
	return s.queue.add(ctx, item{pause: &within})
}

// Finish ends the speech.
func (s *Speech) Finish(ctx context.Context) error { return s.queue.add(ctx, item{end: true}) }
