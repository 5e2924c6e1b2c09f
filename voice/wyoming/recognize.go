package wyoming

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"perch/remote"
	"perch/voice"
)

// Recognize implements voice.Recognizer. It sends the sound while the person is speaking. It returns
// a transcript only when u is finished, even if the server sends the text earlier. It returns errors
// immediately, so that the next engine can be used.
func (e *Engine) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	e.latestRecognize.Store(&o)
	s, info, timeout, err := e.pick(ctx, recognizeNeed(o))
	if err != nil {
		return voice.Transcript{}, err
	}
	request, err := s.chooseRecognizer(info, o)
	if err != nil {
		return voice.Transcript{}, err
	}
	var transcript Text
	err = s.call(ctx, timeout, e.o.AnswerWithin, func(ctx context.Context, c *call) error {
		return sendUtterance(ctx, c, TypeTranscribe, request, u)
	}, func(c *call) error {
		var err error
		transcript, err = readTranscript(c)
		return err
	})
	if err != nil {
		return voice.Transcript{}, err
	}
	if err := u.Wait(ctx); err != nil {
		return voice.Transcript{}, err
	}
	t := voice.CleanTranscript(transcript.Text)
	t.Language = transcript.Language
	return t, nil
}

// sendUtterance sends a request and then the sound of u while the person is speaking. At the end it
// starts the timeout of the response.
func sendUtterance(ctx context.Context, c *call, request string, data any, u *voice.Utterance) error {
	format := Format{Rate: voice.MicRate, Width: 2, Channels: 1}
	if err := c.send(request, data, nil); err != nil {
		return err
	}
	if err := c.send(TypeAudioStart, format, nil); err != nil {
		return err
	}
	if err := u.Send(ctx, func(pcm []byte) error { return c.send(TypeAudioChunk, format, pcm) }); err != nil {
		return err
	}
	if err := c.send(TypeAudioStop, nil, nil); err != nil {
		return err
	}
	return c.startTimeout()
}

// maxStreaming is the maximum time from the first part of a transcript to its end. It is limited,
// because a person is waiting.
const maxStreaming = time.Minute

// readTranscript waits for the transcript. A streaming server first sends parts of the transcript,
// which are used only if the whole transcript does not follow.
func readTranscript(c *call) (Text, error) {
	var parts strings.Builder
	var start time.Time // time of the first part
	slow := false       // whether the server has used up more time than the parts so far have added to the deadline
	for {
		event, err := c.read()
		if errors.Is(err, os.ErrDeadlineExceeded) && slow {
			return Text{}, reason("it writes its text far slower than it was said; is it overloaded, or too slow for this model?")
		}
		if err != nil {
			return Text{}, err
		}
		var t Text
		switch event.Type {
		case TypeTranscript, TypeTranscriptChunk:
			if err := event.Decode(&t); err != nil {
				return Text{}, err
			}
			if parts.Len()+len(t.Text) > voice.MaxTranscript && event.Type == TypeTranscriptChunk || len(t.Text) > voice.MaxTranscript {
				return Text{}, reason("its text is longer than what can be said in that time; it may repeat itself endlessly")
			}
		}
		switch event.Type {
		case TypeTranscript:
			return t, nil
		case TypeTranscriptChunk:
			parts.WriteString(t.Text)
			if t.Text == "" {
				continue
			}
			c.empty = 0
			if start.IsZero() {
				start = time.Now()
			}
			if time.Since(start) > maxStreaming {
				return Text{}, reason(fmt.Sprintf("it writes one transcript for more than %s; is it overloaded?", maxStreaming))
			}
			if slow, err = c.extend(remote.TextWait(t.Text)); err != nil {
				return Text{}, err
			}
		case TypeTranscriptStop:
			return Text{Text: parts.String()}, nil
		}
	}
}
