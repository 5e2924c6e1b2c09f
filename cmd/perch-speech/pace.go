package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"time"

	"perch/voice"
)

// sentence is "set a timer for five minutes", spoken by the voice en_US-joe-medium.
//
//go:embed sentence.wav
var sentence []byte

// measure returns how long a recognizer takes for each second of sound.
func measure(ctx context.Context, r voice.Recognizer) (pace float64, err error) {
	w, err := voice.NewWAVReader(bytes.NewReader(sentence))
	if err != nil {
		return 0, fmt.Errorf("read the sentence: %w", err)
	}
	pcm, err := w.ReadAll(voice.MicRate)
	if err != nil {
		return 0, fmt.Errorf("read the sentence: %w", err)
	}
	u := voice.NewUtterance()
	u.Write(pcm)
	u.Finish()
	began := time.Now()
	_, err = r.Recognize(ctx, u, voice.Options{})
	return time.Since(began).Seconds() / u.Duration().Seconds(), err
}
