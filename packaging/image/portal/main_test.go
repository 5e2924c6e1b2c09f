package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perch/must"
	"perch/packaging/image/board"
)

// world is a simulated machine: its radio and its Perch.
type world struct {
	mu      sync.Mutex
	network bool              // the machine is connected to a network
	raised  bool              // the access point is open
	talking bool              // a conversation with a robot is under way
	near    bool              // a robot is connected
	perch   error             // error of requests to Perch
	refuses error             // error of joining a network
	keys    map[string]string // Perch's configuration
	done    []string          // calls since the latest call of all
}

func (w *world) did(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, what)
}

func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// all returns the calls since the latest call of all.
func (w *world) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.done
	w.done = nil
	return all
}

func (w *world) poll(context.Context) (network, raised bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.network, w.raised, nil
}
func (w *world) hasSavedNetworks(context.Context) (bool, error) { return false, nil }
func (w *world) hasRadio() bool                                 { return true }
func (w *world) suffix() string                                 { return "1A2B" }
func (w *world) scan(context.Context) ([]scanned, error) {
	return []scanned{{SSID: "Home"}, {SSID: "Perch-1A2B"}}, nil
}
func (w *world) raise(_ context.Context, n string) error {
	w.did("raise " + n)
	w.change(func() { w.raised = true })
	return nil
}
func (w *world) lower(context.Context) {
	w.did("lower")
	w.change(func() { w.raised = false })
}
func (w *world) cleanUp(context.Context)      { w.did("clean") }
func (w *world) setCountry(code string) error { w.did("country " + code); return nil }
func (w *world) join(_ context.Context, n board.Network) error {
	w.did("join " + n.SSID)
	time.Sleep(20 * time.Second)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.network = w.refuses == nil
	return w.refuses
}
func (w *world) robots(context.Context) (talking, near bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.talking, w.near, w.perch
}
func (w *world) identity(context.Context) (name, language string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keys["name"], w.keys["language"], w.perch
}
func (w *world) set(_ context.Context, key, value string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if value == "de" {
		return errors.New("perch does not understand it")
	}
	w.keys[key] = value
	return w.perch
}
func (w *world) restart(context.Context) error              { w.did("restart"); return nil }
func (w *world) announce(_ context.Context, s string) error { w.did("say " + s); return nil }

// pipe is a listener without connections, for tests with synctest.
type pipe struct {
	closed chan struct{}
	once   sync.Once
}

func (p *pipe) Accept() (net.Conn, error) { <-p.closed; return nil, net.ErrClosed }
func (p *pipe) Close() error              { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipe) Addr() net.Addr            { return &net.TCPAddr{} }

// runs starts a portal on the simulated machine.
func (w *world) runs(t *testing.T) (p *portal, log *bytes.Buffer) {
	t.Helper()
	w.keys = map[string]string{"name": "perch", "language": "en"}
	log = &bytes.Buffer{}
	m := board.Machine{Root: t.TempDir(), Run: func(_, name string, args ...string) error {
		w.did(name + " " + strings.Join(args, " "))
		return nil
	}}
	p = &portal{radio: w, perch: w, machine: m, log: slog.New(slog.NewTextHandler(log, nil)), host: host,
		page:   newPage(func(context.Context, string, string) (bool, error) { return true, nil }),
		listen: func() (net.Listener, error) { return &pipe{closed: make(chan struct{})}, nil }}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.run(ctx, 0)
	}()
	t.Cleanup(func() {
		stop()
		<-done
		if all := w.all(); len(all) == 0 || all[len(all)-1] != "lower" {
			t.Errorf("it ends with %q", all)
		}
	})
	return p, log
}

func (w *world) wants(t *testing.T, what string, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := w.all(); !slices.Equal(got, want) {
		t.Errorf("%s: it did %q, want %q", what, got, want)
	}
}

func TestPhoneSubmitsANetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{near: true}
		p, log := w.runs(t)
		time.Sleep(59 * time.Second)
		w.wants(t, "within a minute", "clean")
		time.Sleep(40 * time.Second)
		w.wants(t, "after it", "raise Perch-1A2B", "say I have no network. Join Perch-1A2B with your phone.")
		text := p.page.asks("http://"+host+"/", "10.42.0.9", "").Body.String()
		if !strings.Contains(text, ">Home") || strings.Contains(text, ">Perch-1A2B ·") {
			t.Errorf("the page has other networks:\n%s", text)
		}
		if got := p.page.asks("http://"+host+"/", "10.42.0.9", values("token", p.page.token).Encode()); got.Code != 200 {
			t.Errorf("the form: %d", got.Code)
		}
		time.Sleep(time.Minute)
		w.wants(t, "after the form", "lower", "country DE", "join Home", "hostname kitchen", "restart")
		if w.keys["name"] != "kitchen" || w.keys["language"] != "en" || !strings.Contains(log.String(), "key=language") {
			t.Errorf("the configuration is %v\n%s", w.keys, log)
		}
		for file, want := range map[string]string{"etc/hostname": "kitchen\n",
			"etc/modprobe.d/perch-country.conf": "options cfg80211 ieee80211_regdom=DE\n"} {
			if text, err := os.ReadFile(filepath.Join(p.machine.Root, file)); string(text) != want {
				t.Errorf("%s is %q, %v", file, text, err)
			}
		}
		time.Sleep(time.Hour)
		w.wants(t, "with a network")
		w.change(func() { w.network, w.talking, w.near = false, true, false })
		time.Sleep(time.Hour)
		w.wants(t, "while somebody talks")
		w.change(func() { w.talking = false })
		time.Sleep(10 * time.Second)
		w.wants(t, "after the talk", "raise Perch-1A2B")
		w.change(func() { w.raised = false })
		time.Sleep(2 * time.Minute)
		w.wants(t, "after NetworkManager was updated", "lower", "raise Perch-1A2B")
		if !strings.Contains(log.String(), `msg="the access point is down" name=Perch-1A2B`) {
			t.Errorf("the log is\n%s", log)
		}
	})
}

func TestFailedJoinReopensTheAccessPoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{refuses: errWrongKey, perch: errors.New("there is no such file")}
		p, log := w.runs(t)
		time.Sleep(70 * time.Second)
		w.wants(t, "at first", "clean", "raise Perch-1A2B")
		p.page.asks("http://"+host+"/", "10.42.0.9", values("token", p.page.token).Encode())
		time.Sleep(40 * time.Second)
		w.wants(t, "after the form", "lower", "country DE", "join Home", "raise Perch-1A2B")
		text := p.page.asks("http://"+host+"/", "10.42.0.9", "").Body.String()
		if !strings.Contains(text, "Home was not joined: the password is wrong.") || !strings.Contains(text, `value="DE" selected`) {
			t.Errorf("the page says\n%s", text)
		}
		if strings.Contains(log.String(), "a good password") || strings.Count(log.String(), "no such file") != 1 {
			t.Errorf("the log is\n%s", log)
		}
		if _, err := os.Stat(filepath.Join(p.machine.Root, "etc/hostname")); err == nil {
			t.Error("the name is changed all the same")
		}
		w.change(func() { w.refuses, w.perch = nil, nil })
		p.page.asks("http://"+host+"/", "10.42.0.9", values("token", p.page.token, "key", "another password").Encode())
		time.Sleep(40 * time.Second)
		w.wants(t, "after another form", "lower", "country DE", "join Home", "hostname kitchen", "restart")
	})
}

func TestRequestsToPerch(t *testing.T) {
	at := filepath.Join(t.TempDir(), "perch.sock")
	l := must.Value(net.Listen("unix", at))(t)
	var asked []string
	stop := serve(l, answers(func(method, path, body string) (int, string) {
		asked = append(asked, method+" "+path+" "+body)
		switch method + " " + path {
		case "GET /api/v1/status":
			return 200, `{"open":1,"connected":2}`
		case "GET /api/v1/config":
			return 200, `{"keys":[{"key":"name","value":"desk"},{"key":"language","value":"en"},{"key":"brains","value":[]}]}`
		case "POST /api/v1/config/check":
			if strings.Contains(body, "de") {
				return 200, `{"faults":[{"message":"no"}]}`
			}
			return 200, `{"faults":[]}`
		case "PUT /api/v1/config/language":
			if strings.Contains(body, "de") {
				return 422, `{"error":{"message":"no"}}`
			}
		}
		return 200, "{}"
	}))
	defer stop()
	p, ctx := newPerch(at), t.Context()
	talking, near, err := p.robots(ctx)
	name, language, err2 := p.identity(ctx)
	english, err3 := p.accepts(ctx, "language", "en")
	german, err4 := p.accepts(ctx, "language", "de")
	if !talking || !near || name != "desk" || language != "en" || !english || german || errors.Join(err, err2, err3, err4) != nil {
		t.Errorf("%t %t %s %s %t %t: %v", talking, near, name, language, english, german, errors.Join(err, err2, err3, err4))
	}
	must.Succeed(t, errors.Join(p.set(ctx, "language", "en"), p.restart(ctx), p.announce(ctx, "hello")))
	if err := p.set(ctx, "language", "de"); err == nil || !strings.Contains(err.Error(), "422") {
		t.Errorf("what Perch refuses: %v", err)
	}
	text := strings.Join(asked, "\n")
	for _, want := range []string{`PUT /api/v1/config/language "en"`, "POST /api/v1/restart {}", `"text":"hello"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	stop()
	if _, _, err := p.robots(ctx); err == nil {
		t.Error("it answers though nobody is there")
	}
}
