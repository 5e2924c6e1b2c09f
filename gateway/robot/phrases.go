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

// Names of the phrases that a robot speaks when a turn fails or has to wait.
const (
	phraseMisheard  = "misheard"          // the utterance was not understood
	phraseFailed    = vision.PhraseFailed // a brain failed, or the recognizers or the strangers' slots stayed busy
	phraseAway      = "away"              // no brain can be reached
	phraseDeaf      = "deaf"              // no recognizer can be reached
	phraseMoment    = "moment"            // the recognizers are busy; the answer follows
	phraseUnhearing = "unhearing"         // the character does not hear; spoken rarely, so not synthesized ahead
	phraseStranger  = "stranger"          // brains answer adopted robots only; spoken rarely, so not synthesized ahead
)

// phrase is a short fixed sentence, encoded for playing.
type phrase struct {
	face    agent.Emotion
	text    string
	packets []playback.Packet // nil if the synthesizer has failed
}

// phrasebook holds the phrases in one voice. They are synthesized ahead, because robots speak them when
// engines fail.
type phrasebook struct {
	mu        sync.Mutex
	phrases   map[string]phrase // by name of the phrase
	preparing bool              // prepare is running or about to run
	complete  bool              // the latest prepare has synthesized all phrases
}

// claim reports whether phrases are missing and no prepare is running. If so, the caller must call
// prepare.
func (b *phrasebook) claim() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.preparing || b.complete {
		return false
	}
	b.preparing = true
	return true
}

// lookup returns a phrase, or false if prepare has not tried to synthesize the phrase yet. The phrase has no
// packets if the synthesizer has failed.
func (b *phrasebook) lookup(name string) (phrase, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.phrases[name]
	return p, ok
}

// prepare synthesizes the missing phrases. A phrase that cannot be synthesized is shown without sound until
// another call, when a robot connects, has synthesized it.
func (b *phrasebook) prepare(ctx context.Context, texts agent.Phrases, synthesizer voice.Synthesizer, o voice.Options, log *slog.Logger) {
	complete := true
	var failure error
	defer func() {
		if failure != nil {
			log.Warn("the appliance's own sentences could not be synthesized ahead; until they are, robots only show them", "err", failure)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.preparing, b.complete = false, complete
	}()
	for _, name := range []string{dialogue.PhraseAwake, phraseMisheard, phraseFailed, phraseAway, phraseDeaf, phraseMoment} {
		p := phrase{}
		p.face, p.text = agent.SplitEmotion(texts(o.Language, name))
		if p.text == "" {
			continue
		}
		if existing, ok := b.lookup(name); ok && len(existing.packets) > 0 {
			continue
		}
		o.Emotion = p.face.Name
		packets, err := synthesize(ctx, p.text, synthesizer, o)
		if err != nil && ctx.Err() == nil {
			failure = err
		}
		complete = complete && err == nil
		p.packets = packets
		b.mu.Lock()
		if b.phrases == nil {
			b.phrases = map[string]phrase{}
		}
		b.phrases[name] = p
		b.mu.Unlock()
	}
}

// synthesize returns a text as encoded speech.
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
		return nil, err // a part of a phrase is useless
	}
	return packets, nil
}

// maxVoices is how many voices of robots get a phrasebook, besides the default voice (Options.Speech). Each
// phrasebook takes memory.
const maxVoices = 16

// phrases holds the phrasebooks of all voices.
type phrases struct {
	life     *lifetime
	settings *settings
	log      *slog.Logger

	mu           sync.Mutex
	defaultVoice *phrasebook                   // phrases in the default voice
	others       map[voice.Options]*phrasebook // phrases in voices of robots that differ from the default voice
}

func newPhrases(l *lifetime, s *settings, log *slog.Logger) *phrases {
	p := &phrases{life: l, settings: s, log: log}
	p.reset()
	return p
}

// reset drops all phrases. It is called when the voices have changed.
func (p *phrases) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.defaultVoice, p.others = &phrasebook{}, map[voice.Options]*phrasebook{}
}

func (p *phrases) inDefaultVoice() *phrasebook {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.defaultVoice
}

// forVoice returns the phrasebook of a voice. For any voice but the default voice it also makes the missing
// phrases in the background. If maxVoices other voices have phrasebooks already, forVoice returns the
// phrasebook of the default voice.
func (p *phrases) forVoice(o voice.Options) *phrasebook {
	o.DetectLanguage, o.Deaf = false, false // concern recognition only, so the speech is the same
	p.mu.Lock()
	b, found := p.others[o]
	switch {
	case o == p.settings.current.Load().Speech || !found && len(p.others) == maxVoices:
		b = p.defaultVoice
		p.mu.Unlock()
		return b
	case !found:
		b = &phrasebook{}
		p.others[o] = b
	}
	p.mu.Unlock()
	p.fill(b, o)
	return b
}

// Prepare makes the missing phrases in the default voice, in the background.
func (p *phrases) Prepare() { p.fill(p.inDefaultVoice(), p.settings.current.Load().Speech) }

// fill makes the missing phrases of a phrasebook, in the background.
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
