package appliancetest

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"

	"perch/gateway/wyoming"
	"perch/must"
	"perch/voice"
	"perch/voice/voicetest"
	wire "perch/voice/wyoming"
)

// humming is a voice of perch-speech that hums.
type humming struct{}

// Name implements voice.Synthesizer.
func (humming) Name() string { return "humming" }

// Synthesize implements voice.Synthesizer.
func (humming) Synthesize(_ context.Context, _ string, _ voice.Options, out func([]int16) error) error {
	return out(voicetest.Tone(voice.SpeakerRate, 440, 8000, voice.FrameDuration))
}

// StartPerchSpeech runs a server like perch-speech at an address (host:port) until stop is called or the test ends. Its voice anna
// speaks a language.
func StartPerchSpeech(t *testing.T, address, language string) (stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	must.Succeed(t, err)
	s := must.Value(wyoming.New(wyoming.Options{Listen: l, Name: "perch-speech", Version: "1", Log: slog.New(slog.DiscardHandler),
		Hold: func() func() { return func() {} }, Synthesizers: []wyoming.Model[voice.Synthesizer]{{Engine: humming{},
			Model: wire.Model{Name: "anna", Version: "1", Description: "anna", Languages: []string{language}}}}}))(t)
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return stop
}
