package robot

import (
	"context"
	"net/http"
	"sync"

	"perch/gateway/httpserver"
)

// lifetime is how long a server runs. It waits for what runs within it.
type lifetime struct {
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu       sync.Mutex
	stopping bool
}

// enter returns false once the lifetime ends. Otherwise wg.Done has to be called.
func (l *lifetime) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopping {
		return false
	}
	l.wg.Add(1)
	return true
}

// accepting returns a *httpserver.Fault once StopAccepting was called.
func (l *lifetime) accepting() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopping {
		return &httpserver.Fault{Word: "stopping", Sentence: httpserver.GoingAway, HTTP: http.StatusServiceUnavailable}
	}
	return nil
}

// StopAccepting refuses further channels and connections of robots, with status 503 over HTTP.
// Open ones continue until Close.
func (l *lifetime) StopAccepting() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopping = true
}

// Close ends every session and waits for them.
func (l *lifetime) Close() {
	l.StopAccepting()
	l.stop()
	l.wg.Wait()
}
