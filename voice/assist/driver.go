package assist

import (
	"cmp"
	"time"

	"perch/driver"
	"perch/remote/supervisor"
	"perch/voice"
)

// RecognizerKeys are the keys of a recognizer of kind assist in the configuration.
type RecognizerKeys struct {
	URL       string        `yaml:"url" doc:"Home Assistant's address, such as http://homeassistant.local:8123."`
	Token     string        `yaml:"token" doc:"A long-lived access token."`
	TokenFile string        `yaml:"token_file" doc:"A file that holds the token."`
	Pipeline  string        `yaml:"pipeline" doc:"The id of an Assist pipeline. If empty, the preferred one."`
	Within    time.Duration `yaml:"within" doc:"The longest time until the answer begins. If 0s, 10s."`
}

// RecognizerDriver declares the recognizer assist.
func RecognizerDriver() voice.RecognizerDriver {
	return driver.Of(voice.RecognizerDriver{Kind: "assist", Runs: []string{"Home Assistant"},
		Summary: "The speech recognition of your Home Assistant.",
		Sample:  `{kind: assist, url: "http://homeassistant.local:8123", token: "", token_file: /etc/perch/secrets/home-assistant, pipeline: ""}`},
		RecognizerKeys.options, func(o Options) (voice.Recognizer, error) { return NewRecognizer(o) })
}

func (k RecognizerKeys) options(voice.Setup) (Options, error) {
	token, err := supervisor.HomeToken(k.URL, k.Token, k.TokenFile)
	return Options{URL: k.URL, Token: token, Pipeline: k.Pipeline, AnswerWithin: k.Within}, err
}

// SetHome sets the URL of Home Assistant if the configuration does not set it.
func (k *RecognizerKeys) SetHome(url string) { k.URL = cmp.Or(k.URL, url) }

// SynthesizerKeys are the keys of a synthesizer of kind assist in the configuration.
type SynthesizerKeys struct {
	URL       string        `yaml:"url" doc:"Home Assistant's address, such as http://homeassistant.local:8123."`
	Token     string        `yaml:"token" doc:"A long-lived access token."`
	TokenFile string        `yaml:"token_file" doc:"A file that holds the token."`
	Pipeline  string        `yaml:"pipeline" doc:"The id of an Assist pipeline. If empty, the preferred one."`
	Engine    string        `yaml:"engine" doc:"One of Home Assistant's engines, such as tts.piper. If empty, the pipeline's."`
	Voice     string        `yaml:"voice" doc:"If empty, the pipeline's."`
	Convert   bool          `yaml:"convert" doc:"Home Assistant converts the sound of an engine that has no format that Perch supports."`
	Within    time.Duration `yaml:"within" doc:"The longest time until sound begins. If 0s, 10s."`
}

// SynthesizerDriver declares the synthesizer assist.
func SynthesizerDriver() voice.SynthesizerDriver {
	return driver.Of(voice.SynthesizerDriver{Kind: "assist", Runs: []string{"Home Assistant"},
		Summary: "A voice of your Home Assistant.",
		Sample:  `{kind: assist, url: "http://homeassistant.local:8123", token_file: /etc/perch/secrets/home-assistant, pipeline: "", engine: tts.piper, voice: "", convert: false}`},
		SynthesizerKeys.options, func(o Options) (voice.Synthesizer, error) { return NewSynthesizer(o) })
}

func (k SynthesizerKeys) options(s voice.Setup) (Options, error) {
	token, err := supervisor.HomeToken(k.URL, k.Token, k.TokenFile)
	return Options{URL: k.URL, Token: token, Pipeline: k.Pipeline, Engine: k.Engine, Voice: cmp.Or(s.Voice, k.Voice), Convert: k.Convert,
		Language: s.Language, AnswerWithin: k.Within}, err
}

// SetHome sets the URL of Home Assistant if the configuration does not set it.
func (k *SynthesizerKeys) SetHome(url string) { k.URL = cmp.Or(k.URL, url) }
