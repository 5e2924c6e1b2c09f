package admin

import (
	"context"

	"perch/voice/wyoming"
)

// SpeechModels lists the models of the perch-speech on this machine.
type SpeechModels struct {
	Models  []SpeechModel `json:"models"`
	Missing string        `json:"missing,omitempty"` // why there is no perch-speech, and what to do about it
}

// SpeechModel is a model of perch-speech.
type SpeechModel struct {
	wyoming.SpeechModel
	Error string `json:"error,omitempty"` // why the latest download has ended without the model
}

// speechModels manages the models of the perch-speech on this machine.
type speechModels interface {
	List(ctx context.Context) SpeechModels
	// Get begins to download a model.
	Get(ctx context.Context, name string) error
	// Remove removes a model. If it is being downloaded, Remove stops that instead.
	Remove(ctx context.Context, name string) error
}
