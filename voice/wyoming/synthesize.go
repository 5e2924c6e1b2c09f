package wyoming

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"perch/voice"
)

// Synthesize implements voice.Synthesizer. A long text is sent in pieces to a server that
// streams, so that the first is played while the next is made. The listener's time does
// not count as the server's.
func (e *Engine) Synthesize(ctx context.Context, text string, o voice.Options, out func(pcm []int16) error) error {
	e.synthesizeWith.Store(&o)
	at, info, within, err := e.pick(ctx, toSynthesize(o))
	if err != nil {
		return err
	}
	m, err := at.chooseSynthesizer(info, o)
	if err != nil {
		return err
	}
	streaming := m.streaming && len(text) > longText
	var s *sound
	err = at.talk(ctx, within, e.o.AnswerWithin, func(_ context.Context, c *call) error {
		if streaming {
			return sendPieces(c, m.voice, text)
		}
		return c.send(TypeSynthesize, Synthesize{Text: text, Voice: m.voice}, nil)
	}, func(c *call) error {
		arrival := voice.NewArrival(c.within)
		s = newSound(text, arrival, func(pcm []int16) error { return c.unhurried(func() error { return out(pcm) }) })
		// The resampler is made while the server works.
		s.converter.Rate(int(e.rate.Load()))
		return readSound(c, s, arrival, streaming)
	})
	if err != nil {
		return err
	}
	if s.converter.Sounded() {
		e.rate.Store(int64(s.format.Rate))
		return nil
	}
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		at.served.Forget()
		return at.faulty("it answered without any sound; its own log may say why", errNotServed)
	}
	return nil
}

// longText is the least length of a streamed text, in bytes. A sentence is not worth
// the five events.
const longText = 160

// sendPieces streams a text to the server. It also sends the whole text, which the
// protocol requires for other servers; a streaming server ignores it.
func sendPieces(c *call, v *Voice, text string) error {
	if err := c.send(TypeSynthesizeStart, Synthesize{Voice: v}, nil); err != nil {
		return err
	}
	for _, p := range pieces(text) {
		if err := c.send(TypeSynthesizeChunk, Text{Text: p}, nil); err != nil {
			return err
		}
	}
	if err := c.send(TypeSynthesize, Synthesize{Text: text, Voice: v}, nil); err != nil {
		return err
	}
	return c.send(TypeSynthesizeStop, nil, nil)
}

// pieces cuts a text after its sentences. Joined, the pieces are the text, byte for byte.
func pieces(text string) []string {
	var all []string
	from := 0
	for i, r := range text {
		end := i + utf8.RuneLen(r)
		switch {
		case end-from < longText/4 || r == utf8.RuneError:
		case strings.ContainsRune("。！？\n", r), r == ' ' && strings.ContainsRune(".!?:;", rune(text[i-1])):
			all = append(all, text[from:end])
			from = end
		}
	}
	if from < len(text) {
		all = append(all, text[from:])
	}
	return all
}

// readSound passes the server's sound on until the end: one sound for a whole text; for a
// streamed text any number of sounds and a last event.
func readSound(c *call, s *sound, arrival *voice.Arrival, streaming bool) error {
	for {
		waiting := time.Now()
		trickles := s.converter.Sounded() && arrival.Trickles()
		// An event without sound adds no time, and one with little adds little.
		if err := c.conn.SetReadDeadline(waiting.Add(arrival.Left())); err != nil {
			return err
		}
		event, err := c.read()
		arrival.Waited(time.Since(waiting))
		if errors.Is(err, os.ErrDeadlineExceeded) && trickles {
			return reason("its sound comes far slower than it is played; is it overloaded, or too slow for this voice?")
		}
		if err != nil {
			return err
		}
		switch event.Type {
		case TypeAudioStart, TypeAudioChunk:
			if err := handleAudio(event, s); err != nil {
				return err
			}
			if event.Type == TypeAudioChunk && len(event.Payload) > 0 {
				c.empty = 0
			}
		case TypeAudioStop:
			if !streaming {
				return nil
			}
		case TypeSynthesizeStopped:
			return nil
		}
	}
}

// handleAudio handles an audio-start or audio-chunk. Both name the format; a chunk without one
// has its start's.
func handleAudio(event Event, s *sound) error {
	var f Format
	if err := event.Decode(&f); err != nil {
		return err
	}
	if event.Type == TypeAudioStart {
		s.samples.rest = s.samples.rest[:0] // an incomplete sample at the end of a sentence is lost
	}
	if event.Type == TypeAudioStart || f != (Format{}) {
		if err := s.setFormat(f); err != nil {
			return err
		}
	}
	if s.format.Channels == 0 && len(event.Payload) > 0 {
		return reason("its sound has no format; is it a Wyoming server?")
	}
	return s.add(event.Payload)
}
