package hass

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"perch/remote"
)

// Stages of an Assist pipeline. Assist is Home Assistant's voice assistant; a pipeline is a
// combination of its engines.
const (
	StageSpeech = "stt"
	StageIntent = "intent"
)

// Types of the events of a run.
const (
	EventRunStart       = "run-start"
	EventSpeechStart    = "stt-start"
	EventSpeechEnd      = "stt-end"
	EventIntentStart    = "intent-start"
	EventIntentProgress = "intent-progress"
	EventIntentEnd      = "intent-end"
	EventRunEnd         = "run-end"
	eventError          = "error"
)

// Start describes a run of an Assist pipeline.
type Start struct {
	From, To     string // first and last stage
	Text         string // the input, unless From is StageSpeech
	Rate         int    // sample rate of the sound in Hz, if From is StageSpeech
	Pipeline     string // ID of the pipeline, or entity of a conversation agent; empty for the preferred pipeline
	Conversation string // ID of the conversation; empty for a new conversation
}

// Run is a run of an Assist pipeline. Only one goroutine may use it, but a second goroutine may
// call Sound and EndSound.
type Run struct {
	conn      *Conn
	responses *responses
	first     *incoming // message received by AwaitStart, for the next call of Next
	ended     bool
}

// Run starts a run, which the caller must close. The error is a *Fault if the connection has ended, or
// context.Cause(ctx) if ctx has ended.
func (c *Conn) Run(ctx context.Context, s Start) (*Run, error) {
	input := map[string]any{}
	if s.From == StageSpeech {
		input["sample_rate"] = s.Rate
		// The caller detects the end of the utterance. Without no_vad, Home Assistant would end
		// the utterance after a pause of 0.7 s.
		input["no_vad"] = true
	} else {
		input["text"] = s.Text
	}
	fields := map[string]any{"start_stage": s.From, "end_stage": s.To, "input": input}
	// Omit empty fields, since null is not a valid ID of a pipeline.
	if s.Pipeline != "" {
		fields["pipeline"] = s.Pipeline
	}
	if s.Conversation != "" {
		fields["conversation_id"] = s.Conversation
	}
	r, err := c.sendCommand(ctx, "assist_pipeline/run", fields)
	if err != nil {
		return nil, err
	}
	return &Run{conn: c, responses: r}, nil
}

// AwaitStart waits for at most within until Home Assistant has accepted the run. It may be called
// once, before Next. Home Assistant accepts a run at once, so a short time suffices to detect a
// dead connection. AwaitStart returns the same errors as Next, except io.EOF.
func (r *Run) AwaitStart(ctx context.Context, within time.Duration) error {
	limited, cancel := context.WithTimeoutCause(ctx, within, r.conn.client.TimeoutFault(within))
	defer cancel()
	m, err := r.responses.next(limited)
	switch {
	case err != nil:
		return err
	case m.Type == "result" && !m.Success:
		return r.conn.client.refused(m.Error.Code, m.Error.Message)
	}
	r.first = &m
	return nil
}

// Unlimited is a value for the argument within of Next: Next then waits without a time limit.
const Unlimited time.Duration = -1

// Next waits for the next event, for at most within or, if within is Unlimited, without a time
// limit. It returns io.EOF after the event EventRunEnd, and after a failure that an event has
// reported. If Home Assistant reports a failure, the error is a *Fault with Home Assistant's code.
// If the connection has ended, no event arrived in time, or an event is invalid, the error is a
// *Fault with a code of package remote. If ctx has ended, the error is context.Cause(ctx).
func (r *Run) Next(ctx context.Context, within time.Duration) (Event, error) {
	if r.ended {
		return Event{}, io.EOF
	}
	if within != Unlimited {
		limited, cancel := context.WithTimeoutCause(ctx, within, r.conn.client.TimeoutFault(within))
		defer cancel()
		ctx = limited
	}
	for {
		m, err := r.message(ctx)
		switch {
		case err != nil:
			return Event{}, err
		case m.Type == "result" && !m.Success:
			r.ended = true
			return Event{}, r.conn.client.refused(m.Error.Code, m.Error.Message)
		case m.Type == "event":
			return r.event(m.Event)
		}
	}
}

// message returns the next message of the run.
func (r *Run) message(ctx context.Context) (incoming, error) {
	if r.first != nil {
		m := *r.first
		r.first = nil
		return m, nil
	}
	return r.responses.next(ctx)
}

// event decodes an event. It returns a *Fault for an event that reports a failure or is invalid.
func (r *Run) event(raw json.RawMessage) (Event, error) {
	var e struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return Event{}, r.conn.client.Fault("sent an event of the pipeline that is not part of its API; its version may be too old or too new")
	}
	switch e.Type {
	case eventError:
		var failure struct{ Code, Message string }
		if err := json.Unmarshal(e.Data, &failure); err != nil {
			failure.Code = remote.CodeOdd
		}
		r.ended = true
		return Event{}, r.conn.client.refused(failure.Code, failure.Message)
	case EventRunEnd:
		r.ended = true
	}
	return Event{e.Type, e.Data}, nil
}

// Close ends the run, also in Home Assistant. Close does not wait for Home Assistant.
func (r *Run) Close() { r.responses.close(true) }

// Sound sends a piece of the sound (16-bit little-endian mono) of a run that starts with
// StageSpeech. handler is the handler ID in the run's run-start event. Sound does not retain
// pcm.
func (r *Run) Sound(ctx context.Context, handler byte, pcm []byte) error {
	return r.conn.queue(ctx, outgoing{sound: append([]byte{handler}, pcm...)})
}

// EndSound marks the end of the sound.
func (r *Run) EndSound(ctx context.Context, handler byte) error { return r.Sound(ctx, handler, nil) }

// Converse sends a text to a conversation agent with the REST API, and returns the agent's
// reply. It returns the same errors as Client.Call.
func (c *Client) Converse(ctx context.Context, within time.Duration, q Question) (Reply, error) {
	var r reply
	if err := c.Call(ctx, within, "POST", "api/conversation/process", q, &r); err != nil {
		return Reply{}, err
	}
	return r.reply(), nil
}

// Question is the input of Converse. Only Text is required.
type Question struct {
	Text         string `json:"text"`
	Language     string `json:"language,omitempty"` // BCP 47
	Agent        string `json:"agent_id,omitempty"`
	Conversation string `json:"conversation_id,omitempty"`
}

// Pipeline is the configuration of an Assist pipeline. The fields of missing engines are empty.
type Pipeline struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	Agent         string `json:"conversation_engine"`
	STT           string `json:"stt_engine"`
	TTS           string `json:"tts_engine"`
	VoiceLanguage string `json:"tts_language"`
	Voice         string `json:"tts_voice"`
}

// Pipeline returns the configuration of the pipeline with the given ID, or of the preferred
// pipeline if id is empty. If there is no such pipeline, the error is a *Fault with the code
// "pipeline-not-found". The other errors are those of Conn.Call.
func (c *Conn) Pipeline(ctx context.Context, within time.Duration, id string) (Pipeline, error) {
	fields := map[string]any{}
	if id != "" {
		fields["pipeline_id"] = id
	}
	var p Pipeline
	err := c.Call(ctx, within, "assist_pipeline/pipeline/get", fields, &p)
	if fault, ok := errors.AsType[*Fault](err); ok && fault.Code == "not_found" {
		return p, c.client.refused("pipeline-not-found", "")
	}
	return p, err
}
