package openai

import (
	"cmp"
	"time"

	"perch/driver"
	"perch/secret"
	"perch/voice"
)

// servers describes the supported servers for docs/engines.md.
const servers = "a server with OpenAI's API: speaches, whisper.cpp, kokoro, LocalAI, the cloud"

// RecognizerKeys are the configuration keys of a recognizer of kind openai.
type RecognizerKeys struct {
	URL          string        `yaml:"url" doc:"A server with /audio/transcriptions below this address, which is used as it is."`
	Model        string        `yaml:"model" doc:"If empty, whisper-1."`
	Key          string        `yaml:"key" doc:"The server's API key, if it wants one."`
	KeyFile      string        `yaml:"key_file" doc:"A file that holds the key."`
	StreamUpload bool          `yaml:"stream_upload" doc:"Sends the sound while somebody speaks, which not every server accepts."`
	Within       time.Duration `yaml:"within" doc:"The longest time until the answer begins. If 0s, 10s."`
}

// RecognizerDriver declares the recognizer openai.
func RecognizerDriver() voice.RecognizerDriver {
	return driver.Of(voice.RecognizerDriver{Kind: "openai", Runs: []string{servers},
		Summary: "A server with OpenAI's interface: one in your home, such as speaches, or a cloud.",
		Sample:  `{kind: openai, url: "http://192.168.1.9:8000/v1", model: whisper-1, key: "", key_file: "", stream_upload: false}`},
		RecognizerKeys.options, func(o Options) (voice.Recognizer, error) { return NewRecognizer(o) })
}

func (k RecognizerKeys) options(voice.Setup) (Options, error) {
	key, err := secret.Read("key", k.Key, k.KeyFile)
	return Options{URL: k.URL, Key: key, Model: k.Model, StreamUpload: k.StreamUpload, FirstByte: k.Within}, err
}

// SynthesizerKeys are the configuration keys of a synthesizer of kind openai.
type SynthesizerKeys struct {
	URL     string        `yaml:"url" doc:"A server with /audio/speech below this address, which is used as it is."`
	Model   string        `yaml:"model" doc:"If empty, tts-1."`
	Voice   string        `yaml:"voice" doc:"If empty, alloy."`
	Key     string        `yaml:"key" doc:"The server's API key, if it wants one."`
	KeyFile string        `yaml:"key_file" doc:"A file that holds the key."`
	Rate    int           `yaml:"rate" unit:"Hz" doc:"The sample rate of the server's raw sound, if it is not 24000 Hz."`
	Stream  bool          `yaml:"stream" doc:"Asks the server to send sound while it makes it. Some servers otherwise make all of it first."`
	Within  time.Duration `yaml:"within" doc:"The longest time until sound begins. If 0s, 10s."`
}

// SynthesizerDriver declares the synthesizer openai.
func SynthesizerDriver() voice.SynthesizerDriver {
	return driver.Of(voice.SynthesizerDriver{Kind: "openai", Runs: []string{servers},
		Summary: "A server with OpenAI's interface: one in your home, such as kokoro, or a cloud.",
		Sample:  `{kind: openai, url: "http://192.168.1.9:8880/v1", model: kokoro, voice: af_heart, key_file: "", rate: 0, stream: false}`},
		SynthesizerKeys.options, func(o Options) (voice.Synthesizer, error) { return NewSynthesizer(o) })
}

func (k SynthesizerKeys) options(s voice.Setup) (Options, error) {
	key, err := secret.Read("key", k.Key, k.KeyFile)
	return Options{URL: k.URL, Key: key, Model: k.Model, Voice: cmp.Or(s.Voice, k.Voice), Rate: k.Rate, Stream: k.Stream, FirstByte: k.Within}, err
}
