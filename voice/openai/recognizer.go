package openai

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"perch/limit"
	"perch/remote"
	"perch/voice"
)

// Recognizer implements voice.Recognizer.
type Recognizer struct {
	engine
	plain atomic.Bool // the server does not report the language
}

// NewRecognizer checks the options and returns the engine. It opens no connection.
func NewRecognizer(o Options) (*Recognizer, error) {
	client, err := o.client("whisper-1")
	if err != nil {
		return nil, err
	}
	return &Recognizer{engine: engine{o, client}}, nil
}

// Check reports whether the server would recognize speech: it knows the model, or accepts
// half a second of silence. Its error is one sentence.
func (r *Recognizer) Check(ctx context.Context) error {
	return check(ctx, r.client, r.o.Model, func(ctx context.Context) error {
		silence := voice.NewUtterance()
		silence.Write(make([]int16, voice.MicRate/2))
		silence.Finish()
		_, err := r.Recognize(ctx, silence, voice.Options{})
		return err
	})
}

// shortest is the shortest sound that is sent, and the minimum of OpenAI's server.
const shortest = 100 * time.Millisecond

// Recognize implements voice.Recognizer. An utterance that is shorter than the server takes is refused.
func (r *Recognizer) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	detect := o.Detect && !r.plain.Load()
	heard, err := r.recognize(ctx, u, o, detect)
	var fault *remote.Fault
	if detect && errors.As(err, &fault) && (fault.Status == http.StatusBadRequest || fault.Status == http.StatusUnprocessableEntity) {
		// Newer models return only text. If that request fails too, there is another cause.
		if heard, err = r.recognize(ctx, u, o, false); err == nil {
			r.plain.Store(true)
		}
	}
	return heard, err
}

// recognize makes one request. To detect the language, it names none and requests the
// verbose answer.
func (r *Recognizer) recognize(ctx context.Context, u *voice.Utterance, o voice.Options, detect bool) (voice.Transcript, error) {
	form := newForm(r.o.Model, languageOf(o.Language), "json")
	if detect {
		form = newForm(r.o.Model, "", "verbose_json")
	}
	request := remote.Request{Method: http.MethodPost, Path: "audio/transcriptions", ContentType: form.kind}
	if r.o.StreamUpload {
		if err := spoken(ctx, u); err != nil {
			return voice.Transcript{}, err
		}
		request.Live = form.stream(u)
	} else if err := u.Wait(ctx); err != nil {
		return voice.Transcript{}, err
	}
	if u.Duration() < shortest {
		return voice.Transcript{Refused: true}, nil
	}
	if !r.o.StreamUpload {
		body, err := form.whole(ctx, u)
		if err != nil {
			return voice.Transcript{}, err
		}
		request.Body = body
	}
	answer, err := r.client.Call(ctx, request)
	if err != nil {
		return voice.Transcript{}, r.hint(err)
	}
	defer answer.Close()
	body, err := answer.Whole(limit.Body)
	if err != nil {
		return voice.Transcript{}, err
	}
	heard, complaint, ok := transcript(body)
	switch {
	case complaint != "":
		return voice.Transcript{}, r.client.Fault("could not recognize (" + r.client.Quote(complaint) + "); see the server's log")
	case !ok:
		return voice.Transcript{}, r.client.Fault("answers with something else than a transcript; check the url, which mostly ends in /v1")
	}
	return heard, nil
}

// spoken waits until there is enough sound to send, or the utterance is finished.
func spoken(ctx context.Context, u *voice.Utterance) error {
	var one [1]int16
	const last = int(shortest*voice.MicRate/time.Second) - 1
	_, err := u.Read(ctx, one[:], last)
	return err
}

// hint adds advice that matters only for a streamed upload.
func (r *Recognizer) hint(err error) error {
	var fault *remote.Fault
	if !r.o.StreamUpload || !errors.As(err, &fault) {
		return err
	}
	switch fault.Status {
	case http.StatusBadRequest, http.StatusLengthRequired, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity, http.StatusNotImplemented:
		hinted := *fault
		hinted.Sentence += "; if it only takes whole files, turn the streamed upload off"
		return &hinted
	}
	return err
}

// languageOf returns the ISO 639 code that a BCP 47 tag begins with, or "".
func languageOf(tag string) string {
	code := voice.BaseLanguage(tag)
	if len(code) < 2 || len(code) > 3 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz") != "" {
		return ""
	}
	return code
}
