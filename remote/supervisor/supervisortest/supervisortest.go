// Package supervisortest provides fakes for the tests of an app of Home Assistant: a Supervisor, which
// checks tokens, permissions and announcements like the real one; Home Assistant's accounts; and
// Ingress, the proxy through which users reach the app's page.
package supervisortest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Token is the app's token for the Supervisor.
const Token = "the-supervisor-token-0123456789abcdef0123456789abcdef"

// Announcement is an app's announcement of a service. Home Assistant calls it a discovery message.
type Announcement struct {
	Service string         `json:"service"`
	Config  map[string]any `json:"config"`
}

// Supervisor is a fake Supervisor.
type Supervisor struct {
	*httptest.Server
	t testing.TB

	Discovery []string // services that the app may announce; a real app lists them in its config.yaml
	Services  []string // services that the app may use; a real app lists them in its config.yaml

	// Core handles the requests to Home Assistant's API below /core. If it is nil, Home
	// Assistant is not running.
	Core http.Handler

	mu        sync.Mutex
	mqtt      map[string]any          // description of the broker; nil if there is no broker
	answer    http.HandlerFunc        // handles all requests; nil for the normal behaviour
	announced map[string]Announcement // key: UUID
	deleted   []string                // services of withdrawn announcements
	lastUUID  int
	accounts  []Account
	listed    int // number of calls of AuthList
}

// New starts a fake Supervisor.
func New(t testing.TB) *Supervisor {
	s := &Supervisor{t: t, Discovery: []string{"mqtt", "wyoming"}, Services: []string{"mqtt"}, announced: map[string]Announcement{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /services/{service}", s.service)
	mux.HandleFunc("POST /discovery", s.announce)
	mux.HandleFunc("DELETE /discovery/{uuid}", s.withdraw)
	mux.HandleFunc("/core/", s.core)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		answer := s.answer
		s.mu.Unlock()
		switch isWebSocket := r.URL.Path == "/core/websocket" || r.URL.Path == "/core/api/websocket"; {
		case answer != nil:
			answer(w, r)
		case isWebSocket: // the token is in the first message
			s.core(w, r)
		case r.Header.Get("Authorization") != "Bearer "+Token:
			writeError(w, http.StatusUnauthorized, "unauthorized")
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// Environ returns the environment of an app that the Supervisor starts.
func (s *Supervisor) Environ() []string {
	return []string{"SUPERVISOR_TOKEN=" + Token, "SUPERVISOR_API=" + s.URL}
}

// Offer sets the description of the MQTT broker. With nil there is no broker.
func (s *Supervisor) Offer(broker map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mqtt = broker
}

// Answer sets a handler for all requests. nil restores the normal behaviour.
func (s *Supervisor) Answer(handler http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = handler
}

// Announced returns the configurations of the current announcements. Keys are services.
func (s *Supervisor) Announced() map[string]map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	configs := map[string]map[string]any{}
	for _, a := range s.announced {
		configs[a.Service] = maps.Clone(a.Config)
	}
	return configs
}

// Deleted returns the services whose announcements were withdrawn.
func (s *Supervisor) Deleted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deleted)
}

// writeData writes a response with data.
func writeData(w http.ResponseWriter, data any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"result": "ok", "data": data}) // fails if the client has disconnected
}

// writeError writes a response with an error.
func writeError(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"result": "error", "message": message})
}

// service handles a request for the description of a service.
func (s *Supervisor) service(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name := r.PathValue("service"); {
	case name != "mqtt" && name != "mysql":
		writeError(w, http.StatusNotFound, "Service does not exist")
	case !slices.Contains(s.Services, name):
		writeError(w, http.StatusForbidden, "No access to "+name+" service!")
	case s.mqtt == nil || name != "mqtt":
		writeError(w, http.StatusBadRequest, "Service not enabled")
	default:
		writeData(w, s.mqtt)
	}
}

// announce handles a new announcement.
func (s *Supervisor) announce(w http.ResponseWriter, r *http.Request) {
	var a Announcement
	d := json.NewDecoder(io.LimitReader(r.Body, 1<<20))
	d.DisallowUnknownFields() // the real Supervisor does not allow them, either
	if err := d.Decode(&a); err != nil || a.Service == "" || a.Config == nil {
		writeError(w, http.StatusBadRequest, "extra or missing keys")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.Discovery, a.Service) {
		writeError(w, http.StatusForbidden, "Add-ons must list services they provide via discovery in their config!")
		return
	}
	id := ""
	for oldID, old := range s.announced {
		if old.Service == a.Service { // an app has at most one announcement per service
			id = oldID
		}
	}
	if id == "" {
		s.lastUUID++
		id = fmt.Sprintf("%032x", s.lastUUID)
	}
	s.announced[id] = a
	writeData(w, map[string]any{"uuid": id})
}

// withdraw handles the removal of an announcement.
func (s *Supervisor) withdraw(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("uuid")
	if _, ok := s.announced[id]; !ok {
		writeError(w, http.StatusNotFound, "Discovery message not found")
		return
	}
	s.deleted = append(s.deleted, s.announced[id].Service)
	delete(s.announced, id)
	writeData(w, map[string]any{})
}

// core forwards requests for Home Assistant's API to s.Core, if the real Supervisor allows their path
// and method.
func (s *Supervisor) core(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/core")
	switch {
	case s.Core == nil:
		writeError(w, http.StatusBadGateway, "Home Assistant is not running")
		return
	case path == "/websocket":
		path = "/api/websocket"
	case !strings.HasPrefix(path, "/api/") || r.Method != http.MethodGet && r.Method != http.MethodPost && r.Method != http.MethodDelete:
		http.NotFound(w, r)
		return
	}
	inner := r.Clone(r.Context())
	inner.URL.Path = path
	s.Core.ServeHTTP(w, inner)
}

// Endless is a handler that responds with a gigabyte of data.
func Endless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"result":"ok","data":"`)
	piece := bytes.Repeat([]byte("a"), 1<<20)
	for range 1 << 10 {
		if _, err := w.Write(piece); err != nil || r.Context().Err() != nil {
			return
		}
	}
}
