package realtimetest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"perch/socket"
)

// Gemini is a fake server of Google's Gemini Live API. It accepts the messages of python-genai's types, the setup first and
// speech only between activityStart and activityEnd, and closes the connection at any other.
type Gemini struct {
	fake
	// Answer writes the messages of an answer: serverContent, toolCall and so on. outputs are the results of tools so far.
	// An empty string cuts the connection.
	Answer     func(outputs []string) []string
	Transcript string
	Reason     string // with which the server closes the connection after the setup; "" if it does not

	setup string
	turns []string
	sound int // samples of the latest utterance
}

// ServeGemini starts a server, which runs until the test ends. It reports the messages that it has refused as errors of
// the test.
func ServeGemini(t testing.TB, s *Gemini) *Gemini {
	t.Helper()
	const path = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
	s.start(t, func(r *http.Request) (int, string) {
		if r.Header.Get("X-Goog-Api-Key") != Key || r.URL.Path != path {
			return http.StatusForbidden, `{"error":{"code":403,"message":"API key not valid.","status":"PERMISSION_DENIED"}}`
		}
		return 0, ""
	}, func(ws *socket.Conn) {
		if reason := s.serve(ws); reason != "" {
			ws.Close(socket.Violation, reason)
		}
	})
	return s
}

// Setup returns the latest setup, as JSON.
func (s *Gemini) Setup() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setup
}

// Turns returns the texts that clients have added to conversations.
func (s *Gemini) Turns() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.turns)
}

// Sound returns the number of samples in the latest utterance.
func (s *Gemini) Sound() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sound
}

// geminiClient holds the fields of all messages of clients. Others are refused.
type geminiClient struct {
	Setup *struct {
		Model                    string          `json:"model"`
		GenerationConfig         json.RawMessage `json:"generationConfig"`
		SystemInstruction        json.RawMessage `json:"systemInstruction"`
		InputAudioTranscription  *struct{}       `json:"inputAudioTranscription"`
		OutputAudioTranscription *struct{}       `json:"outputAudioTranscription"`
		RealtimeInputConfig      struct {
			AutomaticActivityDetection struct {
				Disabled bool `json:"disabled"`
			} `json:"automaticActivityDetection"`
		} `json:"realtimeInputConfig"`
		Tools []struct {
			FunctionDeclarations []struct {
				Name                 string         `json:"name"`
				Description          string         `json:"description"`
				ParametersJSONSchema map[string]any `json:"parametersJsonSchema"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
	} `json:"setup"`
	ClientContent *struct {
		Turns []struct {
			Role  string `json:"role"`
			Parts []struct {
				Text string `json:"text"`
			} `json:"parts"`
		} `json:"turns"`
		TurnComplete bool `json:"turnComplete"`
	} `json:"clientContent"`
	RealtimeInput *struct {
		ActivityStart *struct{} `json:"activityStart"`
		ActivityEnd   *struct{} `json:"activityEnd"`
		Audio         *struct {
			MIMEType string `json:"mimeType"`
			Data     string `json:"data"`
		} `json:"audio"`
	} `json:"realtimeInput"`
	ToolResponse *struct {
		FunctionResponses []struct {
			ID       string            `json:"id"`
			Name     string            `json:"name"`
			Response map[string]string `json:"response"`
		} `json:"functionResponses"`
	} `json:"toolResponse"`
}

// serve serves a connection until it ends, or a message is refused. It returns the reason of the end, if there is one.
func (s *Gemini) serve(ws *socket.Conn) (reason string) {
	refuse := func(format string, args ...any) string {
		v := fmt.Sprintf(format, args...)
		s.violated(v)
		return v
	}
	send := func(message []byte) bool {
		s.transfer('<', message)
		return ws.SendBinary(message) == nil // the API sends binary messages
	}
	pending := map[string]string{} // names of tools that were called, by ID
	var outputs []string
	ready, detects, speaking, samples := false, false, false, 0
	answer := func() bool {
		for _, message := range s.Answer(outputs) {
			if message == "" {
				return false
			}
			var call struct {
				ToolCall struct{ FunctionCalls []struct{ ID, Name string } }
			}
			_ = json.Unmarshal([]byte(message), &call)
			for _, c := range call.ToolCall.FunctionCalls {
				pending[c.ID] = c.Name
			}
			if !send([]byte(message)) {
				return false
			}
		}
		return true
	}
	for {
		_, data, err := ws.Receive()
		if err != nil {
			return ""
		}
		s.transfer('>', data)
		var m geminiClient
		if err := decode(data, &m); err != nil {
			return refuse("%v in %.200s", err, data)
		}
		kind := ""
		answers := false
		switch {
		case m.Setup != nil:
			if kind = "setup"; ready || !strings.HasPrefix(m.Setup.Model, "models/") {
				return refuse("a setup that is not the first message, or without models/: %s", m.Setup.Model)
			}
			ready, detects = true, !m.Setup.RealtimeInputConfig.AutomaticActivityDetection.Disabled
			s.mu.Lock()
			s.setup = string(data)
			s.mu.Unlock()
			if s.Reason != "" {
				return s.Reason
			}
			send([]byte(`{"setupComplete":{"sessionId":"s1"}}`))
		case !ready:
			return refuse("the first message is no setup")
		case m.ClientContent != nil:
			kind = "clientContent"
			for _, turn := range m.ClientContent.Turns {
				if turn.Role != "user" && turn.Role != "model" || len(turn.Parts) != 1 || turn.Parts[0].Text == "" {
					return refuse("a turn of %q", turn.Role)
				}
				s.mu.Lock()
				s.turns = append(s.turns, turn.Role+": "+turn.Parts[0].Text)
				s.mu.Unlock()
			}
			answers = m.ClientContent.TurnComplete
		case m.RealtimeInput != nil && m.RealtimeInput.ActivityStart != nil:
			if kind = "activityStart"; detects || speaking {
				return refuse("activityStart with automatic detection, or twice")
			}
			speaking, samples = true, 0
		case m.RealtimeInput != nil && m.RealtimeInput.ActivityEnd != nil:
			if kind = "activityEnd"; detects || !speaking {
				return refuse("activityEnd without activityStart")
			}
			speaking, answers = false, true
			s.mu.Lock()
			s.sound = samples
			s.mu.Unlock()
			for _, word := range strings.SplitAfter(s.Transcript, " ") { // in pieces, without a last one that says finished
				text, _ := json.Marshal(map[string]any{"serverContent": map[string]any{"inputTranscription": map[string]any{"text": word}}})
				send(text)
			}
		case m.RealtimeInput != nil && m.RealtimeInput.Audio != nil:
			kind = "audio"
			sound, err := base64.StdEncoding.DecodeString(m.RealtimeInput.Audio.Data)
			if err != nil || len(sound)%2 != 0 || m.RealtimeInput.Audio.MIMEType != "audio/pcm;rate=16000" || !detects && !speaking {
				return refuse("sound as %s, %v, speaking %t", m.RealtimeInput.Audio.MIMEType, err, speaking)
			}
			samples += len(sound) / 2
			if detects && samples > 24000 && silent(sound) {
				answers, detects = true, false
			}
		case m.ToolResponse != nil:
			kind = "toolResponse"
			for _, r := range m.ToolResponse.FunctionResponses {
				if pending[r.ID] == "" || pending[r.ID] != r.Name {
					return refuse("the result of no call: %s %s", r.ID, r.Name)
				}
				delete(pending, r.ID)
				outputs = append(outputs, r.Response["output"])
			}
			answers = len(pending) == 0
		default:
			return refuse("a message without a known field: %.100s", data)
		}
		s.record(kind, "audio")
		if answers && !answer() {
			return ""
		}
	}
}

// GeminiSpeech returns a message with a text and its sound.
func GeminiSpeech(text string, d time.Duration) string {
	sound := base64.StdEncoding.EncodeToString(make([]byte, int(d.Seconds()*24000)*2))
	message, _ := json.Marshal(map[string]any{"serverContent": map[string]any{"outputTranscription": map[string]any{"text": text},
		"modelTurn": map[string]any{"role": "model", "parts": []any{map[string]any{"inlineData": map[string]any{"mimeType": "audio/pcm;rate=24000", "data": sound}}}}}})
	return string(message)
}

// GeminiEnd is the message at the end of an answer, with 50 tokens.
const GeminiEnd = `{"serverContent":{"turnComplete":true},"usageMetadata":{"promptTokenCount":20,"responseTokenCount":30,"totalTokenCount":50}}`
