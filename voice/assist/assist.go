// Package assist recognizes and synthesizes speech through Home Assistant: the Recognizer
// uses the speech to text of an Assist pipeline, the Synthesizer the text to speech of
// one. So any engine of Home Assistant, local or in its cloud, can be used.
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

// Options of an engine. URL and Token are required; fields of the other kind of engine
// are ignored.
type Options struct {
	URL      string // such as "http://homeassistant.local:8123"; used unchanged
	Token    string // a long-lived access token
	Pipeline string // its id; empty for the preferred one

	Engine string // of the synthesizer, such as "tts.piper"; empty for the pipeline's
	Voice  string // of the synthesizer, if a call names none; empty for the pipeline's
	// Convert makes Home Assistant convert any sound to 16-bit mono, which costs it a
	// process per sentence. It is for engines whose WAV is not 16-bit.
	Convert bool

	ConnectWithin time.Duration // to connect; 0 is 5 s
	// AnswerWithin bounds the wait for an answer once Home Assistant has its whole
	// input; 0 is remote.Patience.
	AnswerWithin time.Duration
	IdleWithin   time.Duration // longest pause within a sound; 0 is remote.Patience
}

// Check validates the options.
func (o Options) Check() error {
	for _, name := range []string{o.Pipeline, o.Engine, o.Voice} {
		if len(name) > limit.Name {
			return fmt.Errorf("the name of a pipeline, an engine or a voice has at most %d bytes", limit.Name)
		}
	}
	if o.AnswerWithin < 0 || o.IdleWithin < 0 {
		return errors.New("a deadline cannot be negative")
	}
	return hass.Options{URL: o.URL, Token: o.Token, ConnectWithin: o.ConnectWithin}.Check()
}

// client checks the options, sets the defaults and returns the client.
func (o *Options) client() (*hass.Client, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.ConnectWithin = cmp.Or(o.ConnectWithin, 5*time.Second)
	o.AnswerWithin = cmp.Or(o.AnswerWithin, remote.Patience)
	o.IdleWithin = cmp.Or(o.IdleWithin, remote.Patience)
	return hass.New(hass.Options{URL: o.URL, Token: o.Token, ConnectWithin: o.ConnectWithin})
}

// unavailable returns ctx's error if ctx has ended, and otherwise err wrapped so that
// the next engine is tried.
func unavailable(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return fmt.Errorf("%w: %w", voice.ErrUnavailable, err)
}

// pipeline returns the settings of a pipeline.
func pipeline(ctx context.Context, client *hass.Client, o Options) (hass.Pipeline, error) {
	conn, err := client.Dial(ctx)
	if err != nil {
		return hass.Pipeline{}, err
	}
	defer conn.Close()
	return conn.Pipeline(ctx, o.ConnectWithin, o.Pipeline)
}
