// Package appliancetest runs whole appliances on free ports in tests. It also has simulated robots and
// fake programs that connect to them.
package appliancetest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
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

	"perch/cmd/perch/agents"
	"perch/cmd/perch/appliance"
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

// RaiseGOMAXPROCS raises GOMAXPROCS to at least 8, except for benchmarks. With only two processors the
// recognizer may occupy both, and a simulated robot would wait 10 ms or more before it can read.
func RaiseGOMAXPROCS() {
	if flag.Parse(); flag.Lookup("test.bench").Value.String() == "" {
		runtime.GOMAXPROCS(max(8, runtime.NumCPU()))
	}
}

// RunChildProcess must be called first in the TestMain of a test binary. An appliance starts its own binary
// again for child processes, such as the broker. In such a child process, RunChildProcess does the child's
// work and exits.
func RunChildProcess() {
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

// Config returns a configuration that listens on free loopback ports.
func Config() config.Config {
	c := config.Default()
	c.Listen, c.Local = []string{"127.0.0.1:0"}, []string{"127.0.0.1:0"}
	c.MQTT.Broker = "none"
	c.Robots.MQTT.Listen, c.Robots.UDP = "127.0.0.1:0", "127.0.0.1:0"
	c.Skins.VCCP = "" // appliances of other tests would use the same port
	return c
}

// WriteConfig writes a configuration file and returns its path.
func WriteConfig(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "perch.yaml")
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Load loads a configuration from a file, unless path is empty, and from the variables in environ.
func Load(path string, environ ...string) (config.Config, error) {
	return config.Source{File: path, Environ: environ}.Load()
}

// Options returns the options of an appliance that does not log.
func Options(data string) appliance.Options {
	return appliance.Options{Version: "dev", Built: machine.BuiltAt(""), Data: data, Log: slog.New(slog.DiscardHandler)}
}

// Appliance is an appliance that runs in a test.
type Appliance struct {
	*appliance.Appliance
	*agents.Agents
	T      *testing.T
	Logged *waittest.Buffer // the log
	Stop   func()           // stops the appliance if it is running
	Wait   func() error     // waits until the appliance has ended and returns the error of Run

	// These are set by Configured only.
	File  string            // path of the configuration file
	Again func() *Appliance // waits until the appliance has ended after a request to restart, and starts it again
}

// Start runs an appliance until the test ends.
func Start(t *testing.T, c config.Config, data string, change ...func(*appliance.Options)) *Appliance {
	t.Helper()
	h, o := &Appliance{T: t, Logged: &waittest.Buffer{}}, Options(data)
	tail := logtail.New()
	o.Logs, o.Log = tail, slog.New(tail.Handler(slog.NewTextHandler(h.Logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for _, f := range change {
		f(&o)
	}
	a := must.Value(appliance.New(&c, o))(t)
	h.Appliance, h.Agents = a, a.Agents
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
			t.Logf("The appliance's log:\n%s", h.Logged)
		}
	})
	return h
}

// For returns the same appliance for a subtest.
func (h *Appliance) For(t *testing.T) *Appliance {
	sub := *h
	sub.T = t
	return &sub
}

// URL returns the URL of a path at the first address in listen.
func (h *Appliance) URL(path string) string { return "http://" + h.Listeners.Addresses()[0] + path }

// OTA returns the URL at which robots check in.
func (h *Appliance) OTA() string { return h.URL("/xiaozhi/ota/") }

// Request sends a request, and returns the status and the body of the response. header alternates names
// and values.
func (h *Appliance) Request(method, path, body string, header ...string) (int, string) {
	h.T.Helper()
	response, text := httpservertest.Ask(h.T, method, h.URL(path), body, header...)
	return response.StatusCode, text
}

// Expect sends a request and checks the status of the response, and that its body contains a text.
func (h *Appliance) Expect(status int, want, method, path, body string, header ...string) {
	h.T.Helper()
	if got, text := h.Request(method, path, body, header...); got != status || !strings.Contains(text, want) {
		h.T.Errorf("%s %s: %d %.300s, want %d %s", method, path, got, text, status, want)
	}
}

// Token checks in as a robot does, and returns the token in the response.
func (h *Appliance) Token(path string, header ...string) string {
	h.T.Helper()
	status, text := h.Request(http.MethodPost, path, "{}", header...)
	var boot struct{ WebSocket struct{ Token string } }
	if err := json.Unmarshal([]byte(text), &boot); err != nil || status != http.StatusOK {
		h.T.Fatalf("%d %s (%v)", status, text, err)
	}
	return boot.WebSocket.Token
}

// Secret returns a secret that the appliance has generated.
func (h *Appliance) Secret(name string) string {
	h.T.Helper()
	return must.Value(datadir.Secret(h.Data, name, h.Log))(h.T)
}

// OwnerToken returns the token for the admin API.
func (h *Appliance) OwnerToken() string { return h.Secret("admin-token") }

// Owner sends a request to the admin API.
func (h *Appliance) Owner(method, path, body string) (int, string) {
	h.T.Helper()
	return h.Request(method, path, body, "Authorization", "Bearer "+h.OwnerToken())
}

// Admin sends a request to the admin API, which must succeed. It decodes the response into the value that
// into points to, unless into is nil.
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

// Part returns the condition of a part as /ready reports it, or an empty Part if it reports none.
func (h *Appliance) Part(name string) (part admin.Part) {
	h.T.Helper()
	_, text := h.Request(http.MethodGet, "/ready", "")
	var ready struct{ Parts []admin.Part }
	must.Succeed(h.T, json.Unmarshal([]byte(text), &ready))
	for _, p := range ready.Parts {
		if p.Name == name {
			part = p
		}
	}
	return part
}

// Eventually waits until done returns true. The error after a timeout contains what, a description of the
// expected condition.
func (h *Appliance) Eventually(what string, done func() bool) {
	h.T.Helper()
	waittest.For(h.T, what, done)
}

// FreeAddress returns a loopback address on which nothing listens. Its port is below 32768, the first port
// that the kernel uses for outgoing connections.
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

// ChildCommand returns a command whose process is killed when the test binary ends, even if the test binary
// is killed. Ctrl-C does not reach the process. RunChild starts the command.
func ChildCommand(program string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(program, arguments...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return cmd
}

// RunChild starts a command of ChildCommand, and calls run, which waits for the process, in a new goroutine.
// It returns when the process has started. The goroutine stays on its thread, because the kernel kills the
// process when the thread that started it ends (PR_SET_PDEATHSIG, prctl(2)). A thread ends with a goroutine
// that is locked to it, such as the goroutine that runs the embedded broker.
func RunChild(cmd *exec.Cmd, run func()) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			run()
		}
	}()
	return <-started
}

// ChildProcesses returns the IDs of the child processes of a process.
func ChildProcesses(t testing.TB, parent int) (ids []string) {
	t.Helper()
	for _, list := range must.Value(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent)))(t) {
		text, _ := os.ReadFile(list) // the thread may have ended
		ids = append(ids, strings.Fields(string(text))...)
	}
	return ids
}
