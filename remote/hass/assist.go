package hass

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"perch/remote"
)

// Stages of an Assist pipeline.
const (
	StageSpeech = "stt"
	StageIntent = "intent"
)

// Types of the events of a run that are used here.
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
	From, To     string // stages
	Text         string // input of the stage intent or tts
	Rate         int    // of the sound for the stage stt, in Hz, 16-bit mono
	Pipeline     string // its id, or a conversation agent's entity; empty for the preferred one
	Conversation string // its id; empty for a new one
}

// Run is a run of an Assist pipeline. One goroutine may use it; another may call Sound and
// EndSound.
type Run struct {
	conn    *Conn
	answers *answers
	first   *incoming // received by AwaitStart, for Next
	over    bool
}

// Run starts a run, which must be closed. Its errors are as of Next.
func (c *Conn) Run(ctx context.Context, s Start) (*Run, error) {
	input := map[string]any{}
	if s.From == StageSpeech {
		input["sample_rate"] = s.Rate
		// The end of the utterance is found here; Home Assistant would cut it at a pause
		// of 0.7 s.
		input["no_vad"] = true
	} else {
		input["text"] = s.Text
	}
	fields := map[string]any{"start_stage": s.From, "end_stage": s.To, "input": input}
	// Empty fields are omitted: null is not a valid pipeline id.
	if s.Pipeline != "" {
		fields["pipeline"] = s.Pipeline
	}
	if s.Conversation != "" {
		fields["conversation_id"] = s.Conversation
	}
	a, err := c.ask(ctx, "assist_pipeline/run", fields)
	if err != nil {
		return nil, err
	}
	return &Run{conn: c, answers: a}, nil
}

// AwaitStart waits up to within until Home Assistant has accepted the run, which it does at
// once: so a dead connection is detected early. Its errors are as of Next.
func (r *Run) AwaitStart(ctx context.Context, within time.Duration) error {
	limited, cancel := context.WithTimeoutCause(ctx, within, r.conn.client.Silent(within))
	defer cancel()
	m, err := r.answers.next(limited)
	switch {
	case err != nil:
		return err
	case m.Type == "result" && !m.Success:
		return r.conn.client.refused(m.Error.Code, m.Error.Message)
	}
	r.first = &m
	return nil
}

// Unlimited makes Next wait until ctx ends.
const Unlimited time.Duration = -1

// Next waits for the next event, for at most within or, if that is Unlimited, until ctx
// ends. It returns io.EOF after the run's end. An error of the run is a *Fault with Home
// Assistant's code; other errors are a *Fault of this package, or the cause of ctx's end.
func (r *Run) Next(ctx context.Context, within time.Duration) (Event, error) {
	if r.over {
		return Event{}, io.EOF
	}
	if within != Unlimited {
		limited, cancel := context.WithTimeoutCause(ctx, within, r.conn.client.Silent(within))
		defer cancel()
		ctx = limited
	}
	for {
		m, err := r.message(ctx)
		switch {
		case err != nil:
			return Event{}, err
		case m.Type == "result" && !m.Success:
			return Event{}, r.conn.client.refused(m.Error.Code, m.Error.Message)
		case m.Type == "event":
			return r.event(m.Event)
		}
	}
}

func (r *Run) message(ctx context.Context) (incoming, error) {
	if r.first != nil {
		m := *r.first
		r.first = nil
		return m, nil
	}
	return r.answers.next(ctx)
}

func (r *Run) event(raw json.RawMessage) (Event, error) {
	var e struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return Event{}, r.conn.client.Fault("reports its pipeline in a way that is not of its API; it may be too old, or too new")
	}
	switch e.Type {
	case eventError:
		var why struct{ Code, Message string }
		if err := json.Unmarshal(e.Data, &why); err != nil {
			why.Code = remote.CodeOdd
		}
		r.over = true
		return Event{}, r.conn.client.refused(why.Code, why.Message)
	case EventRunEnd:
		r.over = true
	}
	return Event{e.Type, e.Data}, nil
}

// Close ends the run, also in Home Assistant.
func (r *Run) Close() { r.answers.close(true) }

// Sound sends a piece of 16-bit little-endian mono sound of a run that begins with speech to
// the handler from its run-start event. It does not retain pcm.
func (r *Run) Sound(ctx context.Context, handler byte, pcm []byte) error {
	return r.conn.queue(ctx, outgoing{sound: append([]byte{handler}, pcm...)})
}

// EndSound ends the sound.
func (r *Run) EndSound(ctx context.Context, handler byte) error { return r.Sound(ctx, handler, nil) }

// Converse asks a conversation agent with the REST API.
func (c *Client) Converse(ctx context.Context, within time.Duration, q Question) (Reply, error) {
	var r reply
	if err := c.Call(ctx, within, "POST", "api/conversation/process", q, &r); err != nil {
		return Reply{}, err
	}
	return r.reply(), nil
}

// Question is the input of Converse. Empty fields are omitted.
type Question struct {
	Text         string `json:"text"`
	Language     string `json:"language,omitempty"` // BCP 47
	Agent        string `json:"agent_id,omitempty"`
	Conversation string `json:"conversation_id,omitempty"`
}

// Pipeline is the configuration of an Assist pipeline. Missing parts are empty.
type Pipeline struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	Agent         string `json:"conversation_engine"`
	STT           string `json:"stt_engine"`
	TTS           string `json:"tts_engine"`
	VoiceLanguage string `json:"tts_language"`
	Voice         string `json:"tts_voice"`
}

// Pipeline returns the configuration of a pipeline, or of the preferred one if id is empty.
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
