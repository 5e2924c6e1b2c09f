// Package supervisortest is a fake of Home Assistant's Supervisor as one app sees it, with
// the rules of the real one. Only tests import it.
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

// Token is the app's token.
const Token = "the-supervisor-token-0123456789abcdef0123456789abcdef"

// Announcement is a discovery message.
type Announcement struct {
	Service string         `json:"service"`
	Config  map[string]any `json:"config"`
}

// Supervisor is a fake Supervisor.
type Supervisor struct {
	*httptest.Server
	t testing.TB

	// From the app's config.yaml.

	Discovery []string // what it may announce
	Services  []string // what it may request

	// Core is Home Assistant, whose API is proxied below /core; nil is unreachable.
	Core http.Handler

	mu        sync.Mutex
	mqtt      map[string]any // nil is no broker
	answer    http.HandlerFunc
	announced map[string]Announcement // by uuid
	deleted   []string
	last      int
	accounts  []Account
	listed    int
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
		instead := s.answer
		s.mu.Unlock()
		switch websocket := r.URL.Path == "/core/websocket" || r.URL.Path == "/core/api/websocket"; {
		case instead != nil:
			instead(w, r)
		case websocket: // it has the token in its first message
			s.core(w, r)
		case r.Header.Get("Authorization") != "Bearer "+Token:
			failed(w, http.StatusUnauthorized, "unauthorized")
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// Environ returns the environment of an app.
func (s *Supervisor) Environ() []string {
	return []string{"SUPERVISOR_TOKEN=" + Token, "SUPERVISOR_API=" + s.URL}
}

// Offer sets the broker that an app offers, or nil.
func (s *Supervisor) Offer(broker map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mqtt = broker
}

// Answer makes another handler answer everything; nil ends that.
func (s *Supervisor) Answer(by http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = by
}

// Announced returns the present announcements by service.
func (s *Supervisor) Announced() map[string]map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]map[string]any{}
	for _, a := range s.announced {
		all[a.Service] = maps.Clone(a.Config)
	}
	return all
}

// Deleted returns the services whose announcements were withdrawn.
func (s *Supervisor) Deleted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deleted)
}

func done(w http.ResponseWriter, data any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"result": "ok", "data": data}) // to a test's own client
}

func failed(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"result": "error", "message": message})
}

func (s *Supervisor) service(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name := r.PathValue("service"); {
	case name != "mqtt" && name != "mysql":
		failed(w, http.StatusNotFound, "Service does not exist")
	case !slices.Contains(s.Services, name):
		failed(w, http.StatusForbidden, "No access to "+name+" service!")
	case s.mqtt == nil || name != "mqtt":
		failed(w, http.StatusBadRequest, "Service not enabled")
	default:
		done(w, s.mqtt)
	}
}

func (s *Supervisor) announce(w http.ResponseWriter, r *http.Request) {
	var a Announcement
	d := json.NewDecoder(io.LimitReader(r.Body, 1<<20))
	d.DisallowUnknownFields() // voluptuous refuses extra keys
	if err := d.Decode(&a); err != nil || a.Service == "" || a.Config == nil {
		failed(w, http.StatusBadRequest, "extra or missing keys")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.Discovery, a.Service) {
		failed(w, http.StatusForbidden, "Add-ons must list services they provide via discovery in their config!")
		return
	}
	id := ""
	for known, before := range s.announced {
		if before.Service == a.Service { // one per service of an app
			id = known
		}
	}
	if id == "" {
		s.last++
		id = fmt.Sprintf("%032x", s.last)
	}
	s.announced[id] = a
	done(w, map[string]any{"uuid": id})
}

func (s *Supervisor) withdraw(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("uuid")
	if _, known := s.announced[id]; !known {
		failed(w, http.StatusNotFound, "Discovery message not found")
		return
	}
	s.deleted = append(s.deleted, s.announced[id].Service)
	delete(s.announced, id)
	done(w, map[string]any{})
}

// core proxies Home Assistant's API: the paths that the Supervisor allows, and no others.
func (s *Supervisor) core(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/core")
	switch {
	case s.Core == nil:
		failed(w, http.StatusBadGateway, "Home Assistant is not running")
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

// Endless answers with a gigabyte.
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
