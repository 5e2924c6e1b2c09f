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

// Synthesize implements voice.Synthesizer. If the server supports streaming, Synthesize sends a
// long text in pieces, so that the first piece is played while the server synthesizes the next
// one. The timeout of the server does not include the time that out takes.
func (e *Engine) Synthesize(ctx context.Context, text string, o voice.Options, out func(pcm []int16) error) error {
	e.latestSynthesize.Store(&o)
	server, info, timeout, err := e.pick(ctx, synthesizeNeed(o))
	if err != nil {
		return err
	}
	chosen, err := server.chooseSynthesizer(info, o)
	if err != nil {
		return err
	}
	streaming := chosen.streaming && len(text) >= minStreamed
	var s *sound
	err = server.call(ctx, timeout, e.o.AnswerWithin, func(_ context.Context, c *call) error {
		if streaming {
			return sendPieces(c, chosen.voice, text)
		}
		return c.send(TypeSynthesize, Synthesize{Text: text, Voice: chosen.voice}, nil)
	}, func(c *call) error {
		arrival := voice.NewArrival(c.timeout)
		s = newSound(text, arrival, func(pcm []int16) error { return c.waitListener(func() error { return out(pcm) }) })
		// Create the resampler while the server works.
		s.converter.SetRate(int(e.rate.Load()))
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
		server.cachedInfo.Forget()
		return server.newFault("it answered without any sound; its own log may say why", errNotServed)
	}
	return nil
}

// minStreamed is the minimum length in bytes of a text that is sent in pieces. With a shorter text,
// streaming gains too little for the additional events.
const minStreamed = 161

// sendPieces sends a text in pieces. It also sends the whole text, as the protocol requires for
// servers that do not support streaming. A streaming server ignores the whole text.
func sendPieces(c *call, v *Voice, text string) error {
	if err := c.send(TypeSynthesizeStart, Synthesize{Voice: v}, nil); err != nil {
		return err
	}
	for _, p := range splitText(text) {
		if err := c.send(TypeSynthesizeChunk, Text{Text: p}, nil); err != nil {
			return err
		}
	}
	if err := c.send(TypeSynthesize, Synthesize{Text: text, Voice: v}, nil); err != nil {
		return err
	}
	return c.send(TypeSynthesizeStop, nil, nil)
}

// splitText splits a text after sentences, into pieces of at least 40 bytes except the last.
// Joined, the pieces are equal to the text.
func splitText(text string) (pieces []string) {
	const minPiece = 40
	start := 0
	for i, r := range text {
		end := i + utf8.RuneLen(r)
		switch {
		case end-start < minPiece || r == utf8.RuneError:
		case strings.ContainsRune("。！？\n", r), r == ' ' && strings.ContainsRune(".!?:;", rune(text[i-1])):
			pieces = append(pieces, text[start:end])
			start = end
		}
	}
	if start < len(text) {
		pieces = append(pieces, text[start:])
	}
	return pieces
}

// readSound passes the sound of the server to s until its end: the end of the first sound or,
// for a streamed text, a synthesize-stopped event after any number of sounds.
func readSound(c *call, s *sound, arrival *voice.Arrival, streaming bool) error {
	for {
		start := time.Now()
		trickles := s.converter.Sounded() && arrival.Trickles()
		// Only events with sound extend the time left, by a multiple of the sound's duration.
		if err := c.conn.SetReadDeadline(start.Add(arrival.Left())); err != nil {
			return err
		}
		event, err := c.read()
		arrival.Waited(time.Since(start))
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

// handleAudio handles an audio-start or audio-chunk event. If a chunk lacks the format, the
// format of the audio-start applies.
func handleAudio(event Event, s *sound) error {
	var f Format
	if err := event.Decode(&f); err != nil {
		return err
	}
	if event.Type == TypeAudioStart {
		s.samples.rest = s.samples.rest[:0] // drop an incomplete sample at the end of the previous sound
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
