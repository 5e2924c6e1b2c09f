package mcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"perch/agent/mcp"
	"perch/must"
	"perch/waittest"

	"go.uber.org/goleak"
)

// role is the environment variable that makes the test binary run as a server: "real" selects
// serveReal, and any other value is the argument of serveFake.
const role = "A_TEST_IS_A_SERVER"

func TestMain(m *testing.M) {
	switch is := os.Getenv(role); {
	case is == "real":
		serveReal()
	case is != "":
		serveFake(is)
	default:
		goleak.VerifyTestMain(m)
	}
}

func logTo(to *waittest.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// open returns a server that is closed at the end of the test, and its log.
func open(t *testing.T, o mcp.Options) (*mcp.Server, *waittest.Buffer) {
	t.Helper()
	p := &waittest.Buffer{}
	o.Log = logTo(p)
	if o.Name == "" {
		o.Name = "it"
	}
	s, err := mcp.New(o)
	must.Succeed(t, err)
	t.Cleanup(func() {
		must.Succeed(t, s.Close())
		if t.Failed() {
			t.Log(p.String())
		}
	})
	return s, p
}

// child opens a server whose process is the test binary, with the value is of role.
func child(t *testing.T, is string, o mcp.Options) (*mcp.Server, *waittest.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	must.Succeed(t, err)
	o.Command = []string{exe}
	o.Env = append(o.Env, role+"="+is)
	return open(t, o)
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// call calls a tool and fails the test on an error.
func call(t *testing.T, s *mcp.Server, name, args string) string {
	t.Helper()
	text, err := s.Call(soon(t), name, []byte(args))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return text
}

// pauses records the pauses between attempts to connect, and implements Options.Pause.
type pauses struct {
	mu   sync.Mutex
	all  []time.Duration
	next chan struct{} // each value ends one pause; if nil, pauses end at once
}

func (p *pauses) pause(ctx context.Context, d time.Duration) error {
	p.mu.Lock()
	p.all = append(p.all, d)
	p.mu.Unlock()
	if p.next != nil {
		select {
		case <-p.next:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (p *pauses) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(p.all)
}

func (p *pauses) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all)
}
