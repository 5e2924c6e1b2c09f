// Package thinkertest is the server of a language model in tests.
package thinkertest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"perch/agent/thinker"
)

// Canary is a key that must never come back.
const Canary = "canary0123456789abcdef"

// Hello is the shortest prompt.
func Hello() thinker.Prompt {
	return thinker.Prompt{System: "Be short.", Messages: []thinker.Message{{Role: thinker.RoleUser, Text: "Hello"}}}
}

// RoundTrip is a transport without a network.
type RoundTrip func(*http.Request) (*http.Response, error)

func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Streamed is an answer to a request.
func Streamed(r *http.Request, body io.Reader) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body), Request: r}
}

// Server keeps what it was asked.
type Server struct {
	*httptest.Server
	mu    sync.Mutex
	asked []Request
}

// Request is one to a Server: method and path, the key of whichever header, and its JSON.
type Request struct {
	Path, Key string
	Body      map[string]any
}

// Serve answers requests until the test ends.
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

// Requests are those so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}
