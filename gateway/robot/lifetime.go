package robot

import (
	"context"
	"net/http"
	"sync"

	"perch/gateway/httpserver"
)

// lifetime stops the goroutines of a server and waits for them.
type lifetime struct {
	ctx  context.Context // ends with Close
	stop context.CancelFunc
	wg   sync.WaitGroup // running goroutines and sessions

	mu       sync.Mutex
	stopping bool
}

// enter adds one to wg and returns true, unless the server is stopping.
func (l *lifetime) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopping {
		return false
	}
	l.wg.Add(1)
	return true
}

// checkAccepting returns a *httpserver.Fault once StopAccepting was called.
func (l *lifetime) checkAccepting() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopping {
		return &httpserver.Fault{Word: "stopping", Sentence: httpserver.GoingAway, HTTP: http.StatusServiceUnavailable}
	}
	return nil
}

// StopAccepting makes the server refuse new channels and connections, with status 503 over HTTP.
// Channels and connections that are already open continue until Close.
func (l *lifetime) StopAccepting() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopping = true
}

// Close ends all sessions and waits until they have ended.
func (l *lifetime) Close() {
	l.StopAccepting()
	l.stop()
	l.wg.Wait()
}
