package wyoming

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"perch/agent"
	"perch/agent/thinker"
	"perch/limit"
	"perch/voice"
	wire "perch/voice/wyoming"
)

const (
	// sentenceTimeout is how long synthesizing and sending a sentence may take. It is long, because a client may read
	// the sound only as fast as it plays the sound.
	sentenceTimeout = time.Minute
	maxSamples      = 2048 // maximum number of samples in one event
)

// format is the format of synthesized sound.
var format = wire.Format{Rate: voice.SpeakerRate, Width: 2, Channels: 1}

// synthesis is a text that is being received and spoken.
type synthesis struct {
	speech    *thinker.Speech // splits the text into sentences
	bytes     int             // number of received bytes
	sentences chan string     // sentences to speak; closed at the end of the text; has room for all sentences of limit.Said bytes
	engine    voice.Synthesizer
	options   voice.Options
}

// handleText handles an event of a text to be spoken, which arrives at once or as a stream.
func (c *connection) handleText(e wire.Event) error {
	switch e.Type {
	case wire.TypeSynthesizeChunk:
		var t wire.Text
		if err := decode(e, &t); err != nil {
			return err
		}
		if c.synthesis == nil {
			return &failure{code: codeFormat, text: "A synthesize-chunk must follow a synthesize-start."}
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
			return nil // the event repeats the whole text of the stream, for servers without streaming
		}
	}
	var request synthesize
	if err := decode(e, &request); err != nil {
		return err
	}
	s, err := c.newSynthesis(request)
	if err != nil {
		return err
	}
	if e.Type == wire.TypeSynthesize {
		if err := c.synthesizeText(s, request.Text); err != nil {
			return err
		}
		c.endSynthesis(s)
		return c.queue(func(ctx context.Context) error { return c.speakAtOnce(ctx, s) })
	}
	if c.synthesis != nil {
		return &failure{code: codeFormat, text: "A synthesize-start must follow the synthesize-stop of the previous text."}
	}
	c.synthesis = s
	return c.queue(func(ctx context.Context) error { return c.speakStream(ctx, s) })
}

// newSynthesis returns the synthesis for a request. It ignores the language of a request that names a voice, and the name
// of a voice that the server does not have.
func (c *connection) newSynthesis(request synthesize) (*synthesis, error) {
	if request.Format != "" && request.Format != "text" {
		return nil, &failure{code: codeFormat, text: "Only plain text is spoken here; its text_format is text."}
	}
	wanted := wire.Voice{}
	if request.Voice != nil {
		wanted = *request.Voice
	}
	if wanted.Name != "" {
		wanted.Language = ""
	}
	engine, language, err := choose(c.o.Synthesizers, wanted.Name, wanted.Language)
	if err != nil {
		return nil, err
	}
	s := &synthesis{sentences: make(chan string, limit.Said), engine: engine, options: voice.Options{Language: language}}
	s.speech = thinker.NewSpeech(s.options.Language)
	return s, nil
}

// synthesizeText adds text to a synthesis, and queues the sentences that are complete.
func (c *connection) synthesizeText(s *synthesis, text string) error {
	if s.bytes += len(text); s.bytes > limit.Said {
		return tooLong()
	}
	c.queueSentences(s, s.speech.Write(text))
	if s.speech.Full() {
		return &failure{code: codeLength, text: "The text is too long to speak: a hundred sentences and 8000 letters are the most."}
	}
	return nil
}

// endSynthesis queues the sentences that remain, and marks the end of the text. One more response is then owed: the
// event that follows the last sound.
func (c *connection) endSynthesis(s *synthesis) {
	c.queueSentences(s, s.speech.Flush())
	c.countOwed(1)
	close(s.sentences)
}

// queueSentences queues the sentences among the replies, and counts a response as owed for each.
func (c *connection) queueSentences(s *synthesis, replies []agent.Reply) {
	for _, r := range replies {
		if sentence, ok := r.(agent.Say); ok {
			c.countOwed(1)
			s.sentences <- sentence.Text
		}
	}
}

// speakAtOnce sends the sound of the whole text between one audio-start and one audio-stop.
func (c *connection) speakAtOnce(ctx context.Context, s *synthesis) error {
	if err := c.send(wire.TypeAudioStart, format, nil); err != nil {
		return err
	}
	if err := c.speakAll(ctx, s, c.speak); err != nil {
		return err
	}
	return c.send(wire.TypeAudioStop, nil, nil)
}

// speakStream sends an audio-start, the sound and an audio-stop for each sentence, while more text is being received.
func (c *connection) speakStream(ctx context.Context, s *synthesis) error {
	err := c.speakAll(ctx, s, func(ctx context.Context, e voice.Synthesizer, sentence string, o voice.Options) error {
		if err := c.send(wire.TypeAudioStart, format, nil); err != nil {
			return err
		}
		if err := c.speak(ctx, e, sentence, o); err != nil {
			return err
		}
		return c.send(wire.TypeAudioStop, nil, nil)
	})
	if err != nil {
		return err
	}
	return c.send(wire.TypeSynthesizeStopped, nil, nil)
}

// speakAll calls speak with each sentence until the end of the text.
func (c *connection) speakAll(ctx context.Context, s *synthesis, speak func(context.Context, voice.Synthesizer, string, voice.Options) error) error {
	for {
		select {
		case sentence, more := <-s.sentences:
			if !more {
				c.countOwed(-1)
				return nil
			}
			if err := speak(ctx, s.engine, sentence, s.options); err != nil {
				return err
			}
			c.countOwed(-1)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// speak sends the sound of a sentence while the sentence is being synthesized. It logs and skips the parts of the
// sentence that the synthesizer cannot read.
func (c *connection) speak(ctx context.Context, e voice.Synthesizer, sentence string, o voice.Options) error {
	err := c.s.synthesizers.run(ctx, sentenceTimeout, func(limited context.Context) error {
		sound := make([]byte, 0, 2*maxSamples)
		return e.Synthesize(limited, sentence, o, func(pcm []int16) error {
			for piece := range slices.Chunk(pcm, maxSamples) {
				if err := limited.Err(); err != nil {
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
	switch {
	case errors.Is(err, voice.ErrText):
		c.log.Warn("part of a text is not spoken", "err", err)
	case err != nil:
		return failed(ctx, "The synthesizer did not speak.", err)
	}
	return nil
}
