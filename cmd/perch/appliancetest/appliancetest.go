// Package appliancetest runs a whole appliance in a test, on ports of its own,
// and has simulated robots talk with it.
package appliancetest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"perch/agent"
	"perch/agent/diary"
	"perch/agent/skill"
	"perch/cmd/perch/appliance"
	"perch/cmd/perch/characters"
	"perch/cmd/perch/config"
	"perch/cmd/perch/datadir"
	"perch/cmd/perch/logtail"
	"perch/cmd/perch/machine"
	"perch/gateway/broker"
	"perch/gateway/httpserver/httpservertest"
	"perch/gateway/owner/admin"
	"perch/must"
	"perch/voice/espeak"
	"perch/waittest"
)

// Processors gives the robots of a test processors of their own, unless
// something is measured. With two for all, both are now and then inside the
// recognizer, and a robot reads nothing for 10 ms and more, until the scheduler
// takes one back.
func Processors() {
	if flag.Parse(); flag.Lookup("test.bench").Value.String() == "" {
		runtime.GOMAXPROCS(max(8, runtime.NumCPU()))
	}
}

// Process is for the beginning of a test binary's TestMain. Where an appliance has started
// the binary as one of its own processes, it is that process, and does not return.
func Process() {
	if len(os.Args) < 2 {
		return
	}
	var err error
	switch os.Args[1] {
	case broker.Command:
		err = broker.RunProcess(os.Stdin, os.Stderr)
	case espeak.ServeCommand:
		err = espeak.Serve(os.Stdin, os.Stdout)
	default:
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "perch %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Config listens on loopback ports that the system chooses.
func Config() config.Config {
	c := config.Default()
	c.Listen, c.Local = []string{"127.0.0.1:0"}, []string{"127.0.0.1:0"}
	c.MQTT.Broker = "none"
	c.Robots.MQTT.Listen, c.Robots.UDP = "127.0.0.1:0", "127.0.0.1:0"
	return c
}

// Written is a configuration file with a text.
func Written(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "perch.yaml")
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Load reads a configuration file, none where path is empty, and an environment.
func Load(path string, environ ...string) (config.Config, error) {
	return config.Source{File: path, Environ: environ}.Load()
}

// Options are those of an appliance that logs nothing.
func Options(data string) appliance.Options {
	return appliance.Options{Version: "dev", Built: machine.BuiltAt(""), Data: data, Log: slog.New(slog.DiscardHandler)}
}

// Appliance is one that runs in a test.
type Appliance struct {
	*appliance.Appliance
	T      *testing.T
	Logged *waittest.Buffer
	Stop   func()       // ends it, unless it has ended
	Wait   func() error // until it has ended, and how

	// What is in the appliance's agents.
	Characters *characters.Characters
	Skills     *skill.Library
	Mind       *agent.Mind
	Diary      *diary.Diary

	// Of one that is Configured:
	File  string
	Again func() *Appliance // waits until it has ended for a restart, and starts it anew
}

// Start runs an appliance until the test ends.
func Start(t *testing.T, c config.Config, data string, change ...func(*appliance.Options)) *Appliance {
	t.Helper()
	h, o := &Appliance{T: t, Logged: &waittest.Buffer{}}, Options(data)
	kept := logtail.New()
	o.Logs, o.Log = kept, slog.New(kept.Handler(slog.NewTextHandler(h.Logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for _, f := range change {
		f(&o)
	}
	a := must.Value(appliance.New(&c, o))(t)
	h.Appliance, h.Characters, h.Skills, h.Mind, h.Diary = a, a.Agents.Characters, a.Agents.Skills, a.Agents.Mind, a.Agents.Diary
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	h.Wait = sync.OnceValue(func() error { return <-ended })
	h.Stop = sync.OnceFunc(func() {
		cancel()
		if err := h.Wait(); err != nil && !errors.Is(err, appliance.ErrRestart) {
			t.Error(err)
		}
		a.Close()
	})
	t.Cleanup(h.Stop)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("An owner would lose: %s\nThe appliance's log:\n%s", Lost(t), h.Logged)
		}
	})
	return h
}

// Lost returns what an owner would lose where a test fails: the test's doc comment.
func Lost(t testing.TB) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	files, _ := filepath.Glob("*_test.go") // of the folder that tests run in
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		for _, d := range f.Decls {
			if test, is := d.(*ast.FuncDecl); is && test.Name.Name == name && test.Doc != nil {
				return test.Doc.Text()
			}
		}
	}
	return name
}

// For is the same appliance for a subtest.
func (h *Appliance) For(t *testing.T) *Appliance {
	own := *h
	own.T = t
	return &own
}

// URL is where a path is at the first address in listen.
func (h *Appliance) URL(path string) string { return "http://" + h.Listeners.Addresses()[0] + path }

// OTA is the address that a robot is given.
func (h *Appliance) OTA() string { return h.URL("/xiaozhi/ota/") }

// Request sends a request, and returns status and body. header is names and
// values in turn.
func (h *Appliance) Request(method, path, body string, header ...string) (int, string) {
	h.T.Helper()
	answer, text := httpservertest.Ask(h.T, method, h.URL(path), body, header...)
	return answer.StatusCode, text
}

// Expect sends a request, whose answer is to have a status and to say something.
func (h *Appliance) Expect(status int, says, method, path, body string, header ...string) {
	h.T.Helper()
	if got, text := h.Request(method, path, body, header...); got != status || !strings.Contains(text, says) {
		h.T.Errorf("%s %s: %d %.300s, want %d %s", method, path, got, text, status, says)
	}
}

// Token checks in as a robot does, and returns what it is given.
func (h *Appliance) Token(path string, header ...string) string {
	h.T.Helper()
	status, text := h.Request(http.MethodPost, path, "{}", header...)
	var boot struct{ WebSocket struct{ Token string } }
	if err := json.Unmarshal([]byte(text), &boot); err != nil || status != http.StatusOK {
		h.T.Fatalf("%d %s (%v)", status, text, err)
	}
	return boot.WebSocket.Token
}

// Secret is one that the appliance has made.
func (h *Appliance) Secret(name string) string {
	h.T.Helper()
	text := must.Value(datadir.Secret(h.Data, name, h.Log))(h.T)
	return text
}

// OwnerToken opens the admin API.
func (h *Appliance) OwnerToken() string { return h.Secret("admin-token") }

// Owner sends a request to the admin API.
func (h *Appliance) Owner(method, path, body string) (int, string) {
	h.T.Helper()
	return h.Request(method, path, body, "Authorization", "Bearer "+h.OwnerToken())
}

// Admin sends a request to the admin API, and decodes its answer into into,
// unless that is nil.
func (h *Appliance) Admin(method, path, body string, into any) {
	h.T.Helper()
	status, text := h.Owner(method, path, body)
	if status >= 300 {
		h.T.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if into != nil {
		must.Succeed(h.T, json.Unmarshal([]byte(text), into))
	}
}

// Part is a part's condition, as /ready shows it.
func (h *Appliance) Part(name string) (found admin.Part) {
	h.T.Helper()
	_, text := h.Request(http.MethodGet, "/ready", "")
	var ready struct{ Parts []admin.Part }
	must.Succeed(h.T, json.Unmarshal([]byte(text), &ready))
	for _, p := range ready.Parts {
		if p.Name == name {
			found = p
		}
	}
	return found
}

// Eventually waits for something that another goroutine does.
func (h *Appliance) Eventually(what string, done func() bool) {
	h.T.Helper()
	waittest.For(h.T, what, done)
}

// FreeAddress is a loopback address that nobody listens at, and that the kernel
// gives to no connection before a program has started that is to listen there.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// Child is a program that ends with the test's binary, even where that is killed. Ctrl-C is for
// the test alone.
func Child(program string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(program, arguments...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return cmd
}

// Children are the processes that a process has started and that have not ended.
func Children(t *testing.T, parent int) (all []string) {
	t.Helper()
	lists := must.Value(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent)))(t)
	for _, list := range lists {
		text, _ := os.ReadFile(list) // of a thread that may have ended
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}
