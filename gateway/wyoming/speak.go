package wyoming

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/limit"
	"perch/voice"
	wire "perch/voice/wyoming"
)

const (
	// sentenceWithin is how long a sentence may take to be made and taken. A
	// client that plays it as it comes takes as long as it lasts.
	sentenceWithin = time.Minute
	mostSamples    = 2048 // of sound in one event
)

// format of the sound we make.
var format = wire.Format{Rate: voice.SpeakerRate, Width: 2, Channels: 1}

// synthesis is text that is coming, cut into sentences as it comes.
type synthesis struct {
	speech    *thinker.Speech
	bytes     int
	sentences chan string // holds all that limit.Said bytes can be cut into
	options   voice.Options
}

// takeText collects a text, which is spoken meanwhile.
func (v *connection) takeText(e wire.Event) error {
	switch e.Type {
	case wire.TypeSynthesizeChunk:
		var t wire.Text
		if err := decode(e, &t); err != nil {
			return err
		}
		if v.synthesis == nil {
			return &failure{code: codeFormat, text: "A synthesize-chunk comes after a synthesize-start."}
		}
		return v.synthesizeText(v.synthesis, t.Text)
	case wire.TypeSynthesizeStop:
		if v.synthesis != nil {
			v.endSynthesis(v.synthesis)
			v.synthesis = nil
		}
		return nil
	case wire.TypeSynthesize:
		if v.synthesis != nil {
			return nil // the whole of the stream, for servers that take no parts
		}
	}
	var asked synthesize
	if err := decode(e, &asked); err != nil {
		return err
	}
	s, err := v.newSynthesis(asked)
	if err != nil {
		return err
	}
	if e.Type == wire.TypeSynthesize {
		if err := v.synthesizeText(s, asked.Text); err != nil {
			return err
		}
		v.endSynthesis(s)
		return v.queue(func(ctx context.Context) error { return v.speakAtOnce(ctx, s) })
	}
	if v.synthesis != nil {
		return &failure{code: codeFormat, text: "A synthesize-start comes after the synthesize-stop of the one before."}
	}
	v.synthesis = s
	return v.queue(func(ctx context.Context) error { return v.speakStream(ctx, s) })
}

// newSynthesis takes how a text is to be spoken. The synthesizer chooses the
// voice: a client's text never names an engine's.
func (v *connection) newSynthesis(asked synthesize) (*synthesis, error) {
	if asked.Format != "" && asked.Format != "text" {
		return nil, &failure{code: codeFormat, text: "Only plain text is spoken here; its text_format is text."}
	}
	s := &synthesis{sentences: make(chan string, limit.Said), options: voice.Options{Language: v.o.Languages[0]}}
	if asked.Voice != nil && asked.Voice.Name == "" {
		var err error
		if s.options.Language, err = offered(v.o.Languages, asked.Voice.Language); err != nil {
			return nil, err
		}
	}
	s.speech = thinker.NewSpeech(s.options.Language)
	return s, nil
}

// synthesizeText cuts more text into sentences. Each is an answer owed.
func (v *connection) synthesizeText(s *synthesis, text string) error {
	if s.bytes += len(text); s.bytes > limit.Said {
		return tooLong()
	}
	v.cut(s, s.speech.Write(text))
	if s.speech.Full() {
		return &failure{code: codeLength, text: "That is more than is spoken at once: a hundred sentences are the most."}
	}
	return nil
}

// endSynthesis marks the end of the text. The end is answered too.
func (v *connection) endSynthesis(s *synthesis) {
	v.cut(s, s.speech.Flush())
	v.owe(1)
	close(s.sentences)
}

func (v *connection) cut(s *synthesis, replies []agent.Reply) {
	for _, r := range replies {
		if sentence, ok := r.(agent.Say); ok {
			v.owe(1)
			s.sentences <- sentence.Text
		}
	}
}

// speakAtOnce answers a text with one piece of sound.
func (v *connection) speakAtOnce(ctx context.Context, s *synthesis) error {
	if err := v.send(wire.TypeAudioStart, format, nil); err != nil {
		return err
	}
	if err := v.speakAll(ctx, s, v.speak); err != nil {
		return err
	}
	return v.send(wire.TypeAudioStop, nil, nil)
}

// speakStream answers each sentence with a piece of sound, while more text
// comes.
func (v *connection) speakStream(ctx context.Context, s *synthesis) error {
	err := v.speakAll(ctx, s, func(ctx context.Context, sentence string, o voice.Options) error {
		if err := v.send(wire.TypeAudioStart, format, nil); err != nil {
			return err
		}
		if err := v.speak(ctx, sentence, o); err != nil {
			return err
		}
		return v.send(wire.TypeAudioStop, nil, nil)
	})
	if err != nil {
		return err
	}
	return v.send(wire.TypeSynthesizeStopped, nil, nil)
}

// speakAll speaks the sentences as they come, until no more do.
func (v *connection) speakAll(ctx context.Context, s *synthesis, speak func(context.Context, string, voice.Options) error) error {
	for {
		select {
		case sentence, more := <-s.sentences:
			if !more {
				v.owe(-1)
				return nil
			}
			if err := speak(ctx, sentence, s.options); err != nil {
				return err
			}
			v.owe(-1)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// speak sends the sound of a sentence as it is made.
func (v *connection) speak(ctx context.Context, sentence string, o voice.Options) error {
	leave, err := v.s.synthesizers.acquire(ctx)
	if err != nil {
		return err
	}
	defer leave()
	within, cancel := context.WithTimeout(ctx, sentenceWithin)
	defer cancel()
	sound := make([]byte, 0, 2*mostSamples)
	err = v.o.Synthesizer.Synthesize(within, sentence, o, func(pcm []int16) error {
		for piece := range slices.Chunk(pcm, mostSamples) {
			if err := within.Err(); err != nil {
				return err
			}
			sound = sound[:0]
			for _, s := range piece {
				sound = binary.LittleEndian.AppendUint16(sound, uint16(s))
			}
			if err := v.send(wire.TypeAudioChunk, format, sound); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return failed(ctx, "The synthesizer did not speak.", err)
	}
	return nil
}
