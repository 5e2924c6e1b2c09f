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

	"perch/event"
	"perch/gateway/httpserver"
)

// completion is the head of an answer in OpenAI's shape, and of each chunk of
// one.
type completion struct {
	ID      string    `json:"id"`
	Object  string    `json:"object"`
	Created int64     `json:"created"`
	Model   string    `json:"model"`
	Choices [1]choice `json:"choices"`
}

type choice struct {
	Index   int     `json:"index"`
	Message *spoken `json:"message,omitempty"` // whole
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

// whole has a question answered in one piece.
func (s *Server) whole(ctx context.Context, q question) (completion, error) {
	var text strings.Builder
	err := s.chat(ctx, q, func(more string) error {
		text.WriteString(more)
		return nil
	}, nil)
	c := newCompletion("chat.completion", q.model, time.Now())
	c.Choices[0] = choice{Message: &spoken{assistant, new(text.String())}, Finish: new("stop")}
	return c, err
}

// streamed has a question answered by server-sent events, chunk by chunk. Where
// it fails at once, the error can still be rendered as the answer; later it is
// the last event.
func (s *Server) streamed(ctx context.Context, w http.ResponseWriter, q question) error {
	c := newCompletion("chat.completion.chunk", q.model, time.Now())
	chunk := func(delta spoken, finish *string) string {
		c.Choices[0] = choice{Delta: &delta, Finish: finish}
		return "data: " + string(httpserver.Encode(c)) + "\n\n"
	}
	out := newStream(w, chunk(spoken{Role: assistant}, nil))
	var tools func(event.ToolStatus) error
	if q.tools {
		tools = newProgress(out.send).sendStatus
	}
	err := s.chat(ctx, q, func(text string) error { return out.send(chunk(spoken{Content: &text}, nil)) }, tools)
	defer out.finish()
	if err == nil {
		if err := out.send(chunk(spoken{}, new("stop"))); err != nil {
			return err
		}
		return out.send("data: [DONE]\n\n")
	}
	if out.silence() && ctx.Err() == nil {
		_, shown := openAI(err)
		if out.send("data: "+string(httpserver.Encode(shown))+"\n\n") == nil {
			return nil // the client has its error
		}
	}
	return err
}

// Paces of a stream.
const (
	beginWithin = 3 * time.Second // some clients give up after 5 s without a byte
	keepAlive   = 15 * time.Second
	readWithin  = 10 * time.Second // or the client is let go
)

// stream sends server-sent events. While there is nothing to send it begins all
// the same, and says then now and again that it is still there; those are
// comments, which clients skip.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timer   *time.Timer
	first   string // what it begins with

	mu    sync.Mutex
	begun bool
	ended bool
}

func newStream(w http.ResponseWriter, first string) *stream {
	s := &stream{w: w, control: http.NewResponseController(w), first: first}
	s.mu.Lock() // the timer may be over at once
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(beginWithin, s.sendHeader)
	return s
}

// sendHeader shows that it is there.
func (s *stream) sendHeader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	sign := ""
	if s.begun {
		sign = ": still thinking\n\n"
	}
	_ = s.write(sign) // the next send meets the same failure
}

// send writes events, after the headers and what it begins with.
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
	// Not every ResponseWriter has deadlines; a server's has.
	_ = s.control.SetWriteDeadline(time.Now().Add(readWithin))
	if _, err := io.WriteString(s.w, text); err != nil {
		return fmt.Errorf("stream an answer: %w", err)
	}
	return s.control.Flush()
}

// silence stops the signs of life, and reports whether the stream has begun.
// One that has not will not: somebody else answers.
func (s *stream) silence() (begun bool) {
	s.timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = s.ended || !s.begun
	return s.begun
}

// finish lets nothing more be sent. The next answer on the connection has a time
// of its own.
func (s *stream) finish() {
	s.timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.begun {
		_ = s.control.SetWriteDeadline(time.Time{})
	}
}
