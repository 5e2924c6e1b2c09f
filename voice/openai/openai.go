// Package openai recognizes and synthesizes speech with servers that have OpenAI's audio
// API: speaches, whisper.cpp, kokoro-fastapi, LocalAI, the cloud. The Recognizer posts to
// /audio/transcriptions, the Synthesizer to /audio/speech.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"perch/limit"
	"perch/remote"
	"perch/voice"
	"perch/voice/media"
)

// Options of an engine. Fields of the other kind of engine are ignored.
type Options struct {
	URL       string        // including /v1, such as "http://192.168.1.9:8000/v1"; used unchanged
	Key       string        // sent as a bearer token; may be empty
	Model     string        // default "whisper-1" or "tts-1"
	FirstByte time.Duration // longest wait for an answer to begin; 0 is 10 s
	Idle      time.Duration // longest pause within an answer; 0 is 10 s

	// StreamUpload sends the sound to the recognizer while it is spoken, as a chunked
	// WAV of unknown length. Not every server accepts that.
	StreamUpload bool

	Voice string // of the synthesizer, if a call names none; "alloy" if both are empty
	Rate  int    // of raw sound, in Hz; 0 is 24000, as OpenAI's; piper's voices at speaches have 16000 or 22050
	// Stream requests sound while it is made, of servers that otherwise make all of it
	// first. OpenAI's own always streams, and does not know the parameter.
	Stream bool

	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// engine is the common part of Recognizer and Synthesizer.
type engine struct {
	o      Options
	client *media.Client
}

// Name returns "openai".
func (*engine) Name() string { return "openai" }

// Close cancels running calls and closes the connections.
func (e *engine) Close() { e.client.Close() }

// Check validates the options.
func (o Options) Check() error {
	if len(o.Model) > limit.Name || len(o.Voice) > limit.Name {
		return fmt.Errorf("the name of a model or a voice has at most %d bytes", limit.Name)
	}
	if o.Rate != 0 && !voice.Playable(o.Rate) {
		return fmt.Errorf("sound has a rate of 8000 to 48000 Hz that is a multiple of 25, not %d", o.Rate)
	}
	return o.media().Check()
}

func (o Options) media() media.Options {
	return media.Options{Service: "the speech server", URL: o.URL, Key: o.Key, Hint: ", which mostly ends in /v1",
		FirstByte: o.FirstByte, Idle: o.Idle, Dial: o.dial}
}

// client checks the options, sets the defaults and returns the client.
func (o *Options) client(model string) (*media.Client, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.Model, o.Voice, o.Rate = cmp.Or(o.Model, model), cmp.Or(o.Voice, "alloy"), cmp.Or(o.Rate, 24000)
	return media.New(o.media())
}

// check reports whether the server can do the work. It is enough that its list of models
// has the model. Many servers have no such list, omit names that they accept, or hide it
// from some keys: then try makes a very short request.
func check(ctx context.Context, client *media.Client, model string, try func(context.Context) error) error {
	listed, err := lists(ctx, client, model)
	inconclusive := []int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed} // these say nothing about the work itself
	if fault, ok := errors.AsType[*remote.Fault](err); ok && slices.Contains(inconclusive, fault.Status) {
		err = nil
	}
	if listed || err != nil {
		return err
	}
	return try(ctx)
}

// lists reports whether the server's list of models has the model.
func lists(ctx context.Context, client *media.Client, model string) (bool, error) {
	answer, err := client.Call(ctx, remote.Request{Method: http.MethodGet, Path: "models"})
	if err != nil {
		return false, err
	}
	defer answer.Close()
	body, err := answer.Whole(limit.File)
	if err != nil {
		return false, err
	}
	var list struct{ Data []struct{ ID string } }
	if json.Unmarshal(body, &list) != nil {
		return false, nil // usually a web page; try will show
	}
	for _, m := range list.Data {
		if strings.EqualFold(m.ID, model) {
			return true, nil
		}
	}
	return false, nil
}
