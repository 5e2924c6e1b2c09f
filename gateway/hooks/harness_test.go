package hooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	robotA device.ID = "a0b1c2d3e4f5"
	robotB device.ID = "a0b1c2d3e4f6"
)

// robots is a fake of the robots' server. It records the faces that it shows and the questions that it is given.
type robots struct {
	mu    sync.Mutex
	open  []device.ID
	faces []string
	asked []agent.Question
	// ask returns the result of Ask.
	ask func(ctx context.Context, id device.ID, q agent.Question) (agent.Answer, error)
}

func (r *robots) Reachable() []device.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.open)
}

func (r *robots) opens(ids ...device.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = ids
}

func (r *robots) ShowEmotion(_ context.Context, id device.ID, e agent.Emotion) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faces = append(r.faces, fmt.Sprint(id, " ", e.Name))
	return nil
}

// felt returns the faces since its previous call.
func (r *robots) felt() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	faces := r.faces
	r.faces = nil
	return faces
}

func (r *robots) Ask(ctx context.Context, id device.ID, q agent.Question) (agent.Answer, error) {
	r.mu.Lock()
	r.asked = append(r.asked, q)
	r.mu.Unlock()
	return r.ask(ctx, id, q)
}

func (r *robots) questions() []agent.Question {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

// silent is a robots.ask at which nobody answers: it waits until the question expires.
func silent(ctx context.Context, _ device.ID, q agent.Question) (agent.Answer, error) {
	select {
	case <-ctx.Done():
		return agent.Answer{}, ctx.Err()
	case <-time.After(time.Until(q.Until)):
		return agent.Answer{Outcome: agent.AnswerExpired}, nil
	}
}

// answers returns a robots.ask at which people give these answers, one per question. "(touch)" is a touch.
func answers(texts ...string) func(context.Context, device.ID, agent.Question) (agent.Answer, error) {
	return func(context.Context, device.ID, agent.Question) (agent.Answer, error) {
		if len(texts) == 0 {
			return agent.Answer{}, errors.New("asked too often")
		}
		text := texts[0]
		texts = texts[1:]
		if text == "(touch)" {
			return agent.Answer{Outcome: agent.AnswerTouch}, nil
		}
		return agent.Answer{Outcome: agent.AnswerGiven, Text: text}, nil
	}
}

// harness is the API with a bus, a board and fake robots.
type harness struct {
	robots *robots
	bus    *event.Bus
	board  *agent.Board
	log    *bytes.Buffer
	api    *API

	mu     sync.Mutex
	events []string
	wg     sync.WaitGroup
}

// newHarness returns a harness with one robot, robotA, which the owner has adopted.
func newHarness(t testing.TB, change ...func(*Options)) *harness {
	t.Helper()
	h := &harness{robots: &robots{open: []device.ID{robotA}, ask: silent}, bus: event.NewBus(), board: agent.NewBoard(), log: &bytes.Buffer{}}
	o := Options{Trusts: func(device.ID) bool { return true }, Talk: h.robots, Asker: h.robots,
		MayAnswer: func(id device.ID) bool { return id == robotA }, Board: h.board, Bus: h.bus,
		Language: func(device.ID) string { return "" }, Log: slog.New(slog.NewTextHandler(h.log, nil))}
	for _, c := range change {
		c(&o)
	}
	h.api = New(o)
	h.wg.Go(func() {
		h.bus.ReadFrom(1).Each(context.Background(), func(e event.Envelope) {
			h.board.HandleEvent(e)
			h.mu.Lock()
			defer h.mu.Unlock()
			h.events = append(h.events, strings.TrimSpace(fmt.Sprint(e.Session, " ", event.Kind(e.Event))))
		})
	})
	return h
}

// unspoken changes the options so that no robot asks aloud.
func unspoken(o *Options) { o.MayAnswer = func(device.ID) bool { return false } }

// runs runs the API until the harness closes.
func (h *harness) runs() { h.wg.Go(func() { h.api.Run(context.Background()) }) }

func (h *harness) close() {
	h.bus.Close()
	h.wg.Wait()
}

// felt checks the faces since its previous call.
func (h *harness) felt(t *testing.T, when string, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := h.robots.felt(); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", when, got, want)
	}
}

// happened returns the events since its previous call.
func (h *harness) happened() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := h.events
	h.events = nil
	return events
}

// shows returns the state of a session on the board.
func (h *harness) shows(session string) agent.Shown {
	all, _ := h.board.Snapshot()
	for _, s := range all {
		if s.Session == session {
			return s.At(time.Now())
		}
	}
	return "nothing"
}

// reports passes the body of a POST /state to the API.
func (h *harness) reports(t testing.TB, body string) {
	t.Helper()
	if _, err := h.api.report("", []byte(body)); err != nil {
		t.Fatal(err)
	}
}

// bubble runs a test with a harness and virtual time.
func bubble(t *testing.T, test func(t *testing.T, h *harness), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, change...)
		defer h.close()
		test(t, h)
	})
}

// serve serves the API on the loopback interface, for programs on this machine only.
func (h *harness) serve(t testing.TB) *httptest.Server {
	e, err := httpserver.NewEngine(slog.New(slog.NewTextHandler(h.log, nil)))
	must.Succeed(t, err)
	e.Use(httpserver.Guard(httpserver.Local))
	h.api.Routes(e)
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server
}

// ask sends a request over HTTP and returns status, headers and body.
func ask(t testing.TB, server *httptest.Server, method, path, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	if method == http.MethodPost {
		header = append([]string{"Content-Type", "application/json"}, header...)
	}
	answer, text := httpservertest.Ask(t, method, server.URL+path, body, header...)
	return answer.StatusCode, answer.Header, text
}
