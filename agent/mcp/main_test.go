package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"perch/agent/mcp"

	"go.uber.org/goleak"
)

// role names the variable that makes the test's own binary a server.
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

// page is a log that a test reads.
type page struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (p *page) log() *slog.Logger {
	return slog.New(slog.NewTextHandler(p, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// times counts the lines that hold a text.
func (p *page) times(text string) (n int) {
	for line := range strings.Lines(p.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// open makes a server that is closed with the test.
func open(t *testing.T, o mcp.Options) (*mcp.Server, *page) {
	t.Helper()
	p := &page{}
	o.Log = p.log()
	if o.Name == "" {
		o.Name = "it"
	}
	s, err := mcp.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(p.String())
		}
	})
	return s, p
}

// child makes a server of the test's own binary.
func child(t *testing.T, is string, o mcp.Options) (*mcp.Server, *page) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
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

// call makes a call that is answered.
func call(t *testing.T, s *mcp.Server, name, args string) string {
	t.Helper()
	text, err := s.Call(soon(t), name, []byte(args))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return text
}

// until waits for something that is about to happen in another process.
func until(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// pauses is a clock that needs no time, and knows what it was asked for.
type pauses struct {
	mu  sync.Mutex
	all []time.Duration
	go_ chan struct{} // lets one pause end; nil where none waits
}

func (p *pauses) pause(ctx context.Context, d time.Duration) error {
	p.mu.Lock()
	p.all = append(p.all, d)
	p.mu.Unlock()
	if p.go_ != nil {
		select {
		case <-p.go_:
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
