// Package assist recognizes and synthesizes speech by Home Assistant: the Recognizer by the
// speech to text of an Assist pipeline, the Synthesizer by the text to speech
// of one. Whatever engine Home Assistant has, local or in its cloud, is an
// engine here.
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

// Options of an engine. URL and Token are needed; what is not of an engine's
// kind is ignored.
type Options struct {
	URL      string // "http://homeassistant.local:8123"; used as it is given
	Token    string // a long-lived access token
	Pipeline string // its id; the preferred one where empty

	Engine   string // of the synthesizer, "tts.piper"; the pipeline's where empty
	Voice    string // of the synthesizer, where a call names none; the pipeline's where both are empty
	Language string // of the synthesizer, BCP 47, where a call names none; the pipeline's where both are empty
	// Convert has Home Assistant make 16-bit mono of any sound, which costs it
	// a process for each sentence. It is for an engine whose own WAV is not
	// 16-bit; that of most is.
	Convert bool

	ConnectWithin time.Duration // for a connection; 0 is 5 s
	// AnswerWithin is how long the answer may take once Home Assistant has all
	// it needs for it; 0 is remote.Patience.
	AnswerWithin time.Duration
	IdleWithin   time.Duration // the longest silence in the middle of a sound; 0 is remote.Patience
}

// Check reports what no engine can be made of.
func (o Options) Check() error {
	for _, name := range []string{o.Pipeline, o.Engine, o.Voice, o.Language} {
		if len(name) > limit.Name {
			return fmt.Errorf("the name of a pipeline, an engine, a voice or a language has at most %d bytes", limit.Name)
		}
	}
	if o.AnswerWithin < 0 || o.IdleWithin < 0 {
		return errors.New("a deadline cannot be negative")
	}
	return hass.Options{URL: o.URL, Token: o.Token, ConnectWithin: o.ConnectWithin}.Check()
}

// client checks the options, fills in what is empty and returns the client.
func (o *Options) client() (*hass.Client, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.ConnectWithin = cmp.Or(o.ConnectWithin, 5*time.Second)
	o.AnswerWithin = cmp.Or(o.AnswerWithin, remote.Patience)
	o.IdleWithin = cmp.Or(o.IdleWithin, remote.Patience)
	return hass.New(hass.Options{URL: o.URL, Token: o.Token, ConnectWithin: o.ConnectWithin})
}

// unavailable is err for the caller: its context's error where that has ended, else
// one by which the next engine is tried.
func unavailable(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	return fmt.Errorf("%w: %w", voice.ErrUnavailable, err)
}

// pipeline asks how a pipeline is set up.
func pipeline(ctx context.Context, client *hass.Client, o Options) (hass.Pipeline, error) {
	conn, err := client.Dial(ctx)
	if err != nil {
		return hass.Pipeline{}, err
	}
	defer conn.Close()
	return conn.Pipeline(ctx, o.ConnectWithin, o.Pipeline)
}
