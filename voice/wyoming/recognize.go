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

// Recognize implements voice.Recognizer. It sends the sound while it is spoken. If the
// server ends the utterance early, the text is returned once u is finished. Errors are
// returned at once, so that the next engine can listen.
func (e *Engine) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	e.recognizeWith.Store(&o)
	s, info, within, err := e.pick(ctx, toRecognize(o))
	if err != nil {
		return voice.Transcript{}, err
	}
	request, err := s.chooseRecognizer(info, o)
	if err != nil {
		return voice.Transcript{}, err
	}
	var heard Text
	err = s.talk(ctx, within, e.o.AnswerWithin, func(ctx context.Context, c *call) error {
		return sendSpeech(ctx, c, request, u)
	}, func(c *call) error {
		var err error
		heard, err = readText(c)
		return err
	})
	if err != nil {
		return voice.Transcript{}, err
	}
	if err := u.Wait(ctx); err != nil {
		return voice.Transcript{}, err
	}
	t := voice.Spoken(heard.Text)
	t.Language = heard.Language
	return t, nil
}

// sendSpeech sends u while it is spoken. The server's time to answer starts at its end.
func sendSpeech(ctx context.Context, c *call, request Transcribe, u *voice.Utterance) error {
	format := Format{Rate: voice.MicRate, Width: 2, Channels: 1}
	if err := c.send(TypeTranscribe, request, nil); err != nil {
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
	return c.ask()
}

// longestWrite bounds how long a streaming server may write a transcript, since a person
// waits for it.
const longestWrite = time.Minute

// readText waits for the transcript. The parts that a streaming server sends before it
// are used only if the whole never comes.
func readText(c *call) (Text, error) {
	var parts strings.Builder
	var began time.Time // of the first part
	slow := false       // the latest part came more slowly than it extends the wait
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
			if parts.Len()+len(t.Text) > voice.LongestTranscript && event.Type == TypeTranscriptChunk || len(t.Text) > voice.LongestTranscript {
				return Text{}, reason("its text is longer than anything that can be said in that time; it runs in circles")
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
			// It is working.
			c.empty = 0
			if began.IsZero() {
				began = time.Now()
			}
			if time.Since(began) > longestWrite {
				return Text{}, reason(fmt.Sprintf("it writes one transcript for more than %s; is it overloaded?", longestWrite))
			}
			if slow, err = c.extend(remote.Worth(t.Text)); err != nil {
				return Text{}, err
			}
		case TypeTranscriptStop:
			return Text{Text: parts.String()}, nil
		}
	}
}
