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

// completion is an answer in OpenAI's shape, or a chunk of one.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

// usage is how many tokens a chat has, as far as Perch can estimate them: the brain may have read more.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func (q question) usage(answer string) *usage {
	u := usage{Prompt: thinker.Tokens(q.system) + thinker.Tokens(q.text), Completion: thinker.Tokens(answer)}
	for _, e := range q.history {
		u.Prompt += thinker.Tokens(e.Heard) + thinker.Tokens(e.Said)
	}
	u.Total = u.Prompt + u.Completion
	return &u
}

type choice struct {
	Index   int     `json:"index"`
	Message *spoken `json:"message,omitempty"` // of an answer
	Delta   *spoken `json:"delta,omitempty"`   // of a chunk
	Finish  *string `json:"finish_reason"`
}

type spoken struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

const assistant = "assistant"

func newCompletion(object, model string, now time.Time) completion {
	return completion{ID: "chatcmpl-" + rand.Text(), Object: object, Created: now.Unix(), Model: model}
}

// answerWhole answers a question in one piece.
func (s *Server) answerWhole(ctx context.Context, q question) (completion, error) {
	var text strings.Builder
	err := s.chat(ctx, q, func(more string) error {
		text.WriteString(more)
		return nil
	}, nil)
	c := newCompletion("chat.completion", q.model, time.Now())
	c.Choices = []choice{{Message: &spoken{assistant, new(text.String())}, Finish: new("stop")}}
	c.Usage = q.usage(text.String())
	return c, err
}

// answerStream answers a question by server-sent events. An error before the first event is
// returned, to be rendered as the answer; a later one is sent as the last event.
func (s *Server) answerStream(ctx context.Context, w http.ResponseWriter, q question) error {
	c := newCompletion("chat.completion.chunk", q.model, time.Now())
	chunk := func(delta spoken, finish *string) string {
		c.Choices = []choice{{Delta: &delta, Finish: finish}}
		return "data: " + string(httpserver.Encode(c)) + "\n\n"
	}
	out := newStream(w, chunk(spoken{Role: assistant}, nil))
	var tools func(event.ToolStatus) error
	if q.tools {
		tools = newProgress(out.send).sendStatus
	}
	var said strings.Builder
	err := s.chat(ctx, q, func(text string) error {
		said.WriteString(text)
		return out.send(chunk(spoken{Content: &text}, nil))
	}, tools)
	defer out.finish()
	if err == nil {
		if err := out.send(chunk(spoken{}, new("stop"))); err != nil {
			return err
		}
		end := "data: [DONE]\n\n"
		if q.countUsage {
			c.Choices, c.Usage = []choice{}, q.usage(said.String())
			end = "data: " + string(httpserver.Encode(c)) + "\n\n" + end
		}
		return out.send(end)
	}
	if out.silence() && ctx.Err() == nil {
		_, shown := openAI(err)
		if out.send("data: "+string(httpserver.Encode(shown))+"\n\n") == nil {
			return nil // the client has the error
		}
	}
	return err
}

// Intervals of a stream.
const (
	beginWithin = 3 * time.Second // some clients give up after 5 s without a byte
	keepAlive   = 15 * time.Second
	readWithin  = 10 * time.Second // the most that a write may take
)

// stream sends server-sent events. Without an event it sends its beginning after beginWithin,
// and then comments, which clients skip, every keepAlive.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timer   *time.Timer
	first   string // sent before everything else

	mu    sync.Mutex
	begun bool
	ended bool
}

func newStream(w http.ResponseWriter, first string) *stream {
	s := &stream{w: w, control: http.NewResponseController(w), first: first}
	s.mu.Lock() // the timer may fire at once
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(beginWithin, s.sendSign)
	return s
}

// sendSign sends the beginning, or else a comment.
func (s *stream) sendSign() {
	s.mu.Lock()
	defer s.mu.Unlock()
	sign := ""
	if s.begun {
		sign = ": still thinking\n\n"
	}
	_ = s.write(sign) // the next send meets the same failure
}

// send writes events, and the headers and the beginning before the first.
func (s *stream) send(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(text)
}

func (s *stream) write(text string) error {
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
	_ = s.control.SetWriteDeadline(time.Now().Add(readWithin)) // fails only in tests
	if _, err := io.WriteString(s.w, text); err != nil {
		return fmt.Errorf("stream an answer: %w", err)
	}
	return s.control.Flush()
}

// silence stops the timer, and reports whether the stream has begun. If it has not, it never
// will: the caller answers otherwise.
func (s *stream) silence() (begun bool) {
	s.timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = s.ended || !s.begun
	return s.begun
}

// finish ends the stream, and removes the deadline for the next answer on the connection.
func (s *stream) finish() {
	s.timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.begun {
		_ = s.control.SetWriteDeadline(time.Time{})
	}
}
