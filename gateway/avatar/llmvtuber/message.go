package llmvtuber

import (
	"encoding/json"
	"fmt"
	"math"

	"perch/limit"
)

// mostSamples bounds the sound in a message. The client sends 4096.
const mostSamples = 1 << 16

// message is a message of the client.
type message struct {
	kind    string
	text    string  // of text-input
	pcm     []int16 // of mic-audio-data: from the microphone, at 16 kHz
	history string
}

// parse decodes a message. Unknown fields and types are not errors.
func parse(data []byte) (message, error) {
	var b struct {
		Type    string    `json:"type"`
		Text    string    `json:"text"`
		Audio   []float32 `json:"audio"`
		History string    `json:"history_uid"`
	}
	err := json.Unmarshal(data, &b)
	switch {
	case err != nil:
		return message{}, fmt.Errorf("that is no message of Open-LLM-VTuber's client: %w", err)
	case len(b.Audio) > mostSamples:
		return message{}, fmt.Errorf("%d samples in a message are more than %d", len(b.Audio), mostSamples)
	case len(b.History) > limit.Name:
		return message{}, fmt.Errorf("history_uid has %d bytes, more than %d", len(b.History), limit.Name)
	}
	return message{b.Type, b.Text, samples(b.Audio), b.History}, nil
}

// samples converts a browser's samples, from -1 to 1, to 16-bit PCM.
func samples(floats []float32) []int16 {
	pcm := make([]int16, len(floats))
	for i, f := range floats {
		pcm[i] = int16(max(min(float64(f), 1), -1) * math.MaxInt16)
	}
	return pcm
}
