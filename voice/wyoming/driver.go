package wyoming

import (
	"cmp"
	"context"
	"time"

	"perch/driver"
	"perch/voice"
)

// Setup holds what an engine needs besides its keys in the configuration.
type Setup struct {
	voice.Setup
	Find func(ctx context.Context) ([]string, error) // see Options.Find
}

// runs describes the programs that an engine needs, for the documentation.
const runs = "a Wyoming server: faster-whisper, vosk, piper"

// RecognizerKeys are the keys of a recognizer of kind wyoming in the configuration.
type RecognizerKeys struct {
	URL    string        `yaml:"url" doc:"tcp://host:port. If empty, Perch searches the network for a server."`
	Model  string        `yaml:"model" doc:"As the server lists it. If empty, the server's choice."`
	Within time.Duration `yaml:"within" doc:"The longest time until the answer begins. If 0s, 10s."`
}

// RecognizerDriver declares the recognizer wyoming.
func RecognizerDriver() driver.Driver[Setup, voice.Recognizer] {
	return driver.Of(driver.Driver[Setup, voice.Recognizer]{Kind: "wyoming", Runs: []string{runs},
		Summary: "A server in your home that understands speech, such as faster-whisper.",
		Sample:  `{kind: wyoming, url: "tcp://192.168.1.9:10300", model: ""}    # such as faster-whisper`},
		RecognizerKeys.options, func(o Options) (voice.Recognizer, error) {
			e, err := New(o)
			return asRecognizer{e}, err
		})
}

func (k RecognizerKeys) options(s Setup) (Options, error) {
	return Options{Address: k.URL, Find: s.Find, Model: k.Model, AnswerWithin: k.Within, Log: s.Log}, nil
}

// asRecognizer is an Engine that is only used to recognize speech.
type asRecognizer struct{ *Engine }

// Check returns an error if no server can recognize.
func (r asRecognizer) Check(ctx context.Context) error { return r.CheckRecognize(ctx, voice.Options{}) }

// Recognize implements voice.Recognizer. It begins when the person pauses, because most servers recognize an
// utterance only when they have all of it.
func (r asRecognizer) Recognize(ctx context.Context, u *voice.Utterance, o voice.Options) (voice.Transcript, error) {
	return voice.RecognizeEarly(ctx, u, o, r.Engine.Recognize)
}

// SynthesizerKeys are the keys of a synthesizer of kind wyoming in the configuration.
type SynthesizerKeys struct {
	URL    string        `yaml:"url" doc:"tcp://host:port. If empty, Perch searches the network for a server."`
	Voice  string        `yaml:"voice" doc:"As the server lists it. If empty, the server's choice."`
	Within time.Duration `yaml:"within" doc:"The longest time until sound begins. If 0s, 10s."`
}

// SynthesizerDriver declares the synthesizer wyoming.
func SynthesizerDriver() driver.Driver[Setup, voice.Synthesizer] {
	return driver.Of(driver.Driver[Setup, voice.Synthesizer]{Kind: "wyoming", Runs: []string{runs},
		Summary: "A server in your home that speaks, such as piper.",
		Sample:  `{kind: wyoming, url: "tcp://192.168.1.9:10200", voice: en_GB-alba-medium}    # piper`},
		SynthesizerKeys.options, func(o Options) (voice.Synthesizer, error) {
			e, err := New(o)
			return asSynthesizer{e}, err
		})
}

func (k SynthesizerKeys) options(s Setup) (Options, error) {
	return Options{Address: k.URL, Find: s.Find, Voice: cmp.Or(s.Voice, k.Voice), Language: s.Language,
		AnswerWithin: k.Within, Log: s.Log}, nil
}

// asSynthesizer is an Engine that is only used to synthesize speech.
type asSynthesizer struct{ *Engine }

// Voices implements voice.Lister. The voices for Options.Language come first.
func (s asSynthesizer) Voices(ctx context.Context) (list []voice.Named, err error) {
	_, info, _, err := s.pick(ctx, synthesizeNeed(voice.Options{}))
	if err != nil {
		return nil, err
	}
	var others []voice.Named
	for _, program := range info.TTS {
		for _, m := range program.voices() {
			_, speaks := matchLanguage([]Model{m}, s.o.Language)
			if speaks {
				list = append(list, voice.Named{Name: m.Name})
			} else {
				others = append(others, voice.Named{Name: m.Name})
			}
		}
	}
	return append(list, others...), nil
}

// Check returns an error if no server can synthesize.
func (s asSynthesizer) Check(ctx context.Context) error {
	return s.CheckSynthesize(ctx, voice.Options{})
}
