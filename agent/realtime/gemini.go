package realtime

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"perch/agent"
	"perch/agent/thinker"
	"perch/limit"
	"perch/voice"
)

// gemini is the dialect of Google's Gemini Live API, BidiGenerateContent. The names are those of python-genai.
type gemini struct {
	serverTurns bool
	heard       string   // transcript of the speech so far
	heardAll    bool     // the transcript was passed on
	names       sync.Map // names of the tools that were called, by ID of the call; add and decode may run at the same time
	tokens      int      // latest count of the answer's tokens
	ended       bool     // an answer has ended
	cut         bool     // an answer was interrupted, and its turnComplete has not come yet
}

// geminiPath is the path of the WebSocket below the server's address.
const geminiPath = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"

// Rates of the API's PCM, in Hz.
const geminiInput, geminiOutput = 16000, 24000

func (*gemini) greeting() string { return "" }

func (*gemini) greeted(serverEvent) {}

func (d *gemini) setUp(o Options, t agent.Turn, p thinker.Prompt) object {
	config := object{"responseModalities": []string{"AUDIO"}} // the models speak only; outputAudioTranscription has the text
	if o.Voice != "" {
		config["speechConfig"] = object{"voiceConfig": object{"prebuiltVoiceConfig": object{"voiceName": o.Voice}}}
	}
	if n := p.MaxTokens(o.MaxTokens); n > 0 {
		config["maxOutputTokens"] = n
	}
	setup := object{"model": "models/" + strings.TrimPrefix(o.Model, "models/"), "generationConfig": config,
		"inputAudioTranscription": object{}, "outputAudioTranscription": object{},
		"realtimeInputConfig": object{"automaticActivityDetection": object{"disabled": !d.serverTurns}}}
	if p.System != "" {
		setup["systemInstruction"] = object{"role": "user", "parts": []object{{"text": p.System}}}
	}
	tools := []object{}
	for _, tool := range p.Tools {
		tools = append(tools, object{"name": tool.Name, "description": tool.Description, "parametersJsonSchema": tool.Schema})
	}
	if len(tools) > 0 {
		setup["tools"] = []object{{"functionDeclarations": tools}}
	}
	return object{"setup": setup}
}

func (d *gemini) add(messages []thinker.Message, last bool) (events []object) {
	turns, results := []object{}, []object{}
	for _, m := range messages {
		switch m.Role {
		case thinker.RoleTool:
			name, _ := d.names.Load(m.CallID)
			results = append(results, object{"id": m.CallID, "name": name, "response": object{"output": m.Text}})
		case thinker.RoleAssistant:
			turns = append(turns, object{"role": "model", "parts": []object{{"text": m.Text}}})
		default:
			turns = append(turns, object{"role": "user", "parts": []object{{"text": m.Text}}})
		}
	}
	if len(turns) > 0 {
		events = append(events, object{"clientContent": object{"turns": turns, "turnComplete": last}})
	}
	if len(results) > 0 {
		events = append(events, object{"toolResponse": object{"functionResponses": results}})
	}
	return events
}

func (d *gemini) startSpeech() []object { return d.activity("activityStart") }

func (d *gemini) endSpeech() []object { return d.activity("activityEnd") }

// activity returns an event that marks the beginning or the end of speech, unless the server finds them itself.
func (d *gemini) activity(kind string) []object {
	if d.serverTurns {
		return nil
	}
	return []object{{"realtimeInput": object{kind: object{}}}}
}

func (*gemini) sound(pcm []int16) object {
	return object{"realtimeInput": object{"audio": object{"mimeType": fmt.Sprintf("audio/pcm;rate=%d", geminiInput), "data": encodeSound(pcm)}}}
}

// respond returns nothing: the server answers the end of speech, the results of tools and the end of a text by itself.
func (*gemini) respond() []object { return nil }

// cancel returns nothing: the end of the connection ends the answer.
func (*gemini) cancel() []object { return nil }

// geminiMessage is a message of the server.
type geminiMessage struct {
	SetupComplete *struct{}
	ServerContent *struct {
		ModelTurn struct {
			Parts []struct {
				Text       string
				Thought    bool
				InlineData struct{ MIMEType, Data string }
			}
		}
		InputTranscription, OutputTranscription struct {
			Text     string
			Finished bool
		}
		Interrupted, TurnComplete bool
	}
	ToolCall *struct {
		FunctionCalls []struct {
			ID, Name string
			Args     json.RawMessage
		}
	}
	UsageMetadata struct{ TotalTokenCount int }
	Error         failure
}

func (d *gemini) decode(data []byte) []serverEvent {
	var fields map[string]json.RawMessage
	var m geminiMessage
	if json.Unmarshal(data, &fields) != nil || len(fields) == 0 {
		return nil
	}
	_ = json.Unmarshal(data, &m)                                                         // fields that a turn does not use may have other types
	events := []serverEvent{{Type: strings.Join(slices.Sorted(maps.Keys(fields)), " ")}} // something was received, even if nothing follows
	d.tokens = max(d.tokens, m.UsageMetadata.TotalTokenCount)
	if m.SetupComplete != nil {
		s := &session{}
		s.Audio.Input.Format.Rate, s.Audio.Output.Format.Rate = geminiInput, geminiOutput
		events = append(events, serverEvent{Type: "session.updated", Session: s})
	}
	if c := m.ServerContent; c != nil {
		if c.InputTranscription.Text != "" {
			events = append(events, serverEvent{Type: "input_audio_buffer.speech_started"})
		}
		if len(d.heard) < voice.MaxTranscript {
			d.heard += c.InputTranscription.Text
		}
		var output []serverEvent
		if text := c.OutputTranscription.Text; text != "" {
			output = append(output, serverEvent{Type: "response.output_audio_transcript.delta", Delta: text})
		}
		for _, part := range c.ModelTurn.Parts {
			switch {
			case part.Thought:
			case strings.HasPrefix(part.InlineData.MIMEType, "audio/pcm"):
				output = append(output, serverEvent{Type: "response.output_audio.delta", Delta: part.InlineData.Data, Rate: pcmRate(part.InlineData.MIMEType)})
			case part.Text != "":
				output = append(output, serverEvent{Type: "response.output_text.delta", Delta: part.Text})
			}
		}
		if c.InputTranscription.Finished || len(output) > 0 || c.TurnComplete || d.ended {
			events = append(events, d.transcribed()...)
		}
		events = append(events, output...)
		switch {
		case c.Interrupted:
			d.cut = !c.TurnComplete
			events = append(events, d.done("cancelled", "turn_detected"))
		case c.TurnComplete && d.cut:
			d.cut = false
		case c.TurnComplete:
			events = append(events, d.done("completed", ""))
		}
	}
	if m.ToolCall != nil {
		events = append(events, d.transcribed()...)
		calls := m.ToolCall.FunctionCalls
		for _, call := range calls[:min(len(calls), limit.Calls)] {
			d.names.Store(call.ID, call.Name)
			events = append(events, serverEvent{Type: "response.function_call_arguments.done", CallID: call.ID, Name: call.Name, Arguments: string(call.Args)})
		}
		events = append(events, d.done("completed", "")) // the answer goes on with the results
	}
	return events
}

// transcribed returns the event with the transcript of the speech, once.
func (d *gemini) transcribed() []serverEvent {
	if d.heardAll || strings.TrimSpace(d.heard) == "" {
		return nil
	}
	d.heardAll = true
	return []serverEvent{{Type: "conversation.item.input_audio_transcription.completed", Transcript: d.heard}}
}

// done returns the event for the end of an answer, or of its part before a call.
func (d *gemini) done(status, reason string) serverEvent {
	e := serverEvent{Type: "response.done"}
	e.Response.Status, e.Response.StatusDetails.Reason, e.Response.Usage.Total = status, reason, d.tokens
	d.tokens, d.ended = 0, true
	return e
}

// pcmRate returns the rate in a MIME type such as "audio/pcm;rate=24000", in Hz, or geminiOutput.
func pcmRate(kind string) int {
	_, parameters, _ := mime.ParseMediaType(kind)
	if rate, err := strconv.Atoi(parameters["rate"]); err == nil && isRate(rate) {
		return rate
	}
	return geminiOutput
}
