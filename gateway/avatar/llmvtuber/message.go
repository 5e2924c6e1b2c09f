package llmvtuber

import (
	"encoding/json"
	"fmt"
	"math"

	"perch/limit"
)

// maxSamples is the maximum number of samples in a message. The client sends 4096.
const maxSamples = 1 << 16

// message is a message from the client.
type message struct {
	kind    string
	text    string  // for text-input
	pcm     []int16 // for mic-audio-data: sound from the microphone, 16 kHz
	history string  // ID of a history
}

// parse decodes a message. Unknown fields and unknown types are not errors.
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
		return message{}, fmt.Errorf("not a message of Open-LLM-VTuber's client: %w", err)
	case len(b.Audio) > maxSamples:
		return message{}, fmt.Errorf("audio has %d samples, more than %d", len(b.Audio), maxSamples)
	case len(b.History) > limit.Name:
		return message{}, fmt.Errorf("history_uid has %d bytes, more than %d", len(b.History), limit.Name)
	}
	return message{b.Type, b.Text, toPCM(b.Audio), b.History}, nil
}

// toPCM converts a browser's samples, which range from -1 to 1, to 16-bit PCM.
func toPCM(floats []float32) []int16 {
	pcm := make([]int16, len(floats))
	for i, f := range floats {
		pcm[i] = int16(max(min(float64(f), 1), -1) * math.MaxInt16)
	}
	return pcm
}
