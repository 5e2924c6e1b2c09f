// Package openai recognizes and synthesizes speech by servers with OpenAI's audio interface:
// speaches, whisper.cpp, kokoro-fastapi, LocalAI, the cloud. The Recognizer
// posts to /audio/transcriptions, the Synthesizer to /audio/speech.
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

// Options of an engine. What is not of its kind is ignored.
type Options struct {
	URL       string        // with its /v1: "http://192.168.1.9:8000/v1"; used as it is given
	Key       string        // sent as a bearer token; none where empty
	Model     string        // "whisper-1" or "tts-1" where empty
	Language  string        // of the speaker, BCP 47, where a call names none; the server guesses where both are empty
	FirstByte time.Duration // the longest wait for an answer to begin; 0 is 10 s
	Idle      time.Duration // the longest silence in the middle of one; 0 is 10 s

	// StreamUpload sends the sound to the recognizer while it is being spoken,
	// as a WAV of unknown length in chunks. Not every server takes that.
	StreamUpload bool

	Voice string  // of the synthesizer, where a call names none; "alloy" where both are empty
	Speed float64 // of its speech, 0.25 to 4; left to the server where 0
	Rate  int     // of the raw sound it sends, in Hz; 0 is 24000, as OpenAI's; piper's voices at speaches have 16000 or 22050
	// Stream asks for sound while it is made, of servers that otherwise make
	// all of it first. OpenAI's own always streams, and does not know the word.
	Stream bool

	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// engine is what the Recognizer and the Synthesizer have in common.
type engine struct {
	o      Options
	client *media.Client
}

// Name is "openai".
func (*engine) Name() string { return "openai" }

// Close ends what is under way and closes the engine's connections.
func (e *engine) Close() { e.client.Close() }

// Check reports what no engine can be made of.
func (o Options) Check() error {
	if len(o.Model) > limit.Name || len(o.Voice) > limit.Name {
		return fmt.Errorf("the name of a model or a voice has at most %d bytes", limit.Name)
	}
	if o.Speed != 0 && (o.Speed < 0.25 || o.Speed > 4) {
		return fmt.Errorf("speech has a speed of 0.25 to 4, not %g", o.Speed)
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

// client checks the options, fills in what is empty and returns the client.
func (o *Options) client(model string) (*media.Client, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.Model, o.Voice, o.Rate = cmp.Or(o.Model, model), cmp.Or(o.Voice, "alloy"), cmp.Or(o.Rate, 24000)
	return media.New(o.media())
}

// check reports whether the server would do the work. Where the list of its
// models has the model, that will do. Many servers have no such list, leave
// out names that they take, or do not show it to every key: there the engine
// tries, on something very short.
func check(ctx context.Context, client *media.Client, model string, try func(context.Context) error) error {
	listed, err := lists(ctx, client, model)
	inconclusive := []int{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed} // they say nothing of the work itself
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
		return false, nil // a page, mostly; the work itself will show
	}
	for _, m := range list.Data {
		if strings.EqualFold(m.ID, model) {
			return true, nil
		}
	}
	return false, nil
}
