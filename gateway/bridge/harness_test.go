package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/perception"
	"perch/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	robotA device.ID = "a0b1c2d3e4f5"
	robotB device.ID = "a0b1c2d3e4f6"
	macA             = "a0:b1:c2:d3:e4:f5"
	macB             = "a0:b1:c2:d3:e4:f6"

	bridgeKey  = "key-of-the-bridge"
	adminToken = "token-of-the-owner"
)

var noon = time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)

// robots implements talk and records the calls.
type robots struct {
	mu    sync.Mutex
	open  []device.ID
	asked []string
	tools []device.Tool
	err   error
	// answer returns the result of a tool; if it is nil, the result is "true".
	answer func(ctx context.Context, tool string) (device.Result, error)
}

func (r *robots) record(parts ...string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, strings.Join(parts, " "))
	return r.err
}

// requests returns the calls that were recorded since the last call of requests.
func (r *robots) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

func (r *robots) Reachable() []device.ID { return r.open }
func (r *robots) Speak(_ context.Context, id device.ID, text string) (bool, error) {
	return false, r.record("say", string(id), text)
}
func (r *robots) InjectText(_ context.Context, id device.ID, text string) error {
	return r.record("hear", string(id), text)
}
func (r *robots) Abort(_ context.Context, id device.ID) error { return r.record("abort", string(id)) }
func (r *robots) Tools(device.ID) []device.Tool               { return r.tools }
func (r *robots) Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return device.Result{}, err
	}
	err = r.record("call", string(id), tool, string(text))
	if r.answer != nil {
		return r.answer(ctx, tool)
	}
	return device.Result{Text: "true"}, err
}

// brain is a fake brain whose replies the test sets.
type brain struct {
	think func(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error
}

func (b *brain) Name() string { return "brain" }
func (b *brain) Think(ctx context.Context, t agent.Turn, out func(agent.Reply) error) error {
	return b.think(ctx, t, out)
}

// replying returns a function for brain.think that gives the same replies to every turn.
func replying(replies ...agent.Reply) func(context.Context, agent.Turn, func(agent.Reply) error) error {
	return func(_ context.Context, _ agent.Turn, out func(agent.Reply) error) error {
		for _, r := range append(replies, agent.Done{End: agent.Continue}) {
			if err := out(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// player implements sounds and records the sounds that are played.
type player struct {
	robots *robots
	names  []string
	err    error
}

func (p *player) Names() []string { return p.names }
func (p *player) Play(_ context.Context, id device.ID, name string) error {
	if !slices.Contains(p.names, name) {
		return fmt.Errorf("%q: %w", name, fs.ErrNotExist)
	}
	_ = p.robots.record("play", string(id), name)
	return p.err
}

// fakeIntake implements intake, and publishes each event that it accepts.
type fakeIntake struct {
	bus  *event.Bus
	took []string
	err  error
}

func (f *fakeIntake) FromProgram(robot device.ID, name string, data json.RawMessage) error {
	if f.err != nil {
		return f.err
	}
	f.took = append(f.took, fmt.Sprint(robot, " ", name, " ", string(data)))
	f.bus.Publish(robot, "", event.Perceived{Name: name, Data: data})
	return nil
}

// harness holds an API and the parts of an appliance that the API uses.
type harness struct {
	robots *robots
	brain  *brain
	memory *agent.Memory
	intake *fakeIntake
	senses *perception.States // changed only by the test, and not by the bus
	player *player
	bus    *event.Bus
	board  *agent.Board
	log    *bytes.Buffer
	api    *API
}

// newHarness returns a harness with two connected robots.
func newHarness(t testing.TB, change ...func(*Options)) *harness {
	t.Helper()
	h := &harness{
		robots: &robots{open: []device.ID{robotA, robotB}}, brain: &brain{think: replying(agent.Say{Text: "Yes."})},
		memory: agent.NewMemory(&storetest.Table[agent.Entry]{}), bus: event.NewBus(), board: agent.NewBoard(), log: &bytes.Buffer{},
	}
	t.Cleanup(h.bus.Close)
	for _, name := range []string{"self.camera.take_photo", "self.robot.set_head_angles", "self.robot.set_state", "self.robot.set_toggle",
		"self.robot.set_face_identified"} {
		h.robots.tools = append(h.robots.tools, device.Tool{Name: name})
	}
	h.intake, h.senses = &fakeIntake{bus: h.bus}, perception.NewStates(&storetest.Table[perception.State]{})
	h.player = &player{robots: h.robots, names: []string{"purr", "Happy Birthday.wav"}}
	logger := slog.New(slog.NewTextHandler(h.log, nil))
	o := Options{
		Find: device.ParseID, Spoken: func() []Turn { return nil }, Talk: h.robots, Memory: h.memory,
		Mind: agent.NewMind(agent.Always(h.brain), h.memory, h.bus, logger),
		Log:  NewLog(&storetest.Table[Turn]{}, 100), Intake: h.intake, Senses: h.senses, Sounds: h.player, Root: "/data/sounds",
		Board: h.board, Bus: h.bus, ShortTimeout: 5 * time.Second, LongTimeout: 30 * time.Second,
		Language: func(id device.ID) string { return map[device.ID]string{"": "en", robotA: "de"}[id] }, Zone: time.UTC, Logger: logger,
	}
	for _, c := range change {
		c(&o)
	}
	h.api = New(o)
	return h
}

// public serves the bridge with the keys that are required on the network.
func (h *harness) public(t testing.TB) *httptest.Server {
	e := h.engine(t)
	e.Use(httpserver.Origins{}.Admit(), httpserver.Guard(httpserver.Hosts{}.Check))
	h.api.Routes(e.Group("", httpserver.Guard(httpserver.NewKey(bridgeKey, "bridge.key", "").Check)))
	h.api.Admin(e.Group("", httpserver.Guard(httpserver.NewKey(adminToken, "the file admin-token", "X-Admin-Token").Check)))
	return serve(t, e)
}

// local serves the bridge for programs on the same machine, without keys.
func (h *harness) local(t testing.TB) *httptest.Server {
	e := h.engine(t)
	e.Use(httpserver.Guard(httpserver.Local))
	h.api.Routes(e)
	h.api.Admin(e)
	return serve(t, e)
}

func (h *harness) engine(t testing.TB) *gin.Engine {
	t.Helper()
	e, err := httpserver.NewEngine(slog.New(slog.NewTextHandler(h.log, nil)))
	must.Succeed(t, err)
	return e
}

func serve(t testing.TB, e http.Handler) *httptest.Server {
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return server
}

// speaks makes a robot speak.
func (h *harness) speaks(id device.ID, session string) {
	h.board.HandleEvent(event.Envelope{Seq: 1, At: noon, Robot: id, Session: session, Event: event.RobotOnline{Framing: 1}})
	h.board.HandleEvent(event.Envelope{Seq: 2, At: noon, Robot: id, Session: session, Event: event.SpeakingStarted{}})
}

// ask sends a request over HTTP and returns status and body.
func ask(t testing.TB, server *httptest.Server, method, path, body string, header ...string) (int, string) {
	t.Helper()
	answer, text := httpservertest.Ask(t, method, server.URL+path, body, header...)
	return answer.StatusCode, text
}

// refused returns the code of an error response, and checks the form of the response.
func refused(t testing.TB, body string) string {
	t.Helper()
	var b struct {
		Error struct{ Code, Message string }
	}
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil || b.Error.Code == "" || b.Error.Message == "" {
		t.Fatalf("%s is not {error: {code, message}} (%v)", body, err)
	}
	return b.Error.Code
}

// refusal is a body that is refused, with the expected status and code.
type refusal struct {
	body   string
	status int
	code   string
}

// refuses sends bodies and checks that each is refused.
func refuses(t *testing.T, server *httptest.Server, path string, all map[string]refusal) {
	t.Helper()
	for name, c := range all {
		if status, body := ask(t, server, http.MethodPost, path, c.body); status != c.status || refused(t, body) != c.code {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}
