package llmvtuber

import (
	"encoding/json"
	"fmt"
	"math"

	"perch/limit"
)

// mostSamples bounds the sound in a message. The client sends 4096.
const mostSamples = 1 << 16

// message is what the client asks for. The set is closed.
type message interface{ isMessage() }

type (
	// textInput is a question that was typed.
	textInput struct{ text string }
	// micData is sound of the microphone, at 16 kHz.
	micData struct{ pcm []int16 }
	// micEnd ends an utterance.
	micEnd struct{}
	// interrupt ends the answer under way.
	interrupt struct{}
	// played says that all sound of an answer was played.
	played struct{}
	// request is one that is answered by a message, by its type.
	request struct{ kind, history string }
	// other is one that needs no answer here.
	other struct{}
)

func (textInput) isMessage() {}
func (micData) isMessage()   {}
func (micEnd) isMessage()    {}
func (interrupt) isMessage() {}
func (played) isMessage()    {}
func (request) isMessage()   {}
func (other) isMessage()     {}

// parse reads a message. What later clients may add is other.
func parse(data []byte) (message, error) {
	var b struct {
		Type    string    `json:"type"`
		Text    string    `json:"text"`
		Audio   []float32 `json:"audio"`
		History string    `json:"history_uid"`
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("that is no message of Open-LLM-VTuber's client: %w", err)
	}
	switch b.Type {
	case "text-input":
		return textInput{b.Text}, nil
	case "mic-audio-data":
		if len(b.Audio) > mostSamples {
			return nil, fmt.Errorf("%d samples in a message are more than %d", len(b.Audio), mostSamples)
		}
		return micData{samples(b.Audio)}, nil
	case "mic-audio-end":
		return micEnd{}, nil
	case "interrupt-signal":
		return interrupt{}, nil
	case "frontend-playback-complete":
		return played{}, nil
	case "heartbeat", "request-init-config", "request-group-info", "fetch-backgrounds", "fetch-configs", "switch-config",
		"fetch-history-list", "fetch-and-set-history", "create-new-history", "delete-history",
		"add-client-to-group", "remove-client-from-group":
		if len(b.History) > limit.Name {
			return nil, fmt.Errorf("history_uid has %d bytes, more than %d", len(b.History), limit.Name)
		}
		return request{b.Type, b.History}, nil
	}
	return other{}, nil
}

// samples are those of a browser, from -1 to 1, as 16-bit PCM.
func samples(floats []float32) []int16 {
	pcm := make([]int16, len(floats))
	for i, f := range floats {
		pcm[i] = int16(max(min(float64(f), 1), -1) * math.MaxInt16)
	}
	return pcm
}
