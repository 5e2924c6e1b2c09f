package appliance

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"perch/cmd/perch/config"
	"perch/gateway/admin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is an appliance that runs in a test, on ports of its own.
type house struct {
	*Appliance
	t    *testing.T
	log  *logBuffer
	stop func()
}

// logBuffer keeps what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// testConfig listens on loopback ports that the system chooses.
func testConfig() config.Config {
	c := config.Default()
	c.Listen, c.Local = []string{"127.0.0.1:0"}, []string{"127.0.0.1:0"}
	c.MQTT.Broker = "none"
	return c
}

func open(t *testing.T, c config.Config, data string) *house {
	t.Helper()
	h := &house{t: t, log: &logBuffer{}}
	log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a, err := New(&c, Options{Version: "dev", Built: BuiltAt(""), Data: data, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	h.Appliance = a
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		a.Close()
	})
	t.Cleanup(h.stop)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the appliance's log:\n%s", h.log)
		}
	})
	return h
}

func written(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "perch.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (h *house) eventually(what string, done func() bool) {
	h.t.Helper()
	h.within(30*time.Second, what, done)
}

func (h *house) within(d time.Duration, what string, done func() bool) {
	h.t.Helper()
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for !done() {
		select {
		case <-every.C:
		case <-deadline.C:
			h.t.Fatalf("not within %s: %s", d, what)
		}
	}
}

// part is a part's condition, as /ready shows it.
func (h *house) part(name string) (found admin.Part) {
	h.t.Helper()
	response, err := http.Get("http://" + h.Doors.Addresses()[0] + "/ready")
	if err != nil {
		h.t.Fatal(err)
	}
	defer response.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	var ready struct{ Parts []admin.Part }
	if err := json.NewDecoder(response.Body).Decode(&ready); err != nil {
		h.t.Fatal(err)
	}
	for _, p := range ready.Parts {
		if p.Name == name {
			found = p
		}
	}
	return found
}
