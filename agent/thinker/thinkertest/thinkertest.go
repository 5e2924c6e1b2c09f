// Package thinkertest provides a fake server of a language model and helpers for tests of
// implementations of thinker.Model.
package thinkertest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"perch/agent/thinker"
	"perch/must"
)

// Canary is an API key for tests, which no error or log may contain.
const Canary = "canary0123456789abcdef"

// Hello returns a short prompt.
func Hello() thinker.Prompt {
	return thinker.Prompt{System: "Be short.", Messages: []thinker.Message{{Role: thinker.RoleUser, Text: "Hello"}}}
}

// Received is a message that a model has written.
type Received struct {
	Pieces []string // in order: each a text, or a call as in Called with the prefix "call "
	Text   string
	Calls  []thinker.ToolCall
	Stop   thinker.Stop
	Err    string
}

// Listen has a model continue a prompt, and returns its message.
func Listen(m thinker.Model, p thinker.Prompt) (r Received) {
	stop, err := m.Continue(context.Background(), p, func(piece thinker.Piece) error {
		r.Text += piece.Text
		if piece.Call != nil {
			r.Calls = append(r.Calls, *piece.Call)
			r.Pieces = append(r.Pieces, "call "+called(*piece.Call))
		} else if piece.Text != "" {
			r.Pieces = append(r.Pieces, piece.Text)
		}
		return nil
	})
	if r.Stop = stop; err != nil {
		r.Err = err.Error()
	}
	return r
}

// Called returns the tool calls, each as "name{arguments} id".
func (r Received) Called() (calls []string) {
	for _, c := range r.Calls {
		calls = append(calls, called(c))
	}
	return calls
}

func called(c thinker.ToolCall) string { return c.Name + string(c.Arguments) + " " + c.ID }

// Record returns a recorded response from the folder testdata.
func Record(t testing.TB, name string) []byte {
	t.Helper()
	return must.Value(os.ReadFile(filepath.Join("testdata", name)))(t)
}

// RoundTrip is a function that implements http.RoundTripper.
type RoundTrip func(*http.Request) (*http.Response, error)

func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Streamed returns a successful response to a request; body holds server-sent events.
func Streamed(r *http.Request, body io.Reader) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body), Request: r}
}

// Server is an HTTP server that records its requests.
type Server struct {
	*httptest.Server
	mu    sync.Mutex
	asked []Request
}

// Request is a recorded request.
type Request struct {
	Path string         // method and path, such as "POST /v1/messages"
	Key  string         // the headers X-Api-Key and Authorization, joined
	Body map[string]any // decoded JSON
}

// Serve starts a server, which answers requests by calling answer until the test ends.
func Serve(t testing.TB, answer func(w http.ResponseWriter, path string, body map[string]any)) *Server {
	t.Helper()
	s := &Server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := Request{Path: r.Method + " " + r.URL.RequestURI(), Key: r.Header.Get("X-Api-Key") + r.Header.Get("Authorization")}
		data, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(data, &a.Body)
		s.mu.Lock()
		s.asked = append(s.asked, a)
		s.mu.Unlock()
		answer(w, a.Path, a.Body)
	}))
	t.Cleanup(s.Close)
	return s
}

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}
