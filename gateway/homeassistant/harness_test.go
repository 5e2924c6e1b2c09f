package homeassistant

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/agent"
	"perch/agent/notice"
	"perch/device"
	"perch/event"
	"perch/gateway/broker"
	"perch/gateway/homeassistant/command"
	"perch/gateway/homeassistant/connection"
	"perch/must"
	"perch/perception"
	"perch/store/storetest"
	"perch/voice"
	"perch/waittest"
)

const chan1, chan2, stranger = device.ID("a0b1c2d3e4f4"), device.ID("a0b1c2d3e4f6"), device.ID("a0b1c2d3e400")

// harness holds the options of a mirror and the parts of an appliance that they refer to, with fake robots.
type harness struct {
	options  Options
	registry *device.Registry
	talk     *talker
	bus      *event.Bus
	board    *agent.Board
	log      *waittest.Buffer
	music    []string // names of the owner's music
}

func newHarness() *harness {
	h := &harness{bus: event.NewBus(), board: agent.NewBoard(), log: &waittest.Buffer{}}
	reader := h.bus.Read()
	go h.board.Run(context.Background(), reader) // until the bus is closed
	h.registry = device.NewRegistry(device.Key("0123456789abcdef0123456789abcdef"), device.AdoptOpen, &storetest.Table[device.Robot]{})
	h.meet(chan1)
	h.talk = &talker{harness: h, tools: stackChan().Tools, volume: 70, brightness: 75,
		closed: map[device.ID]bool{}, hearing: make(chan struct{})}
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	h.options = Options{
		Services: command.Services{
			Robots: h.registry, Talk: h.talk, Board: h.board, Bus: h.bus, Firmware: &stock{}, Gestures: perception.StockGestures(), Music: func() []string { return h.music },
			Phrase:   func(id device.ID, name string) string { return "😊 " + name + " is " + string(id) },
			Notifier: notice.New(notice.Options{Store: notice.NewStore(&storetest.Table[notice.Notification]{}), Bus: h.bus, Log: log}),
			Senses:   perception.NewIntake(h.bus, h.registry, log),
		},
		Version: "1.2.3", Away: 24 * time.Hour,
		Announced: &storetest.Table[[]string]{}, WaitingCommands: &storetest.Table[[]Waiting]{},
		Notices: notice.NewStore(&storetest.Table[notice.Notification]{}), Questions: &waitingQuestions{},
		Characters: &storedCharacters{of: h.registry}, Brains: func() []string { return []string{"openai", "reflex"} },
		Voices: func() ([]voice.Named, bool) { return nil, true },
		URL:    func() string { return "" }, Host: func() (host, taken string) { return "", "" },
	}
	h.options.Options = connection.Options{
		Broker: "mqtt://broker", Base: "perch", Prefix: "homeassistant", ID: "0a1b2c3d", Started: time.Now(), Log: log,
		Serve: func(ctx context.Context, l *net.TCPListener, user, password string) error {
			shared, err := l.File()
			if err != nil {
				return err
			}
			defer shared.Close()
			own, err := net.FileListener(shared)
			if err != nil {
				return err
			}
			return broker.Run(ctx, own, broker.Options{User: user, Password: password, Base: "perch",
				ClientPrefix: connection.ClientID("0a1b2c3d"), Log: log})
		},
	}
	return h
}

// storedCharacters holds the IDs of all characters. The settings of a robot choose the robot's character.
type storedCharacters struct {
	of  *device.Registry
	mu  sync.Mutex
	all []string
}

func (c *storedCharacters) Names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

func (c *storedCharacters) Who(id device.ID, _ string) string {
	return cmp.Or(c.of.Settings(id).Persona, agent.DefaultCharacter)
}

func (c *storedCharacters) are(all ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = all
}

// meet makes a robot check in, and adopts the robot.
func (h *harness) meet(id device.ID) {
	h.pass(id)
	if _, err := h.registry.Adopt(string(id), time.Now()); err != nil {
		panic(err)
	}
}

// pass makes a robot check in, and does not adopt the robot.
func (h *harness) pass(id device.ID) {
	c := device.CheckIn{ID: id, Client: device.Client{ID: "c0ffee00-0000-4000-8000-" + string(id)}, Board: "m5stack-stack-chan", Firmware: "2.2.4",
		BaseURL: "http://192.168.1.2:8003"}
	h.registry.CheckIn(c, time.Now())
}

// happens publishes events on the bus.
func (h *harness) happens(id device.ID, session string, events ...event.Event) {
	for _, e := range events {
		h.bus.Publish(id, session, e)
	}
}

// hello opens a robot's channel.
func (h *harness) hello(id device.ID, session string) {
	h.talk.open(id, true)
	h.happens(id, session, event.RobotOnline{Framing: 1}, event.ToolsListed{Count: 4})
}

func (h *harness) bye(id device.ID, session string) {
	h.talk.open(id, false)
	h.happens(id, session, event.RobotOffline{Why: "test"})
}

// hub returns the hub of a new mirror, whose Run is not called.
func (h *harness) hub(t must.T) *hub {
	t.Helper()
	m := must.Value(New(h.options))(t)
	return newHub(&m.o, m.connection, &m.lanes)
}

// run runs a new mirror until the test ends or end is called.
func (h *harness) run(t *testing.T) (m *Mirror, end func()) {
	t.Helper()
	m = must.Value(New(h.options))(t)
	return m, h.start(t, m)
}

func (h *harness) start(t *testing.T, m *Mirror) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	watched := &watchedDialer{dial: m.connection.Dial}
	m.connection.Dial = watched.Dial
	go func() { ended <- m.Run(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := hold(h.options.Prefix, watched.all()); err != nil {
			t.Errorf("Home Assistant would complain: %v", err)
		}
		if t.Failed() {
			t.Log(h.log)
		}
	})
	t.Cleanup(func() { end(); h.bus.Close() })
	return end
}

type (
	message  = connection.Message
	incoming = connection.Incoming
)

// watchedDialer records all messages that a mirror publishes.
type watchedDialer struct {
	dial      func(context.Context, connection.Session) (connection.Link, error)
	mu        sync.Mutex
	published []message
}

type watchedLink struct {
	connection.Link
	by *watchedDialer
}

func (d *watchedDialer) Dial(ctx context.Context, s connection.Session) (connection.Link, error) {
	l, err := d.dial(ctx, s)
	if err != nil {
		return nil, err
	}
	return watchedLink{l, d}, nil
}

func (l watchedLink) Publish(m message) connection.Receipt {
	l.by.mu.Lock()
	l.by.published = append(l.by.published, m)
	l.by.mu.Unlock()
	return l.Link.Publish(m)
}

func (d *watchedDialer) all() []message {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.published)
}

// offlineError is the error for a robot with a closed channel, like the one of gateway/robot.
type offlineError struct{}

func (offlineError) Error() string { return "the robot's channel is closed" }
func (offlineError) Code() string  { return "robot_offline" }

// talker is a fake of the server that controls robots.
type talker struct {
	harness *harness
	tools   []device.Tool

	mu                 sync.Mutex
	closed             map[device.ID]bool
	did                []string
	volume, brightness int
	yaw, pitch         int
	refuse             error
	slow               bool
	holds              chan struct{}  // if set, lights change once it is closed
	asked              agent.Question // the latest question
	answers            agent.Answer   // the answer to every question
	hearing            chan struct{}  // closed and replaced with each call
}

func (k *talker) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

func (k *talker) open(id device.ID, open bool) { k.set(func() { k.closed[id] = !open }) }

func (k *talker) note(id device.ID, format string, a ...any) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed[id] {
		return offlineError{}
	}
	k.did = append(k.did, fmt.Sprintf(format, a...))
	close(k.hearing)
	k.hearing = make(chan struct{})
	return nil
}

// await waits until a call was recorded. what is the recorded text.
func (k *talker) await(t *testing.T, what string) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		k.mu.Lock()
		done, received := slices.Contains(k.did, what), k.hearing
		k.mu.Unlock()
		if done {
			return
		}
		select {
		case <-received:
		case <-late:
			t.Fatalf("not done: %s; done was %q", what, k.calls())
		}
	}
}

// calls returns the recorded calls, except the calls of tools that only read.
func (k *talker) calls() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(k.did), func(s string) bool { return strings.Contains(s, "get_") })
}

func (k *talker) SpeakDurably(_ context.Context, id device.ID, text string) (bool, error) {
	err := k.note(id, "say %s", text)
	if command.Offline(err) {
		k.harness.bus.Publish(id, "", event.Command{Thing: "say", State: event.CommandQueued})
		return true, nil
	}
	return false, err
}

func (k *talker) Alert(_ context.Context, id device.ID, status, message, emotion string) (bool, error) {
	err := k.note(id, "alert %s", message)
	return command.Offline(err), nil
}

func (k *talker) Ask(_ context.Context, id device.ID, q agent.Question) (agent.Answer, error) {
	if err := k.note(id, "ask %s", q.Text); err != nil {
		return agent.Answer{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = q
	return k.answers, nil
}

func (k *talker) ShowEmotion(_ context.Context, id device.ID, e agent.Emotion) error {
	err := k.note(id, "feel %s", e.Name)
	if err == nil {
		k.harness.bus.Publish(id, k.harness.board.Robot(id).Session, event.Emotion{Name: e.Name, Emoji: e.Emoji})
	}
	return err
}

func (k *talker) Mute(id device.ID, on bool) {
	_ = k.note(id, "mute %v", on)
}
func (k *talker) Abort(_ context.Context, id device.ID) error { return k.note(id, "abort") }
func (k *talker) Hangup(_ context.Context, id device.ID, why string) error {
	return k.note(id, "hang up: %s", why)
}
func (k *talker) Reboot(_ context.Context, id device.ID) error { return k.note(id, "reboot") }
func (k *talker) PlayMusic(_ context.Context, id device.ID, name string) error {
	return k.note(id, "play %s", name)
}
func (k *talker) StopMusic(_ context.Context, id device.ID) error { return k.note(id, "stop music") }
func (k *talker) Tools(device.ID) []device.Tool                   { return k.tools }

func (k *talker) Call(ctx context.Context, id device.ID, tool string, arguments map[string]any) (device.Result, error) {
	t, found := device.FindTool(k.tools, tool)
	if !found {
		return device.Result{}, errors.New("the robot has no such tool")
	}
	fitted, err := t.Fit(arguments)
	if err != nil {
		return device.Result{}, err
	}
	k.mu.Lock()
	refuse, slow, holds := k.refuse, k.slow, k.holds
	k.mu.Unlock()
	if slow {
		<-ctx.Done()
		return device.Result{}, ctx.Err()
	}
	given, _ := json.Marshal(fitted)
	if err := k.note(id, "%s %s", strings.TrimPrefix(tool, "self."), given); err != nil {
		return device.Result{}, err
	}
	if holds != nil && tool == "self.robot.set_led_color" {
		select {
		case <-holds:
		case <-ctx.Done():
			return device.Result{}, ctx.Err()
		}
	}
	if refuse != nil {
		return device.Result{}, refuse
	}
	return k.answer(tool, fitted), nil
}

func (k *talker) answer(tool string, a map[string]any) device.Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	set := func(to *int, name string) {
		if n, given := a[name].(int); given {
			*to = n
		}
	}
	set(&k.volume, "volume")
	set(&k.brightness, "brightness")
	set(&k.yaw, "yaw")
	set(&k.pitch, "pitch")
	switch tool {
	case "self.get_device_status":
		return device.Result{Text: fmt.Sprintf(
			`{"audio_speaker":{"volume":%d},"screen":{"brightness":%d},"battery":{"level":82,"charging":false},"network":{"type":"wifi","ssid":"x","signal":"strong"},"chip":{"temperature":41.5}}`, k.volume, k.brightness)}
	case "self.robot.get_head_angles":
		return device.Result{Text: fmt.Sprintf(`{"yaw":%d,"pitch":%d}`, k.yaw, k.pitch)}
	}
	return device.Result{Text: "true"}
}
