// Package assist recognizes and synthesizes speech with the engines of Home Assistant. A
// Recognizer uses the speech-to-text engine of an Assist pipeline. (Assist is Home Assistant's voice
// assistant; a pipeline is a combination of engines.) A Synthesizer uses the text-to-speech engine of
// a pipeline, or another text-to-speech engine of Home Assistant.
package assist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"perch/limit"
	"perch/remote"
	"perch/remote/hass"
	"perch/voice"
)

// Options are the options of a Recognizer or a Synthesizer. URL and Token are required.
type Options struct {
	URL      string // URL of Home Assistant, such as "http://homeassistant.local:8123"
	Token    string // long-lived access token
	Pipeline string // ID of a pipeline; "" means the preferred one

	// Engine, Voice, Convert, Language and IdleWithin are only for a Synthesizer.
	Engine string // engine, such as "tts.piper"; "" means the pipeline's engine
	Voice  string // voice for calls that name none; "" means the pipeline's voice or, with Engine or in another language than the pipeline's, the engine's own
	// Convert makes Home Assistant convert the sound to 16-bit mono; Home Assistant starts a
	// process per sentence to do this. It is needed for engines that do not return 16-bit WAV.
	Convert    bool
	Language   string        // BCP 47 tag of the voices that Voices lists, if Engine is set or the pipeline has no language
	IdleWithin time.Duration // maximum pause within a sound; default: remote.Patience

	// ConnectWithin is the timeout of connecting, of each write, and of a request for settings
	// of Home Assistant; default: 5 s.
	ConnectWithin time.Duration
	// AnswerWithin is the maximum time until Home Assistant accepts sound, and again until it
	// responds after all input was sent; default: remote.Patience.
	AnswerWithin time.Duration
}

// Check returns an error if the options are invalid.
func (o Options) Check() error {
	for _, name := range []string{o.Pipeline, o.Engine, o.Voice} {
		if len(name) > limit.Name {
			return fmt.Errorf("the name of a pipeline, an engine or a voice has at most %d bytes", limit.Name)
		}
	}
	if o.AnswerWithin < 0 || o.IdleWithin < 0 {
		return errors.New("within cannot be negative")
	}
	return hass.Options{URL: o.URL, Token: o.Token, ConnectWithin: o.ConnectWithin}.Check()
}

// newClient checks the options, sets their defaults and returns a client.
func (o *Options) newClient() (*hass.Client, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.ConnectWithin = cmp.Or(o.ConnectWithin, 5*time.Second)
	o.AnswerWithin = cmp.Or(o.AnswerWithin, remote.Patience)
	o.IdleWithin = cmp.Or(o.IdleWithin, remote.Patience)
	return hass.New(hass.Options{URL: o.URL, Token: o.Token, ConnectWithin: o.ConnectWithin})
}

// unavailable returns the error of ctx if ctx has ended, and otherwise an error that wraps err and
// voice.ErrUnavailable.
func unavailable(ctx context.Context, err error) error {
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	return fmt.Errorf("%w: %w", voice.ErrUnavailable, err)
}

// fetchPipeline returns the settings of the pipeline in the options.
func fetchPipeline(ctx context.Context, client *hass.Client, o Options) (hass.Pipeline, error) {
	conn, err := client.Dial(ctx)
	if err != nil {
		return hass.Pipeline{}, err
	}
	defer conn.Close()
	return conn.Pipeline(ctx, o.ConnectWithin, o.Pipeline)
}
