package robot

import (
	"context"
	"log/slog"
	"perch/gateway/robot/dialogue"
	"perch/gateway/robot/playback"
	"perch/gateway/robot/vision"
	"sync"

	"perch/agent"
	"perch/voice"
)

// The phrases' names.
const (
	phraseMisheard = "misheard"          // an utterance that was not understood
	phraseFailed   = vision.PhraseFailed // a brain failed the turn
	phraseAway     = "away"              // no brain can be reached
	phraseDeaf     = "deaf"              // no recognizer does
	phraseStranger = "stranger"          // no brain answers a robot that nobody has adopted; rare, so synthesized when it is needed
)

// phrase is one of them, ready to play.
type phrase struct {
	face    agent.Emotion
	text    string
	packets []playback.Packet
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

func synthesize(ctx context.Context, text string, synthesizer voice.Synthesizer, o voice.Options) ([]playback.Packet, error) {
	encoder, err := voice.NewEncoder(voice.SpeakerRate)
	if err != nil {
		return nil, err
	}
	var packets []playback.Packet
	keep := func(p []byte) error {
		packets = append(packets, playback.Packet{Opus: append([]byte(nil), p...), Levels: encoder.Levels()})
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
