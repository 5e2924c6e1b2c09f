package voice

import (
	"log/slog"

	"perch/driver"
)

// Setup is what an engine needs besides its options.
type Setup struct {
	Language string // of the household, BCP 47
	Voice    string // overrides the option of a synthesizer unless empty
	Log      *slog.Logger
}

// RecognizerDriver and SynthesizerDriver declare kinds of engines.
type (
	RecognizerDriver  = driver.Driver[Setup, Recognizer]
	SynthesizerDriver = driver.Driver[Setup, Synthesizer]
)
