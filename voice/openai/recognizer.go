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

// Recognizer implements voice.Recognizer. Its methods may be called concurrently.
type Recognizer struct {
	engine
	noDetection atomic.Bool // whether the server cannot detect the language
}

// NewRecognizer checks the options and returns the engine. It opens no connection.
func NewRecognizer(o Options) (*Recognizer, error) {
	client, err := o.client("whisper-1")
	if err != nil {
		return nil, err
	}
	return &Recognizer{engine: engine{o, client}}, nil
}

// Check returns an error of one sentence if the server could not recognize speech: it neither
// lists the model nor accepts half a second of silence.
func (r *Recognizer) Check(ctx context.Context) error {
	return checkServer(ctx, r.client, r.o.Model, func(ctx context.Context) error {
		silence := voice.NewUtterance()
		silence.Write(make([]int16, voice.MicRate/2))
		silence.Finish()
		_, err := r.Recognize(ctx, silence, voice.Options{})
		return err
	})
}

// minSound is the minimum duration of an utterance, as required by OpenAI's own server.
const minSound = 100 * time.Millisecond

// Recognize implements voice.Recognizer. It refuses an utterance that is shorter than minSound. If
// the server cannot detect the language, Recognize repeats the request without language detection,
// and later calls do not request language detection.
func (r *Recognizer) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	detect := o.DetectLanguage && !r.noDetection.Load()
	heard, err := r.recognize(ctx, u, o, detect)
	var fault *remote.Fault
	if detect && errors.As(err, &fault) && (fault.Status == http.StatusBadRequest || fault.Status == http.StatusUnprocessableEntity) {
		// Newer models cannot return the language. Ask for plain text; if that fails too, the
		// error has another cause.
		if heard, err = r.recognize(ctx, u, o, false); err == nil {
			r.noDetection.Store(true)
		}
	}
	return heard, err
}

// recognize makes one request. If detect is true, the request names no language and asks for the
// verbose format, which contains the detected language.
func (r *Recognizer) recognize(ctx context.Context, u *voice.Utterance, o voice.Options, detect bool) (voice.Transcript, error) {
	form := newForm(r.o.Model, languageOf(o.Language), "json")
	if detect {
		form = newForm(r.o.Model, "", "verbose_json")
	}
	request := remote.Request{Method: http.MethodPost, Path: "audio/transcriptions", ContentType: form.mediaType}
	if r.o.StreamUpload {
		if err := waitForMinSound(ctx, u); err != nil {
			return voice.Transcript{}, err
		}
		request.Live = form.liveBody(u)
	} else if err := u.Wait(ctx); err != nil {
		return voice.Transcript{}, err
	}
	if u.Duration() < minSound {
		return voice.Transcript{Refused: true}, nil
	}
	if !r.o.StreamUpload {
		body, err := form.finishedBody(ctx, u)
		if err != nil {
			return voice.Transcript{}, err
		}
		request.Body = body
	}
	response, err := r.client.Call(ctx, request)
	if err != nil {
		return voice.Transcript{}, r.addUploadHint(err)
	}
	defer response.Close()
	body, err := response.Whole(limit.Body)
	if err != nil {
		return voice.Transcript{}, err
	}
	heard, complaint, ok := parseTranscript(body)
	switch {
	case complaint != "":
		return voice.Transcript{}, r.client.Fault("could not recognize (" + r.client.Quote(complaint) + "); see the server's log")
	case !ok:
		return voice.Transcript{}, r.client.Fault("answers with something else than a transcript; check the url, which mostly ends in /v1")
	}
	return heard, nil
}

// waitForMinSound waits until u has a duration of minSound or is finished.
func waitForMinSound(ctx context.Context, u *voice.Utterance) error {
	var sample [1]int16
	const last = int(minSound*voice.MicRate/time.Second) - 1
	_, err := u.Read(ctx, sample[:], last)
	return err
}

// addUploadHint adds advice to an error that StreamUpload may have caused.
func (r *Recognizer) addUploadHint(err error) error {
	var fault *remote.Fault
	if !r.o.StreamUpload || !errors.As(err, &fault) {
		return err
	}
	switch fault.Status {
	case http.StatusBadRequest, http.StatusLengthRequired, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity, http.StatusNotImplemented:
		hinted := *fault
		hinted.Sentence += "; if it accepts only whole files, set stream_upload to false"
		return &hinted
	}
	return err
}

// languageOf returns the ISO 639 code at the start of a BCP 47 tag, or "" if it has none.
func languageOf(tag string) string {
	code := voice.BaseLanguage(tag)
	if len(code) < 2 || len(code) > 3 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz") != "" {
		return ""
	}
	return code
}
