package vccp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"perch/agent"
	"perch/device"
	"perch/event"
	"perch/gateway/avatar/avatartest"
	"perch/gateway/httpserver"
	"perch/gateway/httpserver/httpservertest"
	"perch/must"
	"perch/perception"
	"perch/socket"
	"perch/store/storetest"
	"perch/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	robotA device.ID = "a0b1c2d3e4f5"
	robotB device.ID = "a0b1c2d3e4f6"
	key              = "key-of-the-skins"
)

// robots is a fake of the registry and the control of robots, and records calls.
type robots struct {
	mu        sync.Mutex
	known     []device.ID
	strangers map[device.ID]bool // robots that are not adopted
	tools     []device.Tool
	asked     []string
	err       error
	answer    func(ctx context.Context) (device.Result, error) // returns the result of a tool; nil for "true"
}

func (r *robots) note(parts ...any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, strings.TrimSuffix(fmt.Sprintln(parts...), "\n"))
	return r.err
}

// take returns the recorded calls, and clears them.
func (r *robots) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

func (r *robots) List() (list []device.Robot) {
	for _, id := range r.known {
		list = append(list, device.Robot{ID: id})
	}
	return list
}
func (r *robots) Trusts(id device.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.known, id) && !r.strangers[id]
}

func (r *robots) befriend(id device.ID, friend bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strangers[id] = !friend
}
func (r *robots) Tools(device.ID) []device.Tool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tools)
}
func (r *robots) Speak(_ context.Context, id device.ID, text string) (bool, error) {
	return false, r.note("say", id, text)
}
func (r *robots) ShowEmotion(_ context.Context, id device.ID, e agent.Emotion) error {
	return r.note("feel", id, e.Name)
}
func (r *robots) Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return device.Result{}, err
	}
	err = r.note("call", id, tool, string(text))
	if r.answer != nil {
		return r.answer(ctx)
	}
	return device.Result{Text: "true"}, err
}

// stackChan returns some tools of a Stack-chan.
func stackChan() []device.Tool {
	angle := func(most int) device.Argument {
		least := -9999
		return device.Argument{Type: "integer", Minimum: &least, Maximum: &most}
	}
	colour := device.Argument{Type: "integer"}
	return []device.Tool{
		{Name: "self.robot.set_head_angles", Description: "turns the head", Schema: device.Schema{Type: "object",
			Properties: map[string]device.Argument{"yaw": angle(128), "pitch": angle(90), "speed": {Type: "integer"}}}},
		{Name: "self.robot.set_led_color", Description: "lights", Schema: device.Schema{Type: "object",
			Properties: map[string]device.Argument{"red": colour, "green": colour, "blue": colour}}},
		{Name: "self.camera.take_photo", Description: "a photo", Schema: device.Schema{Type: "object",
			Properties: map[string]device.Argument{"question": {Type: "string"}}, Required: []string{"question"}}},
		{Name: "self.reboot", Schema: device.Schema{Type: "object"}, UserOnly: true},
	}
}

// harness holds a server and the parts of an appliance that the server uses.
type harness struct {
	robots *robots
	bus    *event.Bus
	senses *perception.States
	server *Server
	http   *httptest.Server
	log    *bytes.Buffer
}

// newHarness returns a harness whose server knows two robots and requires a key.
func newHarness(t testing.TB, change ...func(*Options)) *harness {
	t.Helper()
	h := &harness{robots: &robots{known: []device.ID{robotA, robotB}, tools: stackChan()}, bus: event.NewBus(), senses: perception.NewStates(&storetest.Table[perception.State]{}),
		log: &bytes.Buffer{}}
	o := Options{Control: h.robots, Robots: h.robots, Find: device.ParseID, Senses: h.senses, Bus: h.bus, Face: named,
		Log: slog.New(slog.NewTextHandler(h.log, nil))}
	for _, c := range change {
		c(&o)
	}
	h.server = New(o)
	e, err := httpserver.NewEngine(o.Log)
	must.Succeed(t, err)
	e.Use(httpserver.Origins{}.Admit(), httpserver.Guard(httpserver.Hosts{}.Check))
	lock := httpserver.NewKey(key, "skins.key", "")
	h.server.Routes(e.Group("", httpserver.Guard(lock.Check)))
	h.server.CharacterRoutes(e.Group("", httpserver.Guard(httpserver.InUpgrade(false, lock.Check))))
	h.http = httptest.NewServer(e)
	t.Cleanup(func() {
		h.server.Close()
		h.http.Close()
		h.bus.Close()
	})
	return h
}

// runs calls Server.Run on another goroutine until end is called.
func (h *harness) runs() (end func()) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { h.server.Run(ctx) })
	return func() { stop(); running.Wait() }
}

// named returns the firmware's face with a name.
func named(preset string) (agent.Emotion, bool) {
	all := agent.Emotions()
	i := slices.IndexFunc(all, func(e agent.Emotion) bool { return e.Name == preset })
	if i < 0 {
		return agent.Emotion{}, false
	}
	return all[i], true
}

// bearing adds a bearer token to every request.
type bearing struct {
	http.RoundTripper
	bearer string
}

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.bearer)
	return b.RoundTripper.RoundTrip(r)
}

// model is an MCP client of the official library.
type model struct {
	t testing.TB
	*mcp.ClientSession
	changed chan struct{}
}

// onChange records that the list of tools has changed. It must not block.
func (m *model) onChange(context.Context, *mcp.ToolListChangedRequest) {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

func (h *harness) model(t testing.TB) *model {
	t.Helper()
	m, err := connect(t, h.http.URL+"/mcp", key)
	must.Succeed(t, err)
	return m
}

// connect begins a session.
func connect(t testing.TB, url, bearer string) (*model, error) {
	t.Helper()
	m := &model{t: t, changed: make(chan struct{}, 8)}
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{ToolListChangedHandler: m.onChange})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: bearing{transport, bearer}}
	s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: client}, nil)
	if err != nil {
		return nil, err
	}
	m.ClientSession = s
	t.Cleanup(func() { _ = s.Close() })
	return m, nil
}

// call calls a tool, and returns its text.
func (m *model) call(name string, arguments any) (text string, failed bool) {
	m.t.Helper()
	r, err := m.CallTool(m.t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		m.t.Fatalf("%s: %v", name, err)
	}
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text += c.Text
		}
	}
	return text, r.IsError
}

// must calls a tool, and fails the test if the tool fails.
func (m *model) must(name string, arguments any) string {
	m.t.Helper()
	text, failed := m.call(name, arguments)
	if failed {
		m.t.Fatalf("%s: %s", name, text)
	}
	return text
}

type object = map[string]any

// body is a character that is connected by WebSocket.
type body struct {
	t testing.TB
	*socket.Conn
}

func (h *harness) body(t testing.TB, session string) *body {
	t.Helper()
	c, err := socket.Dial(t.Context(), "ws"+strings.TrimPrefix(h.http.URL, "http")+"/vccp"+session,
		socket.Options{MaxMessage: 1 << 20, Header: http.Header{"Authorization": {"Bearer " + key}}})
	must.Succeed(t, err)
	giveUp := time.AfterFunc(10*time.Second, c.Drop)
	t.Cleanup(func() { giveUp.Stop(); c.Drop() })
	return &body{t, c}
}

func (b *body) send(text string) {
	b.t.Helper()
	must.Succeed(b.t, b.SendText([]byte(text)))
}

// can sends a capability, and waits until the model gets it.
func (b *body) can(m *model, data string) {
	b.t.Helper()
	b.send(`{"type":"system","category":"capability","timestamp":"2024-01-01T00:00:00Z","data":` + data + `}`)
	waittest.For(b.t, "the capability", func() bool { return m.must("get-capability", nil) == data })
}

// next returns the next message.
func (b *body) next() string {
	b.t.Helper()
	isText, text, err := b.Receive()
	if err != nil || !isText {
		b.t.Fatalf("received %q, %v", text, err)
	}
	return string(text)
}

// post sends a request without the library.
func (h *harness) post(t testing.TB, text string, header ...string) (int, http.Header, string) {
	t.Helper()
	answer, body := httpservertest.Ask(t, http.MethodPost, h.http.URL+"/mcp", text, append([]string{"Content-Type", "application/json",
		"Accept", "application/json, text/event-stream", "Authorization", "Bearer " + key}, header...)...)
	return answer.StatusCode, answer.Header, body
}

// raw connects a character whose WebSocket frames the test reads.
func (h *harness) raw(t testing.TB, path string) *avatartest.Raw {
	t.Helper()
	r := avatartest.DialRaw(t, h.http.URL, path, "Authorization: Bearer "+key)
	must.Succeed(t, r.SetDeadline(time.Now().Add(10*time.Second)))
	return r
}
