package admin_test

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

	"github.com/gin-gonic/gin"
	"go.uber.org/goleak"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/httpserver"
	"perch/gateway/owner/admin"
	"perch/must"
	"perch/ota"
	"perch/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	robotA device.ID = "a0b1c2d3e4f5"
	robotB device.ID = "a0b1c2d3e4f6"
)

// talk is a fake of the robots' server. It records what robots are asked to do.
type talk struct {
	asked   []string
	queued  bool
	err     error
	tools   []device.Tool
	result  device.Result
	picture *device.Picture
	call    func(context.Context) error                          // called by Call if not nil, instead of returning result
	record  func(context.Context, func(line string) error) error // called by Record
}

func (t *talk) note(parts ...string) error {
	t.asked = append(t.asked, strings.Join(parts, " "))
	return t.err
}

func (t *talk) Speak(_ context.Context, id device.ID, text string) (bool, error) {
	return t.queued, t.note("say", string(id), text)
}

func (t *talk) AskAgent(_ context.Context, id device.ID, text string) (string, bool, error) {
	return "It is late.", t.queued, t.note("ask", string(id), text)
}

func (t *talk) Alert(_ context.Context, id device.ID, status, message, emotion string) (bool, error) {
	return t.queued, t.note("alert", string(id), status, message, emotion)
}
func (t *talk) Abort(_ context.Context, id device.ID) error  { return t.note("abort", string(id)) }
func (t *talk) Reboot(_ context.Context, id device.ID) error { return t.note("reboot", string(id)) }
func (t *talk) Music() []string                              { return []string{"jazz", "news"} }
func (t *talk) PlayMusic(_ context.Context, id device.ID, name string) error {
	return t.note("play", string(id), name)
}
func (t *talk) StopMusic(_ context.Context, id device.ID) error {
	return t.note("stop music", string(id))
}
func (t *talk) Hangup(_ context.Context, id device.ID, why string) error {
	return t.note("hangup", string(id), why)
}
func (t *talk) Tools(device.ID) []device.Tool { return t.tools }

func (t *talk) Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	text, err := json.Marshal(arguments)
	if err != nil {
		return device.Result{}, err
	}
	err = t.note("call", string(id), tool, string(text))
	if t.call != nil {
		err = t.call(ctx)
	}
	return t.result, err
}

func (t *talk) Lost() int { return 3 }

func (t *talk) Status(device.ID) (event.RobotStatus, bool) { return event.RobotStatus{}, false }

func (t *talk) Picture(device.ID) (device.Picture, bool) {
	if t.picture == nil {
		return device.Picture{}, false
	}
	return *t.picture, true
}

func (t *talk) Record(ctx context.Context, _ device.ID, out func(line string) error) error {
	if t.err != nil {
		return t.err
	}
	return t.record(ctx, out)
}

// notifier stores notifications, and does not deliver them.
type notifier struct{ notices *notice.Store }

func (h notifier) Notify(n notice.Notification) (notice.Notification, error) {
	return h.notices.Accept(n, time.Now())
}

func (h notifier) Acknowledge(id string) error {
	_, err := h.notices.Change(id, notice.Acknowledged)
	return err
}

// questions is a fake that holds waiting questions and records the replies.
type questions struct {
	open    []agent.Question
	replies []string
	err     error
}

func (q *questions) Questions() []agent.Question { return q.open }

func (q *questions) Reply(id string, allow bool) error {
	q.replies = append(q.replies, fmt.Sprint(id, " ", allow))
	left := slices.DeleteFunc(slices.Clone(q.open), func(o agent.Question) bool { return o.ID == id })
	if q.err == nil && len(left) == len(q.open) {
		return agent.ErrNoQuestion
	}
	q.open = left
	return q.err
}

// appliance is the admin API with real and fake parts of an appliance.
type appliance struct {
	robots    *device.Registry
	memory    *agent.Memory
	timers    *notice.Timers
	engines   *engines
	notices   *notice.Store
	bus       *event.Bus
	states    *agent.Board
	talk      *talk
	questions *questions
	mind      *agent.Mind
	histories *storetest.Table[agent.Conversation] // the table of mind
	firmware  *ota.Firmware
	parts     []admin.Part
	partsOf   func() []admin.Part // called instead of returning parts, if not nil
	metrics   *admin.Metrics
	most      int // the latest n that Options.Turns was called with
	engine    *gin.Engine
	log       *bytes.Buffer
}

var started = time.Date(2026, 7, 27, 12, 0, 0, 0, time.UTC)

// met is when robots check in. It is close to the present time, because adoption codes expire after minutes.
var met = time.Now().UTC().Truncate(time.Second)

func newAppliance(t testing.TB, change ...func(*admin.Options)) *appliance {
	t.Helper()
	h := &appliance{
		robots:  device.NewRegistry(device.Key("key"), device.AdoptCode, &storetest.Table[device.Robot]{}),
		memory:  agent.NewMemory(&storetest.Table[agent.Entry]{}),
		engines: &engines{},
		timers:  notice.NewTimers(&storetest.Table[agent.Timer]{}, nil),
		notices: notice.NewStore(&storetest.Table[notice.Notification]{}),
		bus:     event.NewBus(), states: agent.NewBoard(), talk: &talk{}, log: &bytes.Buffer{},
		questions: &questions{}, histories: &storetest.Table[agent.Conversation]{},
		parts: []admin.Part{{Name: "store", OK: true, Vital: true}, {Name: "mqtt", OK: true}},
	}
	h.memory.Watch(func(id string) { h.bus.Publish("", "", event.Changed{What: "memory", ID: id}) })
	h.partsOf = func() []admin.Part { return h.parts }
	h.mind = agent.NewMind(agent.Always(), h.memory, h.bus, slog.New(slog.DiscardHandler))
	h.mind.Restore(h.histories)
	log := slog.New(slog.NewTextHandler(h.log, nil))
	var err error
	h.firmware, err = ota.OpenFirmware(ota.FirmwareOptions{Dir: t.TempDir(), Images: &storetest.Table[ota.Record]{},
		Units: &storetest.Table[ota.Unit]{}, Key: []byte("key"), Bus: h.bus, Zone: time.UTC, Stopped: func(string, int, int) {}, Log: log})
	must.Succeed(t, err)
	t.Cleanup(h.firmware.Close)
	var folding sync.WaitGroup
	reader := h.bus.Read()
	folding.Go(func() { h.states.Run(context.Background(), reader) })
	t.Cleanup(folding.Wait)
	t.Cleanup(h.bus.Close)
	o := admin.Options{
		Characters: oneCharacter{},
		Robots:     h.robots, Talk: h.talk, Notify: notifier{h.notices}.Notify, Memory: h.memory, Timers: h.timers,
		Engines: h.engines, Notices: h.notices.Open, Board: h.states, Bus: h.bus,
		Acknowledge: notifier{h.notices}.Acknowledge,
		Questions:   h.questions, ForgetConversation: h.mind.Forget, Phrase: func(_ device.ID, name string) string { return "😊 " + name },
		Senses: h.Senses, Firmware: h.firmware,
		Refused: func() []ota.Refusal { return []ota.Refusal{} }, ForgetRefused: func() {},
		RobotURL: func() string { return "http://192.168.1.2:8003" },
		Turns:    func(most int) any { h.most = most; return []string{"a turn"} },
		Week:     func(robot device.ID) any { return []string{"a day of " + string(robot)} },
		Parts:    func() []admin.Part { return h.partsOf() },
		Unheard:  func() []string { return nil },
		Counters: func() []admin.Counter {
			return []admin.Counter{{Name: "perch_elsewhere_total", Help: "Of another part.", Count: func() uint64 { return 7 }}}
		},
		Zone: time.UTC, Version: "1.0", ID: "perch-1", Started: started,
	}
	for _, c := range change {
		c(&o)
	}
	d := admin.New(o)
	h.metrics = admin.NewMetrics(o)
	e, err := httpserver.NewEngine(log)
	must.Succeed(t, err)
	d.OpenRoutes(e)
	d.Routes(e)
	h.metrics.Routes(e)
	h.engine = e
	return h
}

func (h *appliance) Senses(device.ID, time.Time) []string {
	return []string{"a face in front of it since 3 s"}
}

// visit lets a robot check in with a Client-Id, and returns the result.
func (h *appliance) visit(t testing.TB, id device.ID, client string) device.Admission {
	t.Helper()
	_, a := h.robots.CheckIn(device.CheckIn{
		ID: id, Client: device.NewClient(client), Board: "m5stack-stack-chan", Firmware: "1.2.4",
		Address: "192.168.1.40", BaseURL: "http://perch.local:8003",
	}, met)
	return a
}

// adopts lets a robot check in, and adopts it.
func (h *appliance) adopts(t testing.TB, id device.ID, client string) {
	t.Helper()
	h.visit(t, id, client)
	must.Value(h.robots.Adopt(string(id), met))(t)
}

// publish publishes an event, and waits until the board has applied it.
func (h *appliance) publish(t testing.TB, id device.ID, session string, e event.Event) {
	t.Helper()
	h.bus.Publish(id, session, e)
	for give := time.Now().Add(5 * time.Second); ; {
		if _, seq := h.states.Snapshot(); seq >= h.bus.Seq() {
			return
		}
		if time.Now().After(give) {
			t.Fatal("the board does not follow the bus")
		}
	}
}

// ask sends a request and returns status and body.
func (h *appliance) ask(method, path, body string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	w := httptest.NewRecorder()
	h.engine.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// wants sends a request and checks the status and the body of the response. The body must contain text, or be equal to
// the rest of text if text begins with "=".
func (h *appliance) wants(t testing.TB, method, path, body string, status int, text string) {
	t.Helper()
	got, answer := h.ask(method, path, body)
	whole, isWhole := strings.CutPrefix(text, "=")
	if got != status || isWhole && answer != whole || !isWhole && !strings.Contains(answer, text) {
		t.Errorf("%s %.60s %.100s: %d %.300s, want %d %s", method, path, body, got, answer, status, text)
	}
}

// get sends a GET request and decodes the body of the response, whose status must be 200.
func get[T any](t testing.TB, h *appliance, path string) (v T) {
	t.Helper()
	status, body := h.ask(http.MethodGet, path, "")
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d %s", path, status, body)
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("GET %s: %v in %s", path, err, body)
	}
	return v
}

// bodyHandler is the agent.Body of robotA.
type bodyHandler struct{ talk *talk }

func (b bodyHandler) Tools() []device.Tool { return b.talk.tools }
func (b bodyHandler) Call(ctx context.Context, tool string, arguments map[string]any) (device.Result, error) {
	return b.talk.Call(ctx, robotA, tool, arguments)
}
func (b bodyHandler) Reboot(context.Context) error { return nil }
