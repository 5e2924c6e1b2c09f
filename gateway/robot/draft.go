package robot

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"perch/agent"
	"perch/voice"
)

// draft is an answer that is begun in a pause, before it is certain that the utterance has ended, and the sound of its
// first sentence. The answer has effects, and the sound is played, only if the utterance ends with the pause and has the
// text that the draft answers.
type draft struct {
	text   string
	answer *agent.Draft
	cancel context.CancelFunc // discards the draft

	ctx         context.Context
	synthesizer voice.Synthesizer // nil if no sentence may be synthesized that nobody hears
	speech      voice.Options     // how the first sentence is spoken
	synthesis   sync.WaitGroup
	prepared    bool                     // whether first was set
	first       atomic.Pointer[sentence] // nil before the brain has sent it, and after take
}

// newDraft returns a draft of the answer to a turn. ctx discards it.
func newDraft(ctx context.Context, t agent.Turn, synthesizer voice.Synthesizer, speech voice.Options) *draft {
	d := &draft{text: t.Text, synthesizer: synthesizer, speech: speech}
	d.ctx, d.cancel = context.WithCancel(ctx)
	d.answer = agent.NewDraft(d.ctx, t, d.prepare)
	return d
}

// write has the mind write the draft. It returns when the draft is discarded, or its answer and sound are complete.
func (d *draft) write(m mind) {
	m.Write(d.answer)
	d.synthesis.Wait()
}

// prepare begins to synthesize the first sentence.
func (d *draft) prepare(r agent.Reply) {
	switch r := r.(type) {
	case agent.Felt:
		if d.speech.Emotion == "" || !r.Assumed {
			d.speech.Emotion = r.Emotion.Name
		}
	case agent.Say:
		if d.prepared || d.synthesizer == nil {
			return
		}
		d.prepared = true
		s := newSentence(d.ctx, r.Text, d.speech)
		d.first.Store(s)
		d.synthesis.Go(func() { s.synthesize(d.synthesizer) })
	}
}

// take returns the first sentence if it has this text and is spoken with these options, and otherwise nil. Later calls
// return nil. d may be nil.
func (d *draft) take(text string, o voice.Options) *sentence {
	if d == nil {
		return nil
	}
	s := d.first.Swap(nil)
	if s != nil && (s.text != text || s.options != o) {
		s.cancel()
		return nil
	}
	return s
}

// sentence is a sentence that is synthesized before it may be played.
type sentence struct {
	text    string
	options voice.Options
	ctx     context.Context
	cancel  context.CancelFunc
	pieces  chan []int16 // closed by synthesize
	err     error        // result of the synthesizer; read after pieces is closed
}

// maxPieces is how many pieces of sound are synthesized before the sentence is played.
const maxPieces = 64

func newSentence(ctx context.Context, text string, o voice.Options) *sentence {
	s := &sentence{text: text, options: o, pieces: make(chan []int16, maxPieces)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s
}

// synthesize has a synthesizer speak the sentence. It returns when play has got all sound, or after cancel.
func (s *sentence) synthesize(by voice.Synthesizer) {
	defer close(s.pieces)
	defer s.cancel()
	s.err = by.Synthesize(s.ctx, s.text, s.options, func(pcm []int16) error {
		select {
		case s.pieces <- slices.Clone(pcm):
			return nil
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	})
}

// play passes the sound to out, in the way of voice.Synthesizer.
func (s *sentence) play(ctx context.Context, out func(pcm []int16) error) error {
	defer s.cancel()
	for {
		select {
		case pcm, more := <-s.pieces:
			if !more {
				return s.err
			}
			if err := out(pcm); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
