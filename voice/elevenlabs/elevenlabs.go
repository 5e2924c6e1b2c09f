// Package elevenlabs synthesizes speech with a voice of elevenlabs.io. The server streams the
// sound.
package elevenlabs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"time"

	"perch/driver"
	"perch/limit"
	"perch/remote"
	"perch/secret"
	"perch/voice"
	"perch/voice/media"
)

// Options are the options of an engine. Voice is required. ElevenLabs also requires Key, but
// Options.Check does not.
type Options struct {
	URL       string        `yaml:"url" doc:"The address of a proxy of ElevenLabs. If empty, https://api.elevenlabs.io/v1."`
	Model     string        `yaml:"model" doc:"If empty, eleven_flash_v2_5, their quickest."`
	Voice     string        `yaml:"voice" doc:"The id of a voice, not its name; needed."`
	Key       string        `yaml:"key" doc:"The API key."` // sent as xi-api-key
	KeyFile   string        `yaml:"key_file" doc:"A file that holds the key."`
	FirstByte time.Duration `yaml:"within" doc:"The longest time until sound begins. If 0s, 10s."`
	Idle      time.Duration // maximum pause within the sound; default: 10 s
}

// Driver declares the synthesizer elevenlabs.
func Driver() voice.SynthesizerDriver {
	return driver.Of(voice.SynthesizerDriver{Kind: "elevenlabs", Runs: []string{"ElevenLabs"},
		Summary: "Natural voices of ElevenLabs, a cloud; you need an account there.", Billed: true,
		Sample: `{kind: elevenlabs, url: "", model: "", voice: "an id of 20 letters", key: "", key_file: /etc/perch/secrets/tts, within: 10s}`},
		Options.withSetup, func(o Options) (voice.Synthesizer, error) { return New(o) })
}

// withSetup returns o with the voice of the setup, and with the key from KeyFile.
func (o Options) withSetup(s voice.Setup) (_ Options, err error) {
	o.Voice = cmp.Or(s.Voice, o.Voice)
	o.Key, err = secret.Read("key", o.Key, o.KeyFile)
	return o, err
}

// Engine implements voice.Synthesizer.
type Engine struct {
	o      Options
	client *media.Client
}

var (
	// id matches IDs that can be part of a path.
	id = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })
	// voiceID matches IDs of ElevenLabs voices, but not the names of other engines' voices, such
	// as "en-us".
	voiceID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9]{20}$`) })
)

// New returns an engine, or an error if the options are invalid. It opens no connection.
func New(o Options) (*Engine, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.Model = cmp.Or(o.Model, standardModel)
	client, err := media.New(o.media())
	if err != nil {
		return nil, err
	}
	return &Engine{o, client}, nil
}

// standardModel is the default of Options.Model.
const standardModel = "eleven_flash_v2_5"

// Check returns an error if the options are invalid.
func (o Options) Check() error {
	if !id().MatchString(o.Voice) {
		return errors.New("elevenlabs needs voice: the id of a voice, which its page shows under \"copy voice ID\"")
	}
	if !id().MatchString(cmp.Or(o.Model, standardModel)) {
		return errors.New("elevenlabs has no model of that name; eleven_flash_v2_5 is one")
	}
	return o.media().Check()
}

func (o Options) media() media.Options {
	return media.Options{Service: "ElevenLabs", Hint: ", which mostly ends in /v1", URL: cmp.Or(o.URL, "https://api.elevenlabs.io/v1"),
		Key: o.Key, KeyHeader: "xi-api-key", FirstByte: o.FirstByte, Idle: o.Idle}
}

// Name returns "elevenlabs".
func (*Engine) Name() string { return "elevenlabs" }

// Close cancels running calls and closes the connections.
func (e *Engine) Close() { e.client.Close() }

// Check returns an error of one sentence if the engine cannot speak. It requests the description
// of the voice, which costs nothing. If the key does not permit that, it synthesizes a short text.
func (e *Engine) Check(ctx context.Context) error {
	response, err := e.client.Call(ctx, remote.Request{Method: http.MethodGet, Path: "voices/" + e.o.Voice})
	if err == nil {
		defer response.Close()
		body, err := response.Whole(limit.File)
		if err != nil {
			return err
		}
		var result struct {
			ID string `json:"voice_id"`
		}
		if json.Unmarshal(body, &result) != nil || result.ID == "" {
			return e.client.Fault("sent a response that is not a voice; check the url, which mostly ends in /v1")
		}
		return nil
	}
	var fault *remote.Fault
	lacksPermission := errors.As(err, &fault) && (fault.Status == http.StatusForbidden || fault.Code == "missing_permissions")
	if !lacksPermission {
		return err
	}
	return media.CheckSynthesizer(ctx, e)
}

// Voices implements voice.Lister. It returns the voices of the owner's account. It returns none if
// the server refuses the request, for example because the key may not read the voices.
func (e *Engine) Voices(ctx context.Context) (list []voice.Named, err error) {
	body, err := e.client.Get(ctx, "voices", nil)
	if media.IsRefusal(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var result struct {
		Voices []struct {
			ID   string `json:"voice_id"`
			Name string
		}
	}
	if json.Unmarshal(body, &result) != nil {
		return nil, nil
	}
	for _, v := range result.Voices {
		if voiceID().MatchString(v.ID) {
			list = append(list, voice.Named{Name: v.ID, Title: v.Name})
		}
	}
	return list, nil
}

// Synthesize implements voice.Synthesizer. It ignores an o.Voice that is not the ID of a voice of
// ElevenLabs, because such a name belongs to another engine.
func (e *Engine) Synthesize(ctx context.Context, text string, o voice.Options, out func([]int16) error) error {
	name := e.o.Voice
	if voiceID().MatchString(o.Voice) {
		name = o.Voice
	}
	request := struct {
		Text  string `json:"text"`
		Model string `json:"model_id"`
	}{text, e.o.Model}
	return e.client.Speak(ctx, text, voice.SpeakerRate, "text-to-speech/"+name+"/stream", url.Values{"output_format": {"pcm_24000"}}, request, out)
}
