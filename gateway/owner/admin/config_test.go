package admin_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"perch/event"
	"perch/gateway/httpserver"
	"perch/gateway/owner/admin"
	"perch/must"
)

// settings is a fake of the configuration that records the changes.
type settings struct {
	changes []map[string]any
	err     error
}

func (s *settings) Read() (any, error) { return map[string]string{"text": "name: a"}, s.err }

func (s *settings) Check(text string) (any, error) { return map[string]string{"checked": text}, s.err }

func (s *settings) CheckChange(values map[string]any) (any, error) { return values, s.err }

func (s *settings) Change(values map[string]any) (any, error) {
	if s.err == nil {
		s.changes = append(s.changes, values)
	}
	return map[string]bool{"restart": true}, s.err
}

func (s *settings) Startable() error { return s.err }

// TestConfigRoutes checks that a change is made and published once, and that a refused change is answered with the
// error and the faults of the settings, and not published.
func TestConfigRoutes(t *testing.T) {
	s, restarts := &settings{}, 0
	h := newAppliance(t, func(o *admin.Options) { o.Settings, o.Restart = s, func() { restarts++ } })
	told := func() (n int) {
		r := h.bus.ReadFrom(1)
		for h.bus.Seq() > 0 {
			e, err := r.Next(t.Context())
			must.Succeed(t, err)
			if e.Event == (event.Changed{What: "settings"}) {
				n++
			}
			if e.Seq == h.bus.Seq() {
				break
			}
		}
		return n
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "", "", 200, `{"text":"name: a"}`},
		{"POST", "/check", `{"text":"name: b"}`, 200, `{"checked":"name: b"}`},
		{"POST", "/check", `{"set":{"name":null}}`, 200, `{"name":null}`},
		{"POST", "/check", `{`, 400, `"bad_body"`},
		{"POST", "/check", `{"text":"` + strings.Repeat("x", 3<<20) + `"}`, 413, `"body_too_large"`},
		{"PUT", "", `{"set":{"name":"b","brains.0":null}}`, 200, `{"restart":true}`},
		{"PUT", "", `{}`, 400, `"bad_change"`},
		{"PUT", "/robots.idle", `"5m"`, 200, `{"restart":true}`},
		{"PUT", "/listen", `[":1"]`, 200, `{"restart":true}`},
		{"PUT", "/name", ``, 400, `"bad_body"`},
		{"PUT", "/name", `"` + strings.Repeat("x", 3<<20) + `"`, 413, `"body_too_large"`},
		{"DELETE", "/robots.idle", ``, 200, `{"restart":true}`},
	} {
		h.wants(t, c.method, "/api/v1/config"+c.path, c.body, c.status, c.says)
	}
	want := []map[string]any{{"name": "b", "brains.0": nil}, {"robots.idle": "5m"}, {"listen": []any{":1"}}, {"robots.idle": nil}}
	if !reflect.DeepEqual(s.changes, want) || told() != len(want) {
		t.Errorf("the changes are %+v, told %d times", s.changes, told())
	}
	h.wants(t, "POST", "/api/v1/restart", "", 202, "")
	s.err = &admin.ConfigFaults{Sentence: "line 1: no", Faults: []int{1}}
	const faults = `{"error":{"code":"faults","message":"line 1: no"},"faults":[1]}`
	h.wants(t, "PUT", "/api/v1/config/name", `""`, 422, "="+faults)
	h.wants(t, "POST", "/api/v1/restart", "", 422, "")
	if restarts != 1 {
		t.Errorf("%d restarts", restarts)
	}
	s.err = &httpserver.Fault{Word: "disk_full", Sentence: "no", HTTP: http.StatusInsufficientStorage}
	h.wants(t, "DELETE", "/api/v1/config/name", "", 507, "disk_full")
	if n := told(); n != len(want) {
		t.Errorf("it is told %d times", n)
	}
}

// TestDoctorRunsOnceAtATime checks that the doctor runs once at a time and with a deadline, and that the routes of
// parts that the appliance lacks respond with not_here.
func TestDoctorRunsOnceAtATime(t *testing.T) {
	begun, end := make(chan context.Context, 1), make(chan struct{})
	h := newAppliance(t, func(o *admin.Options) {
		o.Doctor = func(ctx context.Context) ([]admin.Finding, error) {
			begun <- ctx
			<-end
			return []admin.Finding{{Name: "disk", OK: true, Level: "ok", Note: "works"}}, nil
		}
	})
	answer := make(chan string, 1)
	go func() { _, body := h.ask("GET", "/api/v1/doctor", ""); answer <- body }()
	if until, ok := (<-begun).Deadline(); !ok || time.Until(until) > 5*time.Minute {
		t.Errorf("it may look until %s", until)
	}
	h.wants(t, "GET", "/api/v1/doctor", "", 409, "busy")
	close(end)
	if body := <-answer; body != `{"items":[{"name":"disk","ok":true,"level":"ok","note":"works"}]}` {
		t.Error(body)
	}
	h.wants(t, "GET", "/api/v1/doctor", "", 200, "")
	none := newAppliance(t)
	for _, route := range []string{"GET /api/v1/doctor", "GET /api/v1/logs", "GET /api/v1/config", "PUT /api/v1/config/name",
		"DELETE /api/v1/config/name", "POST /api/v1/config/check", "POST /api/v1/restart"} {
		method, path, _ := strings.Cut(route, " ")
		none.wants(t, method, path, "{}", 404, "not_here")
	}
}

// logs is a fake log and its only follower. Each line is preceded by as many missed lines as lines follow it.
type logs struct {
	least slog.Level
	after string
	lines []string
	full  bool
	open  int
}

func (l *logs) NewFollower(least slog.Level, after string) (admin.LogFollower, bool) {
	l.least, l.after = least, after
	if l.full {
		return nil, false
	}
	l.open++
	return l, true
}

func (l *logs) Next(context.Context) (string, json.RawMessage, int, error) {
	if len(l.lines) == 0 {
		return "", nil, 0, event.ErrClosed
	}
	line := l.lines[0]
	l.lines = l.lines[1:]
	return "run." + line, json.RawMessage(`{"msg":"` + line + `"}`), len(l.lines), nil
}

func (l *logs) Close() { l.open-- }

func TestLogStream(t *testing.T) {
	l := &logs{lines: []string{"one", "two"}}
	h := newAppliance(t, func(o *admin.Options) { o.Logs = l })
	follow := func(query string) (int, string) {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/logs"+query, nil)
		r.Header.Set("Last-Event-ID", "run.7")
		w := httptest.NewRecorder()
		h.engine.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const want = ": welcome\n\nid: run.one\nevent: missed\ndata: {\"lines\":1}\n\nid: run.one\nevent: line\ndata: {\"msg\":\"one\"}\n\n" +
		"id: run.two\nevent: line\ndata: {\"msg\":\"two\"}\n\n"
	if status, body := follow("?level=warn"); status != 200 || body != want || l.least != slog.LevelWarn || l.after != "run.7" || l.open != 0 {
		t.Errorf("%d %s\nof %v after %q, %d open", status, body, l.least, l.after, l.open)
	}
	if follow(""); l.least != slog.LevelInfo {
		t.Errorf("without a level it is %v", l.least)
	}
	for _, level := range []string{"loud", "info-4", "INFO%2B1"} {
		if status, body := follow("?level=" + level); status != 400 || !strings.Contains(body, "bad_level") {
			t.Errorf("%s: %d %s", level, status, body)
		}
	}
	l.full = true
	if status, body := follow(""); status != 503 || !strings.Contains(body, "too_many_readers") {
		t.Errorf("%d %s", status, body)
	}
	if strings.Contains(h.log.String(), "level=ERROR") {
		t.Errorf("logged is %s", h.log)
	}
}
