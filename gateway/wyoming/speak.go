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
	// sentenceWithin bounds synthesizing and sending a sentence. A client that plays the
	// sound at once takes it no faster than it is spoken.
	sentenceWithin = time.Minute
	mostSamples    = 2048 // in one event
)

// format is the format of synthesized sound.
var format = wire.Format{Rate: voice.SpeakerRate, Width: 2, Channels: 1}

// synthesis is a text that is coming, cut into sentences.
type synthesis struct {
	speech    *thinker.Speech
	bytes     int
	sentences chan string // has room for the most sentences in limit.Said bytes
	options   voice.Options
}

// handleText collects a text while it is being spoken.
func (c *connection) handleText(e wire.Event) error {
	switch e.Type {
	case wire.TypeSynthesizeChunk:
		var t wire.Text
		if err := decode(e, &t); err != nil {
			return err
		}
		if c.synthesis == nil {
			return &failure{code: codeFormat, text: "A synthesize-chunk comes after a synthesize-start."}
		}
		return c.synthesizeText(c.synthesis, t.Text)
	case wire.TypeSynthesizeStop:
		if c.synthesis != nil {
			c.endSynthesis(c.synthesis)
			c.synthesis = nil
		}
		return nil
	case wire.TypeSynthesize:
		if c.synthesis != nil {
			return nil // the whole text of the stream, for servers without streaming
		}
	}
	var asked synthesize
	if err := decode(e, &asked); err != nil {
		return err
	}
	s, err := c.newSynthesis(asked)
	if err != nil {
		return err
	}
	if e.Type == wire.TypeSynthesize {
		if err := c.synthesizeText(s, asked.Text); err != nil {
			return err
		}
		c.endSynthesis(s)
		return c.queue(func(ctx context.Context) error { return c.speakAtOnce(ctx, s) })
	}
	if c.synthesis != nil {
		return &failure{code: codeFormat, text: "A synthesize-start comes after the synthesize-stop of the one before."}
	}
	c.synthesis = s
	return c.queue(func(ctx context.Context) error { return c.speakStream(ctx, s) })
}

// newSynthesis returns the synthesis for a request. The synthesizer chooses the voice: the
// name of a client's voice is ignored.
func (c *connection) newSynthesis(asked synthesize) (*synthesis, error) {
	if asked.Format != "" && asked.Format != "text" {
		return nil, &failure{code: codeFormat, text: "Only plain text is spoken here; its text_format is text."}
	}
	s := &synthesis{sentences: make(chan string, limit.Said), options: voice.Options{Language: c.o.Languages[0]}}
	if asked.Voice != nil && asked.Voice.Name == "" {
		var err error
		if s.options.Language, err = offeredLanguage(c.o.Languages, asked.Voice.Language); err != nil {
			return nil, err
		}
	}
	s.speech = thinker.NewSpeech(s.options.Language)
	return s, nil
}

// synthesizeText cuts more text into sentences.
func (c *connection) synthesizeText(s *synthesis, text string) error {
	if s.bytes += len(text); s.bytes > limit.Said {
		return tooLong()
	}
	c.cut(s, s.speech.Write(text))
	if s.speech.Full() {
		return &failure{code: codeLength, text: "That is more than is spoken at once: a hundred sentences are the most."}
	}
	return nil
}

// endSynthesis marks the end of the text, which is answered too.
func (c *connection) endSynthesis(s *synthesis) {
	c.cut(s, s.speech.Flush())
	c.countOwed(1)
	close(s.sentences)
}

// cut queues the sentences of some replies. An answer is owed for each.
func (c *connection) cut(s *synthesis, replies []agent.Reply) {
	for _, r := range replies {
		if sentence, ok := r.(agent.Say); ok {
			c.countOwed(1)
			s.sentences <- sentence.Text
		}
	}
}

// speakAtOnce answers a text with one sound.
func (c *connection) speakAtOnce(ctx context.Context, s *synthesis) error {
	if err := c.send(wire.TypeAudioStart, format, nil); err != nil {
		return err
	}
	if err := c.speakAll(ctx, s, c.speak); err != nil {
		return err
	}
	return c.send(wire.TypeAudioStop, nil, nil)
}

// speakStream answers each sentence with a sound, while more text comes.
func (c *connection) speakStream(ctx context.Context, s *synthesis) error {
	err := c.speakAll(ctx, s, func(ctx context.Context, sentence string, o voice.Options) error {
		if err := c.send(wire.TypeAudioStart, format, nil); err != nil {
			return err
		}
		if err := c.speak(ctx, sentence, o); err != nil {
			return err
		}
		return c.send(wire.TypeAudioStop, nil, nil)
	})
	if err != nil {
		return err
	}
	return c.send(wire.TypeSynthesizeStopped, nil, nil)
}

// speakAll speaks the sentences as they come, until the end of the text.
func (c *connection) speakAll(ctx context.Context, s *synthesis, speak func(context.Context, string, voice.Options) error) error {
	for {
		select {
		case sentence, more := <-s.sentences:
			if !more {
				c.countOwed(-1)
				return nil
			}
			if err := speak(ctx, sentence, s.options); err != nil {
				return err
			}
			c.countOwed(-1)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// speak sends the sound of a sentence as it is made.
func (c *connection) speak(ctx context.Context, sentence string, o voice.Options) error {
	err := c.s.synthesizers.run(ctx, sentenceWithin, func(within context.Context) error {
		sound := make([]byte, 0, 2*mostSamples)
		return c.o.Synthesizer.Synthesize(within, sentence, o, func(pcm []int16) error {
			for piece := range slices.Chunk(pcm, mostSamples) {
				if err := within.Err(); err != nil {
					return err
				}
				sound = sound[:0]
				for _, s := range piece {
					sound = binary.LittleEndian.AppendUint16(sound, uint16(s))
				}
				if err := c.send(wire.TypeAudioChunk, format, sound); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return failed(ctx, "The synthesizer did not speak.", err)
	}
	return nil
}
