package wyoming

import (
	"context"
	"errors"
	"syscall"
)

// PerchSpeech is the address at which perch-speech listens by default: only programs on the same machine reach it.
const PerchSpeech = "127.0.0.1:10310"

// Offer holds the models with which a program recognizes speech, and its voices.
type Offer struct{ Hears, Speaks []Model }

// AskPerchSpeech returns what perch-speech offers on the server at a URL (tcp://host:port). The offer is empty if nothing listens
// there, or another Wyoming server does. The error means that the URL is invalid, or that no Wyoming server answers.
func AskPerchSpeech(ctx context.Context, url string) (offer Offer, err error) {
	e, err := New(Options{Address: url})
	if err != nil {
		return offer, err
	}
	info, err := e.fixed.describe(ctx)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errNotServed) {
		return offer, nil
	}
	models := func(programs []Program) (list []Model) {
		for _, p := range programs {
			if p.Name == "perch-speech" {
				list = append(list, p.voices()...)
			}
		}
		return list
	}
	return Offer{models(info.ASR), models(info.TTS)}, err
}

// HasLanguage reports whether one of the models supports a language.
func HasLanguage(models []Model, language string) bool {
	_, ok := matchLanguage(models, language)
	return ok && len(models) > 0
}

// Names returns the first few names of models, without duplicates and separated by commas, for a message.
func Names(models []Model) string { return names(models) }
