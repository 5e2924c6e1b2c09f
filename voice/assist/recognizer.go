package assist

import (
	"context"
	"errors"
	"io"
	"time"

	"perch/limit"
	"perch/remote/hass"
	"perch/voice"
)

// Recognizer implements voice.Recognizer. Each call opens a connection. That usually causes no
// delay, because it happens while the person is speaking.
//
// The pipeline determines the language; the API offers no choice.
type Recognizer struct {
	o      Options
	client *hass.Client
}

// NewRecognizer returns a recognizer, or an error if the options are invalid. It opens no
// connection.
func NewRecognizer(o Options) (*Recognizer, error) {
	client, err := o.newClient()
	if err != nil {
		return nil, err
	}
	return &Recognizer{o, client}, nil
}

// Name returns "assist".
func (*Recognizer) Name() string { return "assist" }

// Close cancels running calls and closes the connections.
func (r *Recognizer) Close() { r.client.Close() }

// Check returns an error unless Home Assistant responds, accepts the token, and has the pipeline
// with speech to text. The error is one sentence.
func (r *Recognizer) Check(ctx context.Context) error {
	p, err := fetchPipeline(ctx, r.client, r.o)
	if err == nil && p.STT == "" {
		err = r.client.Fault("has no speech to text in this Assist pipeline; choose one under Settings, Voice assistants")
	}
	if err != nil {
		return unavailable(ctx, err)
	}
	return nil
}

// Recognize implements voice.Recognizer. It sends the sound while the person is speaking. It returns
// a transcript only when u is finished, even if Home Assistant sends the text earlier. It returns
// errors immediately, so that the next engine can be used.
func (r *Recognizer) Recognize(ctx context.Context, u *voice.Utterance, _ voice.Options) (voice.Transcript, error) {
	conn, err := r.client.Dial(ctx)
	if err != nil {
		return voice.Transcript{}, unavailable(ctx, err)
	}
	defer conn.Close()
	transcript, err := r.runPipeline(ctx, conn, u)
	if fault, ok := errors.AsType[*hass.Fault](err); ok && fault.Code == "stt-no-text-recognized" {
		transcript, err = voice.Transcript{Refused: true, Silence: true}, nil
	}
	if err != nil {
		return voice.Transcript{}, unavailable(ctx, err)
	}
	if err := u.Wait(ctx); err != nil {
		return voice.Transcript{}, err
	}
	return transcript, nil
}

// runPipeline runs the pipeline with the sound of u and returns the transcript.
func (r *Recognizer) runPipeline(ctx context.Context, conn *hass.Conn, u *voice.Utterance) (voice.Transcript, error) {
	run, err := conn.Run(ctx, hass.Start{
		From: hass.StageSpeech, To: hass.StageSpeech, Rate: voice.MicRate, Pipeline: r.o.Pipeline,
	})
	if err != nil {
		return voice.Transcript{}, err
	}
	defer run.Close()
	handler, err := r.awaitHandler(ctx, run)
	if err != nil {
		return voice.Transcript{}, err
	}
	inner, cancel := context.WithCancelCause(ctx)
	sent := make(chan struct{})
	defer func() {
		cancel(nil)
		<-sent
	}()
	go func() {
		defer close(sent)
		if err := sendUtterance(inner, run, handler, u); err != nil {
			cancel(err)
			return
		}
		// All input was sent, so the timeout of the response starts.
		select {
		case <-time.After(r.o.AnswerWithin):
			cancel(r.client.TimeoutFault(r.o.AnswerWithin))
		case <-inner.Done():
		}
	}()
	return r.readTranscript(inner, run)
}

// awaitHandler waits until the run accepts sound, and returns the handler ID that must be
// sent with the sound.
func (r *Recognizer) awaitHandler(ctx context.Context, run *hass.Run) (byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.o.AnswerWithin, r.client.TimeoutFault(r.o.AnswerWithin))
	defer cancel()
	for {
		e, err := run.Next(ctx, hass.Unlimited)
		if errors.Is(err, io.EOF) || err == nil && e.Type == hass.EventRunEnd {
			return 0, r.client.Fault("ended its pipeline before it had begun; see its log")
		}
		if err != nil {
			return 0, err
		}
		if e.Type == hass.EventRunStart {
			handler, err := e.Handler()
			if err != nil {
				return 0, r.client.Fault("does not say where to send sound; it may be too old")
			}
			return handler, nil
		}
	}
}

// sendUtterance sends the sound of u while the person is speaking, and then the end of the sound.
func sendUtterance(ctx context.Context, run *hass.Run, handler byte, u *voice.Utterance) error {
	if err := u.Send(ctx, func(pcm []byte) error { return run.Sound(ctx, handler, pcm) }); err != nil {
		return err
	}
	return run.EndSound(ctx, handler)
}

// readTranscript waits for the transcript. If the run ends without a transcript, it returns a
// refused one.
func (r *Recognizer) readTranscript(ctx context.Context, run *hass.Run) (voice.Transcript, error) {
	language := ""
	for {
		e, err := run.Next(ctx, hass.Unlimited)
		if errors.Is(err, io.EOF) {
			return voice.Transcript{Refused: true}, nil
		}
		if err != nil {
			return voice.Transcript{}, err
		}
		switch e.Type {
		case hass.EventSpeechStart:
			language = e.Language()
		case hass.EventSpeechEnd:
			text, err := e.Transcript()
			if err != nil || len(text) > voice.MaxTranscript {
				return voice.Transcript{}, r.client.Fault("recognizes more than a person can say in an utterance; see its speech to text")
			}
			transcript := voice.CleanTranscript(text)
			if !transcript.Refused && len(language) <= limit.Name {
				transcript.Language = language
			}
			return transcript, nil
		}
	}
}
