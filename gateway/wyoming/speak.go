package wyoming

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"perch/agent"
	llm "perch/agent/thinker"
	"perch/voice"
	wire "perch/voice/wyoming"
)

const (
	// sentenceWithin is how long a sentence may take to be made and taken. Who
	// plays it as it comes takes as long as it lasts.
	sentenceWithin = time.Minute
	mostSamples    = 2048 // of sound in one event
)

// format of the sound we make.
var format = wire.Format{Rate: voice.SpeakerRate, Width: 2, Channels: 1}

// saying is text that is coming, cut into sentences as it comes.
type saying struct {
	speech    *llm.Speech
	bytes     int
	sentences chan string // holds all that mostText bytes can be cut into
	options   voice.Options
}

// takeText collects a text, which is spoken meanwhile.
func (v *visit) takeText(e wire.Event) error {
	switch e.Type {
	case wire.TypeSynthesizeChunk:
		var t wire.Text
		if err := decode(e, &t); err != nil {
			return err
		}
		if v.saying == nil {
			return &failure{code: codeFormat, text: "A synthesize-chunk comes after a synthesize-start."}
		}
		return v.say(v.saying, t.Text)
	case wire.TypeSynthesizeStop:
		if v.saying != nil {
			v.endSaying(v.saying)
			v.saying = nil
		}
		return nil
	case wire.TypeSynthesize:
		if v.saying != nil {
			return nil // the whole of the stream, for servers that take no parts
		}
	}
	var asked synthesize
	if err := decode(e, &asked); err != nil {
		return err
	}
	s, err := v.newSaying(asked)
	if err != nil {
		return err
	}
	if e.Type == wire.TypeSynthesize {
		if err := v.say(s, asked.Text); err != nil {
			return err
		}
		v.endSaying(s)
		return v.queue(func(ctx context.Context) error { return v.speakWhole(ctx, s) })
	}
	if v.saying != nil {
		return &failure{code: codeFormat, text: "A synthesize-start comes after the synthesize-stop of the one before."}
	}
	v.saying = s
	return v.queue(func(ctx context.Context) error { return v.speakStream(ctx, s) })
}

// newSaying takes how a text is to be spoken. A voice we did not list is left
// to the mouth's choice, as no name of a stranger's goes into an engine.
func (v *visit) newSaying(asked synthesize) (*saying, error) {
	if asked.Format != "" && asked.Format != "text" {
		return nil, &failure{code: codeFormat, text: "Only plain text is spoken here; its text_format is text."}
	}
	s := &saying{sentences: make(chan string, mostText), options: voice.Options{Language: v.s.o.Language}}
	if asked.Voice != nil && asked.Voice.Name == "" {
		var err error
		if s.options.Language, err = v.s.offered(asked.Voice.Language); err != nil {
			return nil, err
		}
	}
	if asked.Voice != nil && slices.Contains(v.s.o.Voices, asked.Voice.Name) {
		s.options.Voice = asked.Voice.Name
	}
	s.speech = llm.NewSpeech(s.options.Language)
	return s, nil
}

// say cuts more text into sentences. Each is an answer owed.
func (v *visit) say(s *saying, text string) error {
	if s.bytes += len(text); s.bytes > mostText {
		return tooLong()
	}
	v.cut(s, s.speech.Write(text))
	if s.speech.Full() {
		return &failure{code: codeLength, text: "That is more than is spoken at once: a hundred sentences are the most."}
	}
	return nil
}

// endSaying says that no more text comes. The end is answered too.
func (v *visit) endSaying(s *saying) {
	v.cut(s, s.speech.End())
	v.owe(1)
	close(s.sentences)
}

func (v *visit) cut(s *saying, replies []agent.Reply) {
	for _, r := range replies {
		if sentence, ok := r.(agent.Say); ok {
			v.owe(1)
			s.sentences <- sentence.Text
		}
	}
}

// speakWhole answers a text with one piece of sound.
func (v *visit) speakWhole(ctx context.Context, s *saying) error {
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
func (v *visit) speakStream(ctx context.Context, s *saying) error {
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
func (v *visit) speakAll(ctx context.Context, s *saying, speak func(context.Context, string, voice.Options) error) error {
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
func (v *visit) speak(ctx context.Context, sentence string, o voice.Options) error {
	leave, err := v.s.mouths.take(ctx)
	if err != nil {
		return err
	}
	defer leave()
	within, cancel := context.WithTimeout(ctx, sentenceWithin)
	defer cancel()
	sound := make([]byte, 0, 2*mostSamples)
	err = v.s.o.Mouth.Synthesize(within, sentence, o, func(pcm []int16) error {
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
