// Package realtimetest provides a fake server of OpenAI's Realtime API for tests. It accepts the events that
// openai-python's types/realtime lists, in an order that the API allows, and refuses all others with an event of type
// error, as the API does. It never decides itself when a person has finished speaking, unless the session has
// turn_detection.
package realtimetest

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/socket"
)

// Key is the key that the server wants.
const Key = "canary0123456789abcdef"

// Server is a fake server.
type Server struct {
	fake
	// Answer writes a response. It runs in its own goroutine, and should return when an error is returned to it.
	Answer func(r *Response) error
	// Transcript is the transcript of each utterance; "" if the transcription fails.
	Transcript string
	// TranscriptAfter delays the transcript until so long after the commit.
	TranscriptAfter time.Duration
	Rate            int // rate of the server's speech, in Hz; 0 means 24000
	Beta            bool
	Quota           bool // refuses each response, because the account has no credit left
	Mute            bool // answers no event
	Deaf            bool // finds no speech in the sound of a session with turn_detection

	items     []string // the items of the conversations: role or type, and text
	session   map[string]any
	sound     []int16 // of the latest utterance
	connected int
	cancelled int
}

// Response is one response of the server.
type Response struct {
	Number  int // of the connection, counted from 0
	Outputs []string
	c       *conn
	id      string
	over    chan struct{} // closed by response.cancel, and at the end of the connection
	ended   bool          // guarded by conn.mu
	calls   int
}

// Serve starts a server, which runs until the test ends. It reports the events that it has refused as errors of the test.
func Serve(t testing.TB, s *Server) *Server {
	t.Helper()
	s.start(t, func(r *http.Request) (int, string) {
		if r.Header.Get("Authorization") != "Bearer "+Key || r.URL.Path != "/v1/realtime" || r.URL.Query().Get("model") == "" {
			return http.StatusUnauthorized, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`
		}
		return 0, ""
	}, s.serve)
	return s
}

// Items returns the items that clients have added to conversations.
func (s *Server) Items() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.items)
}

// Session returns the latest session.update.
func (s *Server) Session() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// Sound returns the sound of the latest utterance that was committed.
func (s *Server) Sound() []int16 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sound
}

// Cancelled returns how many responses were cancelled.
func (s *Server) Cancelled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancelled
}

// Connected returns how many connections there were.
func (s *Server) Connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connected
}

// conn is a connection.
type conn struct {
	s  *Server
	ws *socket.Conn

	mu        sync.Mutex // guards writing, and the fields below
	audio     []byte
	active    *Response
	responses int
	pending   map[string]bool // calls without an output
	outputs   []string
	detects   bool // the session has turn_detection
	work      sync.WaitGroup
}

type object = map[string]any

// serve runs a connection until it ends.
func (s *Server) serve(ws *socket.Conn) {
	c := &conn{s: s, ws: ws, pending: map[string]bool{}}
	s.mu.Lock()
	s.connected++
	s.mu.Unlock()
	defer c.work.Wait()
	defer func() {
		ws.Drop()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.endActive()
	}()
	created := object{"type": "realtime", "object": "realtime.session"}
	if s.Beta {
		created = object{"modalities": []string{"text", "audio"}, "input_audio_format": "pcm16"}
	}
	c.mu.Lock()
	c.send(object{"type": "session.created", "session": created})
	c.mu.Unlock()
	for {
		_, data, err := ws.Receive()
		if err != nil {
			return
		}
		c.receive(data)
	}
}

// send sends an event. c.mu must be held.
func (c *conn) send(event object) {
	event["event_id"] = "event_1"
	text, _ := json.Marshal(event)
	c.s.transfer('<', text)
	_ = c.ws.SendText(text) // the client may have left
}

// refuse answers an event with an error. c.mu must be held.
func (c *conn) refuse(code, message string) {
	if code != "response_cancel_not_active" { // the API calls that safe
		c.s.violated(code + ": " + message)
	}
	c.send(object{"type": "error", "error": object{"type": "invalid_request_error", "code": code, "message": message}})
}

// clientEvent holds the fields of all events of clients. Others are refused.
type clientEvent struct {
	Type         string         `json:"type"`
	EventID      string         `json:"event_id"`
	Session      map[string]any `json:"session"`
	Audio        string         `json:"audio"`
	Item         *item          `json:"item"`
	ResponseID   string         `json:"response_id"`
	ItemID       string         `json:"item_id"`
	ContentIndex int            `json:"content_index"`
	AudioEnd     int            `json:"audio_end_ms"`
}

type item struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	CallID  string `json:"call_id"`
	Output  string `json:"output"`
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
}

// receive handles an event of the client.
func (c *conn) receive(data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.transfer('>', data)
	var e clientEvent
	if err := decode(data, &e); err != nil {
		c.refuse("unknown_parameter", err.Error())
		return
	}
	c.s.record(e.Type, "input_audio_buffer.append")
	if c.s.Mute {
		return
	}
	switch e.Type {
	case "session.update":
		c.update(e.Session)
	case "input_audio_buffer.append":
		sound, err := base64.StdEncoding.DecodeString(e.Audio)
		if err != nil || len(sound)%2 != 0 {
			c.refuse("invalid_value", "audio is not PCM in base64")
			return
		}
		if c.audio = append(c.audio, sound...); c.detects && !c.s.Deaf && len(c.audio) > 48000 && silent(c.audio[len(c.audio)-24000:]) {
			c.send(object{"type": "input_audio_buffer.speech_started", "item_id": "item_u", "audio_start_ms": 0})
			c.send(object{"type": "input_audio_buffer.speech_stopped", "item_id": "item_u", "audio_end_ms": 1000})
			c.commit()
			c.respond()
		}
	case "input_audio_buffer.commit":
		if len(c.audio) < 24000*2/10 {
			c.refuse("input_audio_buffer_commit_empty", "expected at least 100ms of audio")
			return
		}
		c.commit()
	case "conversation.item.create":
		c.addItem(e.Item)
	case "response.create":
		c.respond()
	case "response.cancel":
		if c.active == nil {
			c.refuse("response_cancel_not_active", "no active response")
			return
		}
		c.s.mu.Lock()
		c.s.cancelled++
		c.s.mu.Unlock()
		id := c.active.id
		c.finish("cancelled", object{"type": "cancelled", "reason": "client_cancelled"}, 40)
		c.send(c.delta(id, "response.output_audio.delta", base64.StdEncoding.EncodeToString(make([]byte, 4800)))) // too late
	default:
		c.refuse("unknown_or_invalid_event", e.Type)
	}
}

// silent reports whether PCM has no loud sample.
func silent(sound []byte) bool {
	for i := 0; i+1 < len(sound); i += 2 {
		if s := int16(binary.LittleEndian.Uint16(sound[i:])); s > 500 || s < -500 {
			return false
		}
	}
	return true
}

// update handles session.update.
func (c *conn) update(s map[string]any) {
	known := []string{"type", "audio", "instructions", "max_output_tokens", "output_modalities", "tools", "tool_choice", "truncation", "include", "tracing", "prompt"}
	if c.s.Beta {
		known = []string{"modalities", "instructions", "voice", "input_audio_format", "output_audio_format", "input_audio_transcription", "turn_detection",
			"tools", "tool_choice", "temperature", "max_response_output_tokens"}
	}
	for key := range s {
		if !slices.Contains(known, key) {
			c.refuse("unknown_parameter", "session."+key)
			return
		}
	}
	if !c.s.Beta && s["type"] != "realtime" {
		c.refuse("invalid_session_type", "session.type is required")
		return
	}
	answer := object{"modalities": []string{"text", "audio"}}
	if !c.s.Beta {
		var config struct {
			Modalities []string `json:"output_modalities"`
			Audio      struct {
				Input struct {
					Format struct {
						Type string
						Rate int
					}
					Detection *object `json:"turn_detection"`
				}
			}
			Tools []struct {
				Type, Name string
				Parameters map[string]any
			}
		}
		text, _ := json.Marshal(s)
		if err := json.Unmarshal(text, &config); err != nil || config.Audio.Input.Format.Type != "audio/pcm" || config.Audio.Input.Format.Rate != 24000 || len(config.Modalities) != 1 {
			c.refuse("invalid_value", fmt.Sprintf("session %s: %v", text, err))
			return
		}
		for _, tool := range config.Tools {
			if tool.Type != "function" || tool.Name == "" || tool.Parameters["type"] != "object" {
				c.refuse("invalid_function_parameters", tool.Name)
				return
			}
		}
		c.detects = config.Audio.Input.Detection != nil
		rate := cmp.Or(c.s.Rate, 24000)
		answer = object{"type": "realtime", "audio": object{"input": object{"format": object{"type": "audio/pcm", "rate": 24000}},
			"output": object{"format": object{"type": "audio/pcm", "rate": rate}}}}
	}
	c.s.mu.Lock()
	c.s.session = s
	c.s.mu.Unlock()
	c.send(object{"type": "session.updated", "session": answer})
}

// commit makes an item of the sound, whose transcript follows.
func (c *conn) commit() {
	pcm := make([]int16, len(c.audio)/2)
	_, _ = binary.Decode(c.audio, binary.LittleEndian, pcm)
	c.audio = nil
	c.s.mu.Lock()
	c.s.sound, c.s.items = pcm, append(c.s.items, "sound")
	c.s.mu.Unlock()
	c.send(object{"type": "input_audio_buffer.committed", "item_id": "item_u"})
	if c.s.TranscriptAfter == 0 {
		c.transcribe()
		return
	}
	c.work.Go(func() {
		time.Sleep(c.s.TranscriptAfter)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.transcribe()
	})
}

// transcribe sends the transcript. c.mu must be held.
func (c *conn) transcribe() {
	if c.s.Transcript == "" {
		c.send(object{"type": "conversation.item.input_audio_transcription.failed", "item_id": "item_u", "error": object{"message": "failed"}})
		return
	}
	c.send(object{"type": "conversation.item.input_audio_transcription.completed", "item_id": "item_u", "transcript": c.s.Transcript})
}

// addItem handles conversation.item.create.
func (c *conn) addItem(i *item) {
	text := ""
	switch {
	case i == nil:
		c.refuse("missing_required_parameter", "item")
		return
	case i.Type == "function_call_output":
		if !c.pending[i.CallID] {
			c.refuse("invalid_item_input", "no call "+i.CallID)
			return
		}
		delete(c.pending, i.CallID)
		c.outputs, text = append(c.outputs, i.Output), "output: "+i.Output
	case i.Type == "message" && len(i.Content) == 1:
		want := map[string]string{"user": "input_text", "assistant": "output_text", "system": "input_text"}[i.Role]
		if c.s.Beta && i.Role == "assistant" {
			want = "text"
		}
		if i.Content[0].Type != want || i.Content[0].Text == "" {
			c.refuse("invalid_value", "content of "+i.Role)
			return
		}
		text = i.Role + ": " + i.Content[0].Text
	default:
		c.refuse("invalid_value", "item "+i.Type)
		return
	}
	c.s.mu.Lock()
	c.s.items = append(c.s.items, text)
	c.s.mu.Unlock()
	c.send(object{"type": "conversation.item.added", "item": i})
}

// respond starts a response.
func (c *conn) respond() {
	switch {
	case c.active != nil:
		c.refuse("conversation_already_has_active_response", c.active.id)
		return
	case len(c.pending) > 0:
		c.refuse("function_call_output_pending", "calls without an output")
		return
	}
	r := &Response{Number: c.responses, Outputs: slices.Clone(c.outputs), c: c, id: fmt.Sprintf("resp_%d", c.responses), over: make(chan struct{})}
	c.active = r
	c.responses++
	c.send(object{"type": "response.created", "response": object{"id": r.id, "status": "in_progress"}})
	if c.s.Quota {
		c.finish("failed", object{"type": "failed", "error": object{"type": "insufficient_quota", "code": "insufficient_quota"}}, 0)
		return
	}
	c.work.Go(func() {
		err := c.s.Answer(r)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil && !r.ended {
			c.finish("completed", nil, 100)
		}
	})
}

// endActive ends the active response, if there is one.
func (c *conn) endActive() {
	if c.active != nil {
		c.active.ended = true
		close(c.active.over)
		c.active = nil
	}
}

// finish ends the active response.
func (c *conn) finish(status string, details object, tokens int) {
	id := c.active.id
	c.endActive()
	response := object{"id": id, "status": status, "status_details": details}
	if tokens > 0 {
		response["usage"] = object{"total_tokens": tokens, "input_tokens": tokens / 2, "output_tokens": tokens / 2}
	}
	c.send(object{"type": "response.done", "response": response})
	c.send(object{"type": "rate_limits.updated", "rate_limits": []object{{"name": "tokens", "limit": 1000, "remaining": 900}}})
}

// delta returns an event with a delta.
func (c *conn) delta(id, kind, delta string) object {
	if c.s.Beta {
		kind = strings.Replace(kind, "output_", "", 1)
	}
	return object{"type": kind, "response_id": id, "item_id": "item_a", "output_index": 0, "content_index": 0, "delta": delta}
}

// send sends an event of the response. It returns an error once the response has ended.
func (r *Response) send(events ...object) error {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if r.ended {
		return fmt.Errorf("the response %s is over", r.id)
	}
	for _, e := range events {
		r.c.send(e)
	}
	return nil
}

// Speak speaks a text for a duration: first the text, then the sound in pieces of 100 ms.
func (r *Response) Speak(text string, d time.Duration) error {
	if err := r.send(r.c.delta(r.id, "response.output_audio_transcript.delta", text)); err != nil {
		return err
	}
	rate := cmp.Or(r.c.s.Rate, 24000)
	piece := make([]byte, rate/10*2)
	for i := 0; i+1 < len(piece); i += 2 {
		binary.LittleEndian.PutUint16(piece[i:], uint16(i%400*20))
	}
	for range d / (100 * time.Millisecond) {
		if err := r.send(r.c.delta(r.id, "response.output_audio.delta", base64.StdEncoding.EncodeToString(piece))); err != nil {
			return err
		}
	}
	return nil
}

// Write writes a text without sound.
func (r *Response) Write(text string) error {
	return r.send(r.c.delta(r.id, "response.output_text.delta", text))
}

// Call calls a tool.
func (r *Response) Call(name, arguments string) error {
	id := fmt.Sprintf("call_%s_%d", r.id, r.calls)
	r.calls++
	r.c.mu.Lock()
	r.c.pending[id] = true
	r.c.mu.Unlock()
	done := object{"type": "response.function_call_arguments.done", "response_id": r.id, "item_id": "item_c", "call_id": id, "arguments": arguments}
	if !r.c.s.Beta {
		done["name"] = name
	}
	return r.send(done, object{"type": "response.output_item.done", "response_id": r.id,
		"item": object{"type": "function_call", "call_id": id, "name": name, "arguments": arguments}})
}

// End ends the response with a status and a reason.
func (r *Response) End(status, reason string) error {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if !r.ended {
		r.c.finish(status, object{"type": status, "reason": reason}, 0)
	}
	return nil
}

// EndTwice sends two ends of the response, as a broken server may.
func (r *Response) EndTwice() error {
	end := object{"type": "response.done", "response": object{"id": r.id, "status": "completed", "usage": object{"total_tokens": 100}}}
	return r.send(end, end)
}

// Cut cuts the connection. It returns an error, as the response has no end.
func (r *Response) Cut() error {
	r.c.ws.Drop()
	return errors.New("the connection is cut")
}

// Wait waits until the response is cancelled, or the connection has ended.
func (r *Response) Wait() error {
	<-r.over
	return nil
}
