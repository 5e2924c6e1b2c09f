package realtime

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"

	"perch/agent"
	"perch/agent/thinker"
)

// dialect is the protocol of a server during one turn.
type dialect interface {
	// greeting returns the type of the event with which the server begins, or "" if it waits for the client.
	greeting() string
	// greeted handles the server's first event.
	greeted(e serverEvent)
	// setUp returns the event that sets up the session of a turn. The server's answer has the type session.updated.
	setUp(o Options, t agent.Turn, p thinker.Prompt) object
	// add returns the events that add messages to the conversation. last is whether the server should answer them at
	// once, if the protocol can say so.
	add(messages []thinker.Message, last bool) []object
	// startSpeech and endSpeech return the events around the sound of the person.
	startSpeech() []object
	endSpeech() []object
	// sound returns the event with a piece of the person's sound, at the rate of session.updated.
	sound(pcm []int16) object
	// respond returns the events that ask for an answer, and cancel the events that end the answer.
	respond() []object
	cancel() []object
	// decode returns the server's events in a message, under the names of OpenAI's API.
	decode(data []byte) []serverEvent
}

// object is a JSON object.
type object = map[string]any

// serverEvent holds the fields of all events of the server that a turn uses.
type serverEvent struct {
	Type       string
	Session    *session
	ResponseID string `json:"response_id"`
	Response   response
	Item       struct {
		Type, Name, Arguments string
		CallID                string `json:"call_id"`
	}
	Delta      string
	Rate       int `json:"-"` // of the sound in Delta, in Hz, if the event says it
	Transcript string
	CallID     string `json:"call_id"`
	Name       string
	Arguments  string
	Error      failure
}

// session is what the server tells of a session. The field Modalities is of the API's beta.
type session struct {
	Audio struct {
		Input, Output struct{ Format struct{ Rate int } }
	}
	Modalities []string
}

// response is the object of response.created and response.done.
type response struct {
	ID            string
	Status        string
	StatusDetails struct {
		Reason string
		Error  failure
	} `json:"status_details"`
	Usage struct {
		Total int `json:"total_tokens"`
	}
}

// failure is the error object of the server.
type failure struct{ Type, Code, Message string }

// defaultRate is the rate of OpenAI's PCM, in Hz.
const defaultRate = 24000

// rates returns the rates of the sound to and from the server, in Hz.
func (s *session) rates() (input, output int) {
	rate := func(given int) int {
		if !isRate(given) {
			return defaultRate
		}
		return given
	}
	return rate(s.Audio.Input.Format.Rate), rate(s.Audio.Output.Format.Rate)
}

// isRate reports whether speech with a rate in Hz is accepted. Other rates would need large tables to convert.
func isRate(hz int) bool {
	return slices.Contains([]int{8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000}, hz)
}

// encodeSound returns PCM as the APIs want it: 16 bits, little endian, in base64.
func encodeSound(pcm []int16) string {
	sound, _ := binary.Append(nil, binary.LittleEndian, pcm) // samples have a fixed size
	return base64.StdEncoding.EncodeToString(sound)
}

// errGarbage is the error for an event that cannot be decoded.
var errGarbage = errors.New("the event does not follow the protocol")

// decodeSound decodes the sound in an event.
func decodeSound(text string) ([]int16, error) {
	sound, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(sound)%2 != 0 {
		return nil, errGarbage
	}
	pcm := make([]int16, len(sound)/2)
	_, err = binary.Decode(sound, binary.LittleEndian, pcm)
	return pcm, err
}
