package voice

import (
	"log/slog"

	"perch/driver"
)

// Setup holds the settings that the appliance gives an engine in addition to its options.
type Setup struct {
	Language string // the language in the appliance's configuration, as a BCP 47 tag
	Voice    string // overrides the voice in a synthesizer's options; empty for no change
	Log      *slog.Logger
}

// RecognizerDriver and SynthesizerDriver declare kinds of engines.
type (
	RecognizerDriver  = driver.Driver[Setup, Recognizer]
	SynthesizerDriver = driver.Driver[Setup, Synthesizer]
)
