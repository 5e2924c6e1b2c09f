package robot

import (
	"context"
	"log/slog"
	"sync"

	"perch/agent"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/playback"
	"perch/gateway/robot/vision"
	"perch/voice"
)

// Names of phrases.
const (
	phraseMisheard = "misheard"          // an utterance that was not understood
	phraseFailed   = vision.PhraseFailed // a brain failed the turn
	phraseAway     = "away"              // no brain can be reached
	phraseDeaf     = "deaf"              // no recognizer does
	phraseStranger = "stranger"          // no brain answers a robot that nobody has adopted; rare, so synthesized when it is needed
)

// phrase is a short sentence of the appliance, ready to play.
type phrase struct {
	face    agent.Emotion
	text    string
	packets []playback.Packet
}

// phrasebook holds phrases synthesized ahead, to be spoken when no engine works.
type phrasebook struct {
	mu     sync.Mutex
	made   map[string]phrase
	making bool
	whole  bool
}

// claim reports whether the phrases are to be prepared now. Then prepare has to be called.
func (b *phrasebook) claim() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.making || b.whole {
		return false
	}
	b.making = true
	return true
}

// lookup returns a phrase if it was made, or at least tried.
func (b *phrasebook) lookup(name string) (phrase, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.made[name]
	return p, ok
}

// prepare synthesizes the phrases. A phrase that cannot be made is shown without sound, until the
// next robot comes and it is tried again.
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
		if made, there := b.lookup(name); there && len(made.packets) > 0 {
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

// synthesize returns the packets of a text.
func synthesize(ctx context.Context, text string, synthesizer voice.Synthesizer, o voice.Options) ([]playback.Packet, error) {
	encoder, err := voice.NewEncoder(voice.SpeakerRate)
	if err != nil {
		return nil, err
	}
	var packets []playback.Packet
	add := func(p []byte) error {
		packets = append(packets, playback.Packet{Opus: append([]byte(nil), p...), Levels: encoder.Levels()})
		return nil
	}
	err = synthesizer.Synthesize(ctx, text, o, func(pcm []int16) error { return encoder.Encode(pcm, add) })
	if err == nil {
		err = encoder.Flush(add)
	}
	if err != nil {
		return nil, err // half a phrase is of no use
	}
	return packets, nil
}

// mostVoices bounds the voices that phrases are made in.
const mostVoices = 16

// phrases are the phrases in all voices.
type phrases struct {
	life     *lifetime
	settings *settings
	log      *slog.Logger

	mu     sync.Mutex
	usual  *phrasebook                   // in the household's voice
	others map[voice.Options]*phrasebook // in those of robots
}

func newPhrases(l *lifetime, s *settings, log *slog.Logger) *phrases {
	p := &phrases{life: l, settings: s, log: log}
	p.reset()
	return p
}

// reset drops all phrases: the voices have changed.
func (p *phrases) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.usual, p.others = &phrasebook{}, map[voice.Options]*phrasebook{}
}

// household returns the phrases in the household's voice.
func (p *phrases) household() *phrasebook {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.usual
}

// in returns the phrases in a voice. Those in a new voice are being made.
func (p *phrases) in(o voice.Options) *phrasebook {
	o.Detect = false // all that is spoken is the same
	p.mu.Lock()
	b, known := p.others[o]
	switch {
	case o == p.settings.current.Load().Speech || !known && len(p.others) == mostVoices:
		b = p.usual
		p.mu.Unlock()
		return b
	case !known:
		b = &phrasebook{}
		p.others[o] = b
	}
	p.mu.Unlock()
	p.fill(b, o)
	return b
}

// Prepare makes the phrases in the household's voice that are not made yet: when a robot comes, or
// when somebody knows that one will.
func (p *phrases) Prepare() { p.fill(p.household(), p.settings.current.Load().Speech) }

// fill makes the phrases of a book that are not made yet.
func (p *phrases) fill(b *phrasebook, o voice.Options) {
	if !p.life.enter() {
		return
	}
	if !b.claim() {
		p.life.wg.Done()
		return
	}
	current, done := p.settings.acquire()
	go func() {
		defer p.life.wg.Done()
		defer done()
		b.prepare(p.life.ctx, current.Phrases, current.Synthesizer, o, p.log)
	}()
}
