package skin

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"perch/agent/thinker"
	"perch/event"
	"perch/gateway/httpserver"
)

// completion is a chat completion of OpenAI's API, or a chunk of a streamed completion.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

// usage is an estimate of the tokens of a chat completion. It does not include the agent's
// instructions and memories.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// usage returns the estimate for a reply to the question.
func (q question) usage(reply string) *usage {
	u := usage{Prompt: thinker.Tokens(q.system) + thinker.Tokens(q.text), Completion: thinker.Tokens(reply)}
	for _, e := range q.history {
		u.Prompt += thinker.Tokens(e.Heard) + thinker.Tokens(e.Said)
	}
	u.Total = u.Prompt + u.Completion
	return &u
}

// choice is the reply in a completion.
type choice struct {
	Index   int           `json:"index"`
	Message *replyMessage `json:"message,omitempty"` // nil in a chunk
	Delta   *replyMessage `json:"delta,omitempty"`   // nil except in a chunk
	Finish  *string       `json:"finish_reason"`     // "stop" at the end of the reply
}

// replyMessage is the text of a reply, or a part of the text.
type replyMessage struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

const assistant = "assistant" // the role of the agent

// newCompletion returns a completion without a reply. object is its type in OpenAI's API.
func newCompletion(object, model string, now time.Time) completion {
	return completion{ID: "chatcmpl-" + rand.Text(), Object: object, Created: now.Unix(), Model: model}
}

// complete answers a question, and returns the whole reply.
func (s *Server) complete(ctx context.Context, q question) (completion, error) {
	var text strings.Builder
	err := s.chatText(ctx, q, func(part string) error {
		text.WriteString(part)
		return nil
	}, nil)
	c := newCompletion("chat.completion", q.model, time.Now())
	c.Choices = []choice{{Message: &replyMessage{assistant, new(text.String())}, Finish: new("stop")}}
	c.Usage = q.usage(text.String())
	return c, err
}

// stream answers a question with server-sent events. An error before the first event is
// returned, and becomes the response; a later error is sent as the last event.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, q question) error {
	c := newCompletion("chat.completion.chunk", q.model, time.Now())
	chunk := func(delta replyMessage, finish *string) string {
		c.Choices = []choice{{Delta: &delta, Finish: finish}}
		return "data: " + string(httpserver.Encode(c)) + "\n\n"
	}
	out := newStream(w, chunk(replyMessage{Role: assistant}, nil))
	var tools func(event.ToolStatus) error
	if q.tools {
		tools = newProgress(out.send).sendStatus
	}
	var reply strings.Builder
	err := s.chatText(ctx, q, func(text string) error {
		reply.WriteString(text)
		return out.send(chunk(replyMessage{Content: &text}, nil))
	}, tools)
	defer out.finish()
	if err == nil {
		if err := out.send(chunk(replyMessage{}, new("stop"))); err != nil {
			return err
		}
		end := "data: [DONE]\n\n"
		if q.countUsage {
			c.Choices, c.Usage = []choice{}, q.usage(reply.String())
			end = "data: " + string(httpserver.Encode(c)) + "\n\n" + end
		}
		return out.send(end)
	}
	if out.stopKeepAlive() && ctx.Err() == nil {
		_, shown := openAIError(err)
		if out.send("data: "+string(httpserver.Encode(shown))+"\n\n") == nil {
			return nil // the client has received the error
		}
	}
	return err
}

// Intervals of an eventStream.
const (
	beginWithin  = 3 * time.Second // some clients disconnect after 5 s without a byte
	keepAlive    = 15 * time.Second
	writeTimeout = 10 * time.Second
)

// eventStream sends server-sent events. While there is no other event to send, it sends the headers and
// the first event after beginWithin, and then a comment, which clients skip, after each interval of
// keepAlive.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timer   *time.Timer // calls sendKeepAlive
	first   string      // event to send before all others

	mu    sync.Mutex
	begun bool // whether the headers and the first event were written
	ended bool // whether write must return an error
}

// newStream returns a stream that sends first before all other events.
func newStream(w http.ResponseWriter, first string) *eventStream {
	s := &eventStream{w: w, control: http.NewResponseController(w), first: first}
	s.mu.Lock() // the timer may fire before s.timer is set
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(beginWithin, s.sendKeepAlive)
	return s
}

// sendKeepAlive sends the first event if the stream has not begun, and otherwise a comment.
func (s *eventStream) sendKeepAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	comment := ""
	if s.begun {
		comment = ": still thinking\n\n"
	}
	_ = s.write(comment) // the next send returns the same error
}

// send sends events, which are already encoded.
func (s *eventStream) send(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(text)
}

// write writes text, preceded by the headers and the first event if the stream has not begun.
// s.mu must be held.
func (s *eventStream) write(text string) error {
	if s.ended {
		return io.ErrClosedPipe
	}
	if !s.begun {
		s.begun = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		text = s.first + text
	}
	s.timer.Reset(keepAlive)
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails only in tests
	if _, err := io.WriteString(s.w, text); err != nil {
		return fmt.Errorf("stream a reply: %w", err)
	}
	return s.control.Flush()
}

// stopKeepAlive stops the timer. If the stream has not begun, nothing can be written afterwards,
// and the caller can send another response.
func (s *eventStream) stopKeepAlive() (begun bool) {
	s.timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = s.ended || !s.begun
	return s.begun
}

// finish ends the stream, and removes the write deadline, which would apply to the connection's
// next response.
func (s *eventStream) finish() {
	s.timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.begun {
		_ = s.control.SetWriteDeadline(time.Time{})
	}
}
