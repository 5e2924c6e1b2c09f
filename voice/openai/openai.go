// Package openai recognizes and synthesizes speech with servers that have OpenAI's audio
// API: speaches, whisper.cpp, kokoro-fastapi, LocalAI, or OpenAI's own server. A Recognizer posts
// to /audio/transcriptions, a Synthesizer to /audio/speech.
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

// Options are the options of a Recognizer or a Synthesizer.
type Options struct {
	URL       string        // base of the API, such as "http://192.168.1.9:8000/v1"; paths are appended to it
	Key       string        // sent as a bearer token; may be empty
	Model     string        // empty for "whisper-1" or "tts-1"
	FirstByte time.Duration // maximum wait for the first byte of a response; 0 means 10 s
	Idle      time.Duration // maximum pause within a response; 0 means 10 s

	// StreamUpload makes a Recognizer send the sound while it is spoken, as a chunked WAV
	// of unknown length. Not every server accepts this.
	StreamUpload bool

	// Voice is the Synthesizer's voice if voice.Options do not name one. If it is empty
	// too, the voice is "alloy".
	Voice string
	// Rate is the rate of a Synthesizer's raw sound, in Hz. 0 means 24000, the rate of
	// OpenAI's sound; the sound of piper's voices in speaches has 16000 or 22050.
	Rate int
	// Stream makes a Synthesizer request sound while it is made. Without it, some servers
	// send nothing until all sound is made. OpenAI's own server always streams and does
	// not know the parameter.
	Stream bool

	dial func(ctx context.Context, network, address string) (net.Conn, error) // media.Options.Dial
}

// engine is the common part of Recognizer and Synthesizer.
type engine struct {
	o      Options // with defaults set
	client *media.Client
}

// Name returns "openai".
func (*engine) Name() string { return "openai" }

// Close cancels running calls and closes the connections.
func (e *engine) Close() { e.client.Close() }

// Check returns an error if the options are invalid.
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

// client checks the options, sets their defaults, including the default model, and returns a
// client.
func (o *Options) client(model string) (*media.Client, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.Model, o.Voice, o.Rate = cmp.Or(o.Model, model), cmp.Or(o.Voice, "alloy"), cmp.Or(o.Rate, 24000)
	return media.New(o.media())
}

// checkServer returns an error if the server cannot do an engine's work. It returns nil if the
// server's list of models contains the model. If the list does not contain the model, or the server
// answers with status 403, 404 or 405, checkServer calls tryRequest, which makes a very short request:
// many servers have no list, accept models that are not in the list, or do not show the list to some
// keys. It returns any other error of the request for the list.
func checkServer(ctx context.Context, client *media.Client, model string, tryRequest func(context.Context) error) error {
	listed, err := listsModel(ctx, client, model)
	inconclusive := []int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed} // the list is missing or not allowed
	if fault, ok := errors.AsType[*remote.Fault](err); ok && slices.Contains(inconclusive, fault.Status) {
		err = nil
	}
	if listed || err != nil {
		return err
	}
	return tryRequest(ctx)
}

// listsModel reports whether the server's list of models contains the model.
func listsModel(ctx context.Context, client *media.Client, model string) (bool, error) {
	response, err := client.Call(ctx, remote.Request{Method: http.MethodGet, Path: "models"})
	if err != nil {
		return false, err
	}
	defer response.Close()
	body, err := response.Whole(limit.File)
	if err != nil {
		return false, err
	}
	var list struct{ Data []struct{ ID string } }
	if json.Unmarshal(body, &list) != nil {
		return false, nil // probably a web page; the request of checkServer's tryRequest then fails
	}
	for _, m := range list.Data {
		if strings.EqualFold(m.ID, model) {
			return true, nil
		}
	}
	return false, nil
}
