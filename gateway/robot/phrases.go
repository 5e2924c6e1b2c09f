package robot

import (
	"context"
	"log/slog"
	"perch/gateway/robot/dialogue"
	"sync"

	"perch/agent"
	"perch/voice"
)

// sharedEncoder is the one encoder of a session. A cancelled turn may still be
// inside the synthesizer when the next one begins to speak, so it belongs to
// the latest turn that asked, and the others' sound goes nowhere.
type sharedEncoder struct {
	mu      sync.Mutex
	encoder *voice.Encoder
	owner   *turn
	turns   *encoders // all sessions'
	place   *place    // among them
}

// encode queues packets of a turn's sound, each as its time comes.
func (e *sharedEncoder) encode(ctx context.Context, t *turn, pcm []int16) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.claim(ctx, t); err != nil {
		return err
	}
	for n := e.encoder.Missing(); len(pcm) >= n; n = e.encoder.Missing() {
		if err := e.packet(ctx, t, pcm[:n]); err != nil {
			return err
		}
		pcm = pcm[n:]
	}
	return e.encoder.Encode(pcm, nil) // which is no packet yet
}

// flush queues a packet of what is left of it.
func (e *sharedEncoder) flush(ctx context.Context, t *turn) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.claim(ctx, t); err != nil || e.encoder.Empty() {
		return err
	}
	return e.packet(ctx, t, make([]int16, e.encoder.Missing()))
}

// packet queues the packet that is whole with pcm, once there is room for it and nobody
// needs one sooner. e.mu is held.
func (e *sharedEncoder) packet(ctx context.Context, t *turn, pcm []int16) error {
	ahead, dry, err := t.playback.room(ctx)
	if err != nil {
		return err
	}
	if err := e.turns.begin(ctx, e.place, ahead, dry); err != nil {
		return err
	}
	defer e.turns.end()
	return e.encoder.Encode(pcm, func(packet []byte) error {
		it := item{packet: append([]byte(nil), packet...)}
		if t.session.server.options.Loudness.Watched() {
			it.levels = e.encoder.Levels()
		}
		return t.playback.add(ctx, it)
	})
}

// claim gives the encoder to a turn, unless that was cancelled, as it is before the
// next begins. e.mu is held.
func (e *sharedEncoder) claim(ctx context.Context, t *turn) error {
	if ctx.Err() != nil {
		return context.Canceled
	}
	if e.owner != t {
		e.owner = t
		_ = e.encoder.Reset() // an encoder that cannot be reset fails on its next frame, where the error is returned
	}
	return nil
}

// The phrases' names.
const (
	phraseMisheard = "misheard" // an utterance that was not understood
	phraseFailed   = "failed"   // a brain failed the turn
	phraseAway     = "away"     // no brain can be reached
	phraseDeaf     = "deaf"     // no recognizer does
	phraseStranger = "stranger" // no brain answers a robot that nobody has adopted; rare, so synthesized when it is needed
	phraseBlind    = "blind"    // a picture that no brain can look at; shown, not spoken ahead
)

// phrase is one of them, ready to play.
type phrase struct {
	face    agent.Emotion
	text    string
	packets []item
}

// phrases are those of all voices.
type phrases struct {
	usual  *phrasebook                   // in the voice that is configured
	others map[voice.Options]*phrasebook // in robots' own
}

// phrasebook holds phrases synthesized ahead, to be spoken when no engine works.
type phrasebook struct {
	mu     sync.Mutex
	made   map[string]phrase
	making bool
	whole  bool
}

// begin reports whether the phrases are to be prepared now.
func (b *phrasebook) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.making || b.whole {
		return false
	}
	b.making = true
	return true
}

func (b *phrasebook) get(name string) (phrase, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.made[name]
	return p, ok
}

// prepare synthesizes the phrases. One that cannot be made is shown without
// sound, until the next robot comes and it is tried again.
func (b *phrasebook) prepare(ctx context.Context, texts agent.Phrases, synthesizer voice.Synthesizer, o voice.Options, log *slog.Logger) {
	whole := true
	var failure error
	defer func() {
		if failure != nil {
			log.Warn("the appliance's own sentences could not be synthesized ahead; they are only shown meanwhile", "err", failure)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.making, b.whole = false, whole
	}()
	for _, name := range []string{dialogue.PhraseAwake, phraseMisheard, phraseFailed, phraseAway, phraseDeaf} {
		p := phrase{}
		p.face, p.text = agent.SplitEmotion(texts(o.Language, name))
		if p.text == "" {
			continue
		}
		if made, there := b.get(name); there && len(made.packets) > 0 {
			continue
		}
		packets, err := synthesize(ctx, p.text, synthesizer, o)
		if err != nil && ctx.Err() == nil {
			failure = err
		}
		whole = whole && err == nil
		p.packets = packets
		b.mu.Lock()
		if b.made == nil {
			b.made = map[string]phrase{}
		}
		b.made[name] = p
		b.mu.Unlock()
	}
}

func synthesize(ctx context.Context, text string, synthesizer voice.Synthesizer, o voice.Options) ([]item, error) {
	encoder, err := voice.NewEncoder(voice.SpeakerRate)
	if err != nil {
		return nil, err
	}
	var packets []item
	keep := func(p []byte) error {
		packets = append(packets, item{packet: append([]byte(nil), p...), levels: encoder.Levels()})
		return nil
	}
	err = synthesizer.Synthesize(ctx, text, o, func(pcm []int16) error { return encoder.Encode(pcm, keep) })
	if err == nil {
		err = encoder.Flush(keep)
	}
	if err != nil {
		return nil, err // half a phrase is none
	}
	return packets, nil
}
